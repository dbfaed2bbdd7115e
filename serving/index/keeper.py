"""Keeps an index for each collection: loaded from a snapshot, then brought up to date from the database.

The database numbers its changes. An index knows the number it has followed to, so the same step that brings it up
to date after a write also does it after a start: look up the items that changed since, put those that exist,
remove those that do not. A snapshot only saves time; one that is damaged, of another model or ahead of the database
is thrown away, and the index is made anew.
"""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from serving.index.on_gpu import Copy
from serving.index.vectors import VectorIndex
from serving.store.database import Database
from serving.store.prepared import vectors_of_model
from serving.store.tables import Change, Collection

log = structlog.get_logger()

CHUNK = 2000  # rows read at a time
SNAPSHOT_EVERY = 20_000  # changes


@dataclass
class _Kept:
    vectors: VectorIndex
    followed: int = 0  # the last change in it
    saved: int = 0  # the last change in the snapshot
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexKeeper:
    """The indexes of all collections, for one model: the one in use, or one whose vectors are only prepared."""

    def __init__(self, database: Database, folder: Path, *, model: str, dim: int, copy: Copy | None = None) -> None:
        self._database = database
        self._folder = folder
        self._model = model
        self._dim = dim
        self._copy = copy
        self._kept: dict[int, _Kept] = {}
        with database.reading() as session:
            known = list(session.scalars(select(Collection.id)))
        for collection in known:
            self.follow(collection)
        self._clear(known)

    def __getitem__(self, collection: int) -> VectorIndex:
        # A collection that is just being made or deleted has no index: to a search it is empty.
        kept = self._kept.get(collection)
        return kept.vectors if kept else VectorIndex(self._dim)

    def follow(self, collection: int) -> None:
        """Bring an index up to date with what is committed."""
        kept = self._kept.get(collection)
        if kept is None:
            kept = self._kept.setdefault(collection, self._load(collection))
        with kept.lock:
            with self._database.reading() as session:
                for number, ids in self._changes(session, collection, kept.followed):
                    self._apply(session, kept.vectors, ids)
                    kept.followed = number
            if kept.followed - kept.saved >= SNAPSHOT_EVERY:
                self._save(collection, kept)

    def follow_all(self) -> None:
        """The same for all collections."""
        with self._database.reading() as session:
            known = list(session.scalars(select(Collection.id)))
        for collection in known:
            self.follow(collection)

    def forget(self, collection: int) -> None:
        """Drop the index of a collection that is gone."""
        self._kept.pop(collection, None)
        shutil.rmtree(self._folder / str(collection), ignore_errors=True)

    def save(self) -> None:
        """Write a snapshot of every index that changed since its last one."""
        for collection, kept in list(self._kept.items()):
            with kept.lock:
                if kept.followed > kept.saved:
                    self._save(collection, kept)

    def _changes(self, session: Session, collection: int, since: int) -> Iterator[tuple[int, list[int]]]:
        """Chunks of (last number, items) of the changes after `since`."""
        while True:
            rows = session.execute(
                select(Change.number, Change.item_id)
                .where(Change.collection_id == collection, Change.number > since)
                .order_by(Change.number)
                .limit(CHUNK)
            ).all()
            if not rows:
                return
            since = rows[-1].number
            yield since, list(dict.fromkeys(row.item_id for row in rows))

    def _apply(self, session: Session, vectors: VectorIndex, ids: list[int]) -> None:
        found = vectors_of_model(session, self._model, ids)
        vectors.remove(set(ids) - found.keys())
        if found:
            stored = np.frombuffer(b"".join(found.values()), dtype="<f4")
            vectors.put(list(found), stored.reshape(len(found), self._dim))

    def _load(self, collection: int) -> _Kept:
        """The newest good snapshot, or an empty index."""
        with self._database.reading() as session:
            newest = session.scalar(select(func.max(Change.number)).where(Change.collection_id == collection)) or 0
        for description in sorted(self._folder.glob(f"{collection}/*.json"), key=lambda file: -int(file.stem)):
            try:
                kept = self._read_snapshot(description, newest)
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("index snapshot left out", file=str(description), reason=str(error))
                continue
            return kept
        return _Kept(VectorIndex(self._dim, self._copy))

    def _read_snapshot(self, description: Path, newest: int) -> _Kept:
        facts = json.loads(description.read_text())
        file = description.with_suffix(".faiss")
        if facts["model"] != self._model:
            raise ValueError("it is of another model")
        if facts["followed"] > newest:
            raise ValueError("it is ahead of the database")
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != facts["sha256"]:
                raise ValueError("it is damaged")
        return _Kept(VectorIndex.read(file, self._dim, self._copy), facts["followed"], facts["followed"])

    def _save(self, collection: int, kept: _Kept) -> None:
        """Write the vectors, then the description that makes them count; older ones go afterwards."""
        folder = self._folder / str(collection)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{kept.followed}.faiss"
            kept.vectors.write(file)
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            facts = {"model": self._model, "followed": kept.followed, "items": len(kept.vectors), "sha256": digest}
            partial = folder / "description.part"
            partial.write_text(json.dumps(facts))
            partial.replace(file.with_suffix(".json"))
        except (OSError, RuntimeError) as error:  # a full disk: the database has everything
            log.warning("index snapshot not written", collection=collection, reason=str(error))
            return
        kept.saved = kept.followed
        for old in folder.iterdir():
            if old.stem != str(kept.followed):
                old.unlink(missing_ok=True)

    def _clear(self, known: list[int]) -> None:
        """Remove snapshots of collections that are gone."""
        with suppress(FileNotFoundError):
            for folder in self._folder.iterdir():
                if folder.name not in map(str, known):
                    shutil.rmtree(folder, ignore_errors=True)
