"""Jobs: work that goes on in the background."""

import shutil
import tempfile
from pathlib import Path as File
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Path, UploadFile
from fastapi import File as Upload
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.problems import describe
from serving.schemas import CollectionName, JobErrorInfo, JobInfo, JobList, Label
from serving.services import CurrentServices, Services
from serving.store.tables import Job

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.post(
    "",
    status_code=202,
    responses=describe(
        errors.CollectionMissing,
        errors.ArchiveBroken,
        errors.RequestInvalid,
        errors.BodyMalformed,
        errors.BodyTooLarge,
        errors.DiskFull,
    ),
)
async def start_job(
    collection: Annotated[CollectionName, Form(description="the collection to work on")],
    services: CurrentServices,
    kind: Annotated[
        Literal["import", "rebuild"],
        Form(description="import adds the pictures of a zip file; rebuild makes vectors of an earlier model anew"),
    ] = "import",
    archive: Annotated[
        UploadFile | None, Upload(description="for import: a zip file of pictures, a folder for each label")
    ] = None,
    label: Annotated[
        Label | None, Form(description="for import: one label for all, in place of the folders' names")
    ] = None,
) -> JobInfo:
    """Start work that goes on in the background; ask for it by its id."""
    if kind == "rebuild":
        return await run_in_threadpool(lambda: _info(services, services.jobs.rebuild(collection)))
    if archive is None:
        raise errors.RequestInvalid("archive is missing; an import needs a zip file")

    def take() -> JobInfo:
        with tempfile.NamedTemporaryFile(dir=services.settings.data_dir, suffix=".zip", delete=False) as copy:
            shutil.copyfileobj(archive.file, copy)
        file = File(copy.name)
        try:
            return _info(services, services.jobs.import_archive(file, collection, label))
        finally:
            file.unlink(missing_ok=True)  # taken over, or of no use

    return await run_in_threadpool(take)


@router.get("")
async def list_jobs(services: CurrentServices) -> JobList:
    """The latest 200 jobs, newest first."""

    def collect() -> JobList:
        return JobList(jobs=[_info(services, job) for job in services.jobs.latest()])

    return await run_in_threadpool(collect)


@router.get("/{job}", responses=describe(errors.JobMissing, errors.RequestInvalid))
async def get_job(job: JobId, services: CurrentServices) -> JobInfo:
    """How far a job is, and what it could not take."""
    return await run_in_threadpool(lambda: _info(services, services.jobs.get(job)))


@router.delete("/{job}", responses=describe(errors.JobMissing, errors.RequestInvalid))
async def cancel_job(job: JobId, services: CurrentServices) -> JobInfo:
    """Stop a job; what it has added stays. A job that has ended stays as it is."""
    return await run_in_threadpool(lambda: _info(services, services.jobs.cancel(job)))


def _info(services: Services, job: Job) -> JobInfo:
    count, refused = services.jobs.errors(job.id)
    return JobInfo(
        id=job.id,
        kind=job.kind,
        state=job.state,
        collection=job.wish.get("collection"),
        model=job.wish.get("model"),
        version=job.wish.get("version"),
        total=job.total,
        done=job.done,
        refused=count,
        errors=[JobErrorInfo(file=each.file, message=each.message) for each in refused],
        message=job.message,
        created=job.created,
        finished=job.finished,
    )
