"""Collections of labelled pictures that can be searched: the database, the pictures and the indexes as one.

A write is acknowledged after the picture is on disk and the row committed, and is in the index before the answer.
Writes go one at a time; reads and searches do not wait for them.
"""

import errno
import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from serving.errors import (
    CollectionExists,
    DiskFull,
    PictureExists,
    PictureMissing,
    VectorOutdated,
)
from serving.index.keeper import IndexKeeper
from serving.index.on_gpu import Copy
from serving.starter import Starter
from serving.store.bulk import STARTER_ROW, insert_vectors, renew_vectors
from serving.store.database import Database
from serving.store.pictures import PictureFolder
from serving.store.questions import (
    CollectionSummary,
    find_collection,
    find_item,
    pictures_of,
    repeated_item,
    summarize,
    unused_pictures,
)
from serving.store.tables import Change, Collection, IdempotencyKey, Item, Milestone

UNSET: Any = object()  # "leave as it is", where None means "none"


@dataclass(frozen=True)
class NewPicture:
    """A picture to be kept, already looked at."""

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True)
class Neighbour:
    """An item near a query."""

    item: Item
    similarity: float  # cosine


class Library:
    """What the routes call; every method may be called from any thread."""

    def __init__(self, database: Database, folder: Path, *, model: str, dim: int, copy: Copy | None = None) -> None:
        """`copy` takes indexes to a GPU."""
        self._copy = copy
        self._database = database
        self._folder = folder / "index"
        self.pictures = PictureFolder(folder)
        self.indexes = self.open_indexes(model, dim)
        self.model = model
        self._writing = threading.RLock()
        self._clear_indexes()

    def close(self) -> None:
        """Save the indexes, so that the next start is quick."""
        self.indexes.save()

    def create_collection(self, name: str, description: str) -> CollectionSummary:
        """Make an empty collection."""
        with self.write() as session:
            collection = Collection(name=name, description=description)
            session.add(collection)
            try:
                session.flush()
            except IntegrityError:
                raise CollectionExists(f"there is a collection named {name!r} already; choose another name") from None
        self.indexes.follow(collection.id)
        return CollectionSummary(name, description, 0, 0, {})

    def list_collections(self) -> list[CollectionSummary]:
        """All collections, by name."""
        with self._database.reading() as session:
            names = session.scalars(select(Collection.name).order_by(Collection.name)).all()
            return [summarize(session, name, self.model) for name in names]

    def get_collection(self, name: str) -> CollectionSummary:
        """One collection."""
        with self._database.reading() as session:
            return summarize(session, name, self.model)

    def get_collection_id(self, name: str) -> int:
        """A collection's number; raises CollectionMissing."""
        with self._database.reading() as session:
            return find_collection(session, name).id

    def delete_collection(self, name: str) -> None:
        """Delete a collection with its items and the pictures that no other collection holds."""
        with self._writing:  # until the files are gone: a write in between could count on one of them
            with self.write() as session:
                collection = find_collection(session, name)
                names = pictures_of(session, collection.id)
                session.execute(delete(Collection).where(Collection.id == collection.id))
                unused = unused_pictures(session, names)
            self.indexes.forget(collection.id)
            for picture in unused:
                self.pictures.forget(picture)

    def add_item(
        self,
        collection_name: str,
        *,
        vector: NDArray[np.float32],
        label: str | None,
        details: dict[str, Any],
        picture: NewPicture | None,
        idempotency_key: str | None = None,
        model: str | None = None,
    ) -> Item:
        """Keep a picture (or only its vector); the same key and content again give the item made the first time.

        `model` made the vector; raises VectorOutdated if that is not the one in use any more.
        """
        sha256 = None if picture is None else self.pictures.name_of(picture.data)
        request = hashlib.sha256(orjson.dumps([sha256, label, details], option=orjson.OPT_SORT_KEYS)).hexdigest()
        with self.write() as session:
            self.check_model(model)
            collection = find_collection(session, collection_name)
            if idempotency_key is not None:
                known = session.get(IdempotencyKey, (collection.id, idempotency_key))
                if known is not None:
                    return repeated_item(session, known, request)
            if sha256 is not None:
                twin = session.scalar(select(Item.id).where(Item.collection_id == collection.id, Item.sha256 == sha256))
                if twin is not None:
                    raise PictureExists(f"this picture is item {twin} of {collection.name!r} already", item=twin)
            if picture is not None and sha256 is not None:
                self.pictures.keep(sha256, picture.data)
            item = Item(
                collection_id=collection.id,
                label=label,
                details=details,
                sha256=sha256,
                media_type=picture and picture.media_type,
                width=picture and picture.width,
                height=picture and picture.height,
                model=self.model,
                embedding=np.asarray(vector, dtype="<f4").tobytes(),
            )
            session.add(item)
            session.flush()
            session.add(Change(collection_id=collection.id, item_id=item.id))
            if idempotency_key is not None:
                session.add(
                    IdempotencyKey(collection_id=collection.id, key=idempotency_key, request=request, item_id=item.id)
                )
        self.indexes.follow(collection.id)
        return item

    def add_vectors(self, collection_name: str, vectors: NDArray[np.float32], labels: Sequence[str | None]) -> None:
        """Add many items of which only the vectors are known, [N, dim], all of them or none."""
        with self.write() as session:
            collection = find_collection(session, collection_name)
            insert_vectors(session, collection, self.model, vectors, labels, [{}] * len(labels))
        self.indexes.follow(collection.id)

    def add_starter(self, starter: Starter) -> int:
        """Make a collection of vectors, once in the life of the database: who deleted it does not get it again.

        After a change of the embedder, the vectors that are there are renewed. Returns how many were written.
        """
        with self.write() as session:
            collection = session.scalar(select(Collection).where(Collection.name == starter.name))
            if session.get(Milestone, starter.name) is not None:
                count = renew_vectors(session, collection, self.model, starter.vectors) if collection else 0
            else:
                session.add(Milestone(name=starter.name))
                if collection is not None:
                    return 0
                collection = Collection(name=starter.name, description=starter.description)
                session.add(collection)
                session.flush()
                details = [{"source": source, STARTER_ROW: row} for row, source in enumerate(starter.sources)]
                insert_vectors(session, collection, self.model, starter.vectors, starter.labels, details)
                count = len(details)
        if collection is not None:
            self.indexes.follow(collection.id)
        return count

    def get_item(self, collection_name: str, item_id: int) -> Item:
        """One item."""
        with self._database.reading() as session:
            return find_item(session, collection_name, item_id)

    def list_items(self, collection_name: str, *, label: str | None, after: int, limit: int) -> list[Item]:
        """Items with an id above `after`, in the order they came."""
        with self._database.reading() as session:
            collection = find_collection(session, collection_name)
            query = select(Item).where(Item.collection_id == collection.id, Item.id > after)
            if label is not None:
                query = query.where(Item.label == label)
            return list(session.scalars(query.order_by(Item.id).limit(limit)))

    def update_item(
        self, collection_name: str, item_id: int, *, label: str | None = UNSET, details: dict[str, Any] = UNSET
    ) -> Item:
        """Change what is known of an item; what is not given stays."""
        with self.write() as session:
            item = find_item(session, collection_name, item_id)
            if label is not UNSET:
                item.label = label
            if details is not UNSET:
                item.details = details
        return item

    def outdated_items(self, collection_name: str) -> list[int]:
        """Items whose vectors another model made: no search finds them until they are made anew."""
        with self._database.reading() as session:
            collection = find_collection(session, collection_name)
            query = select(Item.id).where(Item.collection_id == collection.id, Item.model != self.model)
            return list(session.scalars(query.order_by(Item.id)))

    def renew_vector(
        self, collection_name: str, item_id: int, vector: NDArray[np.float32], model: str | None = None
    ) -> None:
        """Replace an item's vector by one of the model in use."""
        with self.write() as session:
            self.check_model(model)
            item = find_item(session, collection_name, item_id)
            item.model, item.embedding = self.model, np.asarray(vector, dtype="<f4").tobytes()
            session.add(Change(collection_id=item.collection_id, item_id=item.id))
        self.indexes.follow(item.collection_id)

    def delete_item(self, collection_name: str, item_id: int) -> None:
        """Delete an item, and its picture unless another item holds it."""
        with self._writing:
            with self.write() as session:
                item = find_item(session, collection_name, item_id)
                session.delete(item)
                session.add(Change(collection_id=item.collection_id, item_id=item.id))
                session.flush()
                unused = unused_pictures(session, [item.sha256] if item.sha256 else [])
            self.indexes.follow(item.collection_id)
            for picture in unused:
                self.pictures.forget(picture)

    def read_picture(self, item: Item) -> bytes:
        """The bytes of an item's picture."""
        if item.sha256 is None:
            raise PictureMissing(f"of item {item.id} only the vector is known; there is no picture to show")
        try:
            return self.pictures.read(item.sha256)
        except FileNotFoundError:
            raise PictureMissing(f"the picture of item {item.id} is gone from the data folder") from None

    def check_model(self, model: str | None) -> None:
        """Raise VectorOutdated for vectors of a model that is not in use any more."""
        if model is not None and model != self.model:
            raise VectorOutdated("the embedder was switched meanwhile; send the request again")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Writes wait until the block ends, but for those of the block itself; reads and searches go on."""
        with self._writing:
            yield

    def open_indexes(self, model: str, dim: int) -> IndexKeeper:
        """The indexes of an embedder's vectors, in use or prepared."""
        return IndexKeeper(self._database, self._folder / model[:16], model=model, dim=dim, copy=self._copy)

    def adopt(self, model: str, indexes: IndexKeeper) -> None:
        """Work with the vectors of another embedder from now on, after they were put into use."""
        with self._writing:
            self.indexes, self.model = indexes, model
            self._clear_indexes()

    def _clear_indexes(self) -> None:
        """Snapshots of other embedders' vectors would not be true any more when these come back."""
        if self._folder.is_dir():
            for child in self._folder.iterdir():
                if child.name != self.model[:16]:
                    shutil.rmtree(child, ignore_errors=True)

    def search(
        self,
        collection_name: str,
        vector: NDArray[np.float32],
        count: int,
        label: str | None = None,
        *,
        indexes: IndexKeeper | None = None,
    ) -> list[Neighbour]:
        """The nearest items, nearest first; `label` looks at items of that label only.

        `indexes` are those of the model that made the vector, for a request that began before a switch.
        """
        with self._database.reading() as session:
            collection = find_collection(session, collection_name)
            among = None
            if label is not None:
                query = select(Item.id).where(Item.collection_id == collection.id, Item.label == label)
                among = session.scalars(query).all()
        found = (indexes or self.indexes)[collection.id].search(vector, count, among)
        with self._database.reading() as session:
            # Read after the search: an item deleted or relabelled meanwhile is shown as it is now.
            rows = session.scalars(select(Item).where(Item.id.in_([number for number, _ in found])))
            items = {item.id: item for item in rows}
        return [Neighbour(items[number], similarity) for number, similarity in found if number in items]

    def crowding(
        self, collection_name: str, items: Sequence[int], rank: int, *, indexes: IndexKeeper | None = None
    ) -> list[float]:
        """For each of these items the similarity to its `rank`-th neighbour; nothing if some have not so many."""
        index = (indexes or self.indexes)[self.get_collection_id(collection_name)]
        vectors = index.vectors_of(items)
        if vectors is None:
            return []
        found = []
        for item, vector in zip(items, vectors, strict=True):
            # It is its own nearest neighbour, and does not count; a twin of it does.
            near = [similarity for number, similarity in index.search(vector, rank + 1) if number != item]
            if len(near) < rank:
                return []
            found.append(near[rank - 1])
        return found

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one state of the database throughout."""
        with self._database.reading() as session:
            yield session

    def follow(self, collection_id: int) -> None:
        """Bring a collection's index up to date with what `write` has committed."""
        self.indexes.follow(collection_id)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction, one writer at a time; a full disk is said as such, and leaves everything as it was."""
        with self._writing:
            try:
                with self._database.writing() as session:
                    yield session
            except OperationalError as error:
                if "full" in str(error.orig):
                    raise DiskFull("the disk is full; nothing was changed, make room and try again") from error
                raise
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise DiskFull("the disk is full; nothing was changed, make room and try again") from error
                raise
