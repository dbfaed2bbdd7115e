"""Exact nearest neighbours among the unit vectors of one collection."""

import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import structlog
from numpy.typing import NDArray

from serving.index.on_gpu import Copy
from serving.index.readers_writer import ReadersWriterLock

log = structlog.get_logger()

WORTH_COPYING = 10_000  # vectors: fewer are searched on the CPU before a GPU has begun
MOST_CHANGED = 500  # vectors that may have changed since they were copied
Vectors = NDArray[np.float32]


class VectorIndex:
    """FAISS' flat index by inner product, under our own ids; safe to use from several threads.

    With `copy`, a large index has a copy on the GPU, which is searched in its place. What changed since it was made is
    searched here, so a copy is made only now and then.
    """

    def __init__(self, dim: int, copy: Copy | None = None) -> None:
        self.dim = dim
        self._make_copy = copy
        self._copy: Any = None
        self._copied = threading.Lock()  # a GPU does one thing at a time
        self._changed: set[int] = set()  # ids since the copy was made
        self._lock = ReadersWriterLock()
        self._faiss: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))  # its own annotations miss numpy arrays
        self._ids: set[int] = set()  # FAISS takes an id twice without a word

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, item: int) -> bool:
        return item in self._ids

    def put(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Add vectors [N, dim], or replace those of ids that are known."""
        if not len(ids):
            return
        numbers = np.asarray(ids, dtype=np.int64)
        if vectors.shape != (len(numbers), self.dim) or len(set(ids)) != len(ids):
            raise ValueError(f"{len(ids)} different ids of dimension {self.dim} are wanted, not {list(vectors.shape)}")
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        with self._lock.writing():
            known = [number for number in ids if number in self._ids]
            if known:
                self._faiss.remove_ids(np.asarray(known, dtype=np.int64))
            self._faiss.add_with_ids(rows, numbers)
            self._ids.update(ids)
            self._changed.update(ids)

    def remove(self, ids: Collection[int]) -> None:
        """Forget vectors; ids that are not there are no error."""
        with self._lock.writing():
            known = [number for number in ids if number in self._ids]
            if known:
                self._faiss.remove_ids(np.asarray(known, dtype=np.int64))
                self._ids.difference_update(known)
                self._changed.update(known)

    def search(self, vector: Vectors, count: int, among: Collection[int] | None = None) -> list[tuple[int, float]]:
        """The nearest items and their cosine similarity, nearest first; `among` looks at these ids only."""
        query = np.ascontiguousarray(vector, dtype=np.float32).reshape(1, self.dim)
        with self._lock.reading():
            most = min(count, len(self._ids) if among is None else len(among))
            if not most:
                return []
            if among is None and len(self._ids) >= WORTH_COPYING and self._make_copy is not None:
                found = self._search_copy(query, most)
            else:
                found = _search(self._faiss, query, most, among)
        return [(number, min(1.0, max(-1.0, value))) for number, value in found]

    def _search_copy(self, query: Vectors, most: int) -> list[tuple[int, float]]:
        """The same by the copy, and by what changed since; by the CPU, if the GPU fails."""
        with self._copied:
            try:
                if self._copy is None or len(self._changed) > MOST_CHANGED:
                    self._copy = None  # its memory first
                    self._copy, self._changed = self._make_copy(self._faiss), set()  # type: ignore[misc]
                changed = self._changed  # what belongs to this copy: the next search may make another
                found = _search(self._copy, query, most + len(changed))
            except RuntimeError as error:
                log.warning("index is searched on the CPU from now on", reason=str(error).splitlines()[0])
                self._copy = self._make_copy = None
                return _search(self._faiss, query, most)
        found = [(number, value) for number, value in found if number not in changed]
        if now := changed & self._ids:
            found += _search(self._faiss, query, min(most, len(now)), now)
        return sorted(found, key=lambda each: -each[1])[:most]

    def vectors_of(self, ids: Collection[int]) -> Vectors | None:
        """The vectors of these items, [N, dim]; None if some are not there."""
        with self._lock.reading():
            if not self._ids.issuperset(ids):
                return None
            rows = [self._faiss.reconstruct(number) for number in ids]
        return np.stack(rows) if rows else np.zeros((0, self.dim), dtype=np.float32)

    def write(self, file: Path) -> None:
        """Save all vectors."""
        with self._lock.reading():
            faiss.write_index(self._faiss, str(file))

    @classmethod
    def read(cls, file: Path, dim: int, copy: Copy | None = None) -> "VectorIndex":
        """Load what `write` saved; raises ValueError if the file holds something else."""
        try:
            stored = faiss.read_index(str(file))
        except RuntimeError as error:
            raise ValueError(f"{file} is no index") from error
        if not isinstance(stored, faiss.IndexIDMap2) or stored.d != dim:
            raise ValueError(f"{file} is another kind of index")
        index = cls(dim, copy)
        index._faiss = stored
        index._ids = set(faiss.vector_to_array(stored.id_map).tolist())
        return index


def _search(index: Any, query: Vectors, most: int, among: Collection[int] | None = None) -> list[tuple[int, float]]:
    """Ids and similarities, nearest first."""
    parameters = None
    if among is not None:
        chosen = np.fromiter(among, dtype=np.int64, count=len(among))
        parameters = faiss.SearchParameters()
        parameters.sel = faiss.IDSelectorBatch(chosen)
    similarities, ids = index.search(query, most, params=parameters)
    return [
        (number, value) for number, value in zip(ids[0].tolist(), similarities[0].tolist(), strict=True) if number >= 0
    ]
