"""A rebuild after the model was changed, on a real database."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

from serving.images import ImageLimits
from serving.jobs import Jobs
from serving.library import Library, NewPicture
from serving.store.database import open_database

OLD, NEW = "a" * 64, "b" * 64
LIMITS = ImageLimits(max_bytes=10**6, max_pixels=10**6)


@dataclass(frozen=True)
class Described:
    """All that jobs want to know of an embedder's manifest."""

    sha256: str


class Embeds:
    """An embedder that makes vectors of what files are made of."""

    manifest = Described(NEW)

    def embed_one(self, upload):
        return vector(upload.data, 6)


@dataclass
class Answers:
    """A switchboard that nobody touches."""

    embedder: Embeds


@dataclass
class Switches:
    current: Answers


def vector(data, dim):
    found = np.random.default_rng(list(data)).normal(size=dim).astype(np.float32)
    return found / np.linalg.norm(found)


@pytest.fixture
def folder(tmp_path, photo, encoded):
    """Ten pictures with vectors of an old model of four dimensions, one of them only a vector."""
    with open_database(tmp_path / "readleaf.db") as database:
        library = Library(database, tmp_path, model=OLD, dim=4)
        library.create_collection("c", "")
        for seed in range(9):
            data = encoded(photo(40, 30, seed=seed))
            picture = NewPicture(data, "image/jpeg", 40, 30)
            library.add_item("c", vector=vector(data, 4), label=str(seed), details={}, picture=picture)
        library.add_item("c", vector=vector(b"x", 4), label="no picture", details={}, picture=None)
        library.close()
    return tmp_path


def test_a_rebuild_makes_vectors_of_the_new_model(folder, photo, encoded):
    with open_database(folder / "readleaf.db") as database:
        library = Library(database, folder, model=NEW, dim=6)
        query = vector(encoded(photo(40, 30, seed=3)), 6)
        assert library.search("c", query, 5) == []
        assert library.get_collection("c").outdated == 10
        jobs = Jobs(database, library, Switches(Answers(Embeds())), folder / "jobs", LIMITS)
        number = jobs.rebuild("c").id
        while jobs.get(number).state in ("waiting", "running"):
            time.sleep(0.02)
        jobs.close()
        assert jobs.get(number).state == "done"
        count, errors = jobs.errors(number)
        assert count == 1
        assert "only the vector is known" in errors[0].message
        assert library.get_collection("c").outdated == 1
        best = library.search("c", query, 1)[0]
        assert (best.item.label, best.similarity) == ("3", pytest.approx(1, abs=1e-5))
        assert jobs.rebuild("c").total == 1
