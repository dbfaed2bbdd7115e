"""Work in the background: one job at a time, in a thread of its own; it goes on after a restart.

A job notes how many entries it has looked at together with what it could not take, so after a crash it goes on
where it was. The entry it was at may be looked at again: it is added under a key that counts once.
"""

import queue
import threading
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import func, select

from serving.answering import EMBEDDER
from serving.errors import NOT_NOW, DiskFull, JobMissing, PictureExists, ReadleafError
from serving.images import ImageLimits, describe
from serving.library import Library, NewPicture
from serving.pipelines.archive import Archive, Entry
from serving.pipelines.upload import Upload
from serving.store.database import Database
from serving.store.tables import Job, JobError, now
from serving.switchboard import Candidate, Switchboard

log = structlog.get_logger()

OPEN = ("waiting", "running")
KEPT_ERRORS = 1000  # of one job
RETRY_SECONDS = 1.0  # until what runs the models is asked again
NOTED_EVERY = 16  # pictures that a new embedder has looked at


class Jobs:
    """All jobs, and the thread that does them."""

    def __init__(
        self, database: Database, library: Library, switchboard: Switchboard, folder: Path, limits: ImageLimits
    ) -> None:
        self._database, self._library, self._switchboard = database, library, switchboard
        self._folder = folder
        self._max_image_bytes = limits.max_bytes
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        with database.reading() as session:
            left = session.scalars(select(Job.id).where(Job.state.in_(OPEN)).order_by(Job.created)).all()
        for job in left:
            self._waiting.put(job)
        self._clear(set(left))
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the entry that is being looked at; the job goes on at the next start."""
        self._stopping.set()
        self._waiting.put(None)
        self._thread.join()

    def import_archive(self, archive: Path, collection: str, label: str | None) -> Job:
        """Take over a zip file; its pictures are added to a collection one by one."""
        self._library.get_collection_id(collection)
        with Archive(archive, self._max_image_bytes) as opened:
            total = len(opened.entries)
        job = _new_job("import", {"collection": collection, "label": label}, total)
        self._folder.mkdir(parents=True, exist_ok=True)
        archive.replace(self._archive_of(job.id))
        return self._start(job)

    def rebuild(self, collection: str) -> Job:
        """Make the vectors anew that another model made."""
        items = self._library.outdated_items(collection)
        return self._start(_new_job("rebuild", {"collection": collection, "items": items}, len(items)))

    def activate(self, candidate: Candidate, *, force: bool) -> Job:
        """Let a new embedder look at every picture, then switch to it."""
        wish = {"model": candidate.manifest.name, "version": candidate.manifest.version, "force": force}
        return self._start(_new_job("activate", wish, self._switchboard.pictures_to_look_at(candidate)))

    def renew_vectors(self) -> None:
        """If vectors are of an embedder that is gone: let the one in use look at these pictures, as after a switch."""
        with self._database.reading() as session:
            open_jobs = session.scalars(select(Job).where(Job.kind == "activate", Job.state.in_(OPEN))).first()
        if open_jobs is None and self._switchboard.are_vectors_outdated():
            job = self.activate(self._switchboard.in_use(EMBEDDER), force=True)
            log.warning("vectors of another embedder are made anew", job=job.id, pictures=job.total)

    def latest(self) -> list[Job]:
        """The latest jobs, newest first."""
        with self._database.reading() as session:
            return list(session.scalars(select(Job).order_by(Job.created.desc()).limit(200)))

    def get(self, number: str) -> Job:
        """One job."""
        with self._database.reading() as session:
            job = session.get(Job, number)
        if job is None:
            raise JobMissing(f"there is no job {number!r}; GET /v1/jobs lists all")
        return job

    def errors(self, number: str) -> tuple[int, list[JobError]]:
        """How many files a job could not take, and the first of them."""
        with self._database.reading() as session:
            count = session.scalar(select(func.count()).where(JobError.job_id == number)) or 0
            query = select(JobError).where(JobError.job_id == number).order_by(JobError.id).limit(KEPT_ERRORS)
            return count, list(session.scalars(query))

    def cancel(self, number: str) -> Job:
        """Stop a job; what it has done stays."""
        self.get(number)
        with self._database.writing() as session:
            job = session.get_one(Job, number)
            if job.state in OPEN:
                job.state, job.finished, job.message = "cancelled", now(), "cancelled on request"
        return job

    def _work(self) -> None:
        while (number := self._waiting.get()) is not None and not self._stopping.is_set():
            try:
                self._run(number)
            except Exception as error:  # one bad job must not end all others
                log.exception("job failed", job=number)
                self._finish(number, "failed", str(error) if isinstance(error, ReadleafError) else "an error of ours")

    def _start(self, job: Job) -> Job:
        with self._database.writing() as session:
            session.add(job)
        self._waiting.put(job.id)
        return job

    def _run(self, number: str) -> None:
        job = self.get(number)
        if job.state not in OPEN:
            return
        self._note(number, state="running")
        if job.kind == "activate":
            ended = self._switch(job)
        elif job.kind == "rebuild":
            ended = self._each(job, [(f"item {item}", partial(self._renew, job, item)) for item in job.wish["items"]])
        else:
            with Archive(self._archive_of(number), self._max_image_bytes) as archive:
                steps = [
                    (entry.name, partial(self._add, job, place, archive, entry))
                    for place, entry in enumerate(archive.entries)
                ]
                ended = self._each(job, steps)
        if ended:
            self._finish(number, "done", "")

    def _each(self, job: Job, steps: Sequence[tuple[str, Callable[[], None]]]) -> bool:
        """Take the steps that are left, noting each; False if the service stops or the job was cancelled."""
        for place, (name, step) in enumerate(steps):
            if place < job.done:
                continue
            if self._stopping.is_set():
                return False
            if self.get(job.id).state == "cancelled":
                self._archive_of(job.id).unlink(missing_ok=True)
                return False
            failure = None
            try:
                if not self._patiently(job.id, step):
                    return False
            except DiskFull:
                raise  # the next file would fare no better
            except ReadleafError as error:
                failure = JobError(job_id=job.id, file=name[:1000], message=error.message[:2000])
            self._note(job.id, done=place + 1, failure=failure)
        return True

    def _switch(self, job: Job) -> bool:
        """Check the version again, as a restart may lie between, and switch to it; False as in `_each`."""
        wish, looked, done = job.wish, job.done, False
        unreadable: dict[str, str] = {}

        def go_on() -> bool:
            nonlocal looked
            looked += 1
            if looked % NOTED_EVERY == 0:
                self._note(job.id, done=looked)
            return self._is_wanted(job.id)

        def switch() -> None:
            nonlocal done, unreadable
            candidate = self._switchboard.examine(wish["model"], wish["version"], force=wish["force"])
            work = self._switchboard.re_embedding(candidate)
            unreadable = work.unreadable
            done = self._switchboard.switch_embedder(candidate, work, go_on, force=wish["force"])

        try:
            self._patiently(job.id, switch)
        finally:
            for picture, reason in unreadable.items():
                self._note(job.id, failure=JobError(job_id=job.id, file=picture, message=reason[:2000]))
        if done:
            self._note(job.id, done=job.total)
            self._finish(job.id, "done", "", anyway=True)  # even if it was cancelled in its very last moment
        return done

    def _patiently(self, number: str, step: Callable[[], None]) -> bool:
        """Take a step, again and again while what runs the models is away; False if nobody wants the job any more."""
        while True:
            try:
                step()
                return True
            except NOT_NOW as error:
                log.warning("job waits", job=number, reason=error.message)
                self._stopping.wait(RETRY_SECONDS)
            if not self._is_wanted(number):
                return False

    def _is_wanted(self, number: str) -> bool:
        return not self._stopping.is_set() and self.get(number).state != "cancelled"

    def _renew(self, job: Job, item: int) -> None:
        collection = job.wish["collection"]
        data = self._library.read_picture(self._library.get_item(collection, item))
        embedder = self._switchboard.current.embedder
        vector = embedder.embed_one(Upload("the picture", data))
        self._library.renew_vector(collection, item, vector, embedder.manifest.sha256)

    def _add(self, job: Job, place: int, archive: Archive, entry: Entry) -> None:
        data = archive.read(entry)
        # Switches are jobs, too, and jobs run one at a time: this embedder is in use until the item is kept.
        vector = self._switchboard.current.embedder.embed_one(Upload("the file", data))
        try:
            self._library.add_item(
                job.wish["collection"],
                vector=vector,
                label=job.wish["label"] or entry.label,
                details={"file": entry.name[-500:]},
                picture=NewPicture(data, *describe(data)),
                idempotency_key=f"job {job.id} {place}",
            )
        except PictureExists as error:
            raise PictureExists(f"it was left out: {error.message}") from error

    def _archive_of(self, number: str) -> Path:
        return self._folder / f"{number}.zip"

    def _note(
        self, number: str, *, state: str | None = None, done: int | None = None, failure: JobError | None = None
    ) -> None:
        with self._database.writing() as session:
            job = session.get_one(Job, number)
            if state is not None and job.state in OPEN:
                job.state = state
            if done is not None:
                job.done = done
            if failure is not None:
                session.add(failure)

    def _finish(self, number: str, state: str, message: str, *, anyway: bool = False) -> None:
        with self._database.writing() as session:
            job = session.get_one(Job, number)
            if job.state in OPEN or anyway:
                job.state, job.finished, job.message = state, now(), message[:2000]
        self._archive_of(number).unlink(missing_ok=True)

    def _clear(self, left: set[str]) -> None:
        """Archives of jobs that have ended."""
        for file in self._folder.glob("*.zip"):
            if file.stem not in left:
                file.unlink(missing_ok=True)


def _new_job(kind: str, wish: dict[str, Any], total: int) -> Job:
    return Job(
        id=uuid.uuid4().hex, kind=kind, state="waiting", wish=wish, total=total, done=0, message="", created=now()
    )
