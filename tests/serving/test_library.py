"""The library against a plain model of it, through restarts; and what happens to snapshots that are not good."""

import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from serving.errors import CollectionMissing, DatabaseUnusable, ItemMissing, VectorOutdated
from serving.index import keeper
from serving.library import Library, NewPicture
from serving.store.database import open_database

DIM = 4
MODEL = "a" * 64


def vector_of(seed, dim=DIM):
    found = np.random.default_rng(seed).normal(size=dim).astype(np.float32)
    return found / np.linalg.norm(found)


@contextmanager
def opened(folder, model=MODEL, dim=DIM):
    with open_database(folder / "readleaf.db") as database:
        library = Library(database, folder, model=model, dim=dim)
        yield library


class Machine(RuleBasedStateMachine):
    """add, relabel, delete, search, restart (clean or not) beside a dictionary that knows the right answers."""

    folder = None

    def __init__(self):
        super().__init__()
        Machine.round += 1
        self.place = Machine.folder / str(Machine.round)
        self.place.mkdir()
        self.truth = {}
        self.context = opened(self.place)
        self.library = self.context.__enter__()
        self.library.create_collection("c", "")

    def teardown(self):
        self.context.__exit__(None, None, None)

    @rule(seed=st.integers(0, 10_000), label=st.sampled_from(["a", "b", None]))
    def add(self, seed, label):
        item = self.library.add_item("c", vector=vector_of(seed), label=label, details={}, picture=None)
        assert item.id not in self.truth
        self.truth[item.id] = (vector_of(seed), label)

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), label=st.sampled_from(["a", "b", "c", None]))
    def relabel(self, data, label):
        number = data.draw(st.sampled_from(sorted(self.truth)))
        self.library.update_item("c", number, label=label)
        self.truth[number] = (self.truth[number][0], label)

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def delete(self, data):
        number = data.draw(st.sampled_from(sorted(self.truth)))
        self.library.delete_item("c", number)
        del self.truth[number]

    @rule(seed=st.integers(0, 10_000), count=st.integers(1, 12), label=st.sampled_from([None, "a", "c"]))
    def search(self, seed, count, label):
        query = vector_of(seed)
        right = {n: (float(v @ query), own) for n, (v, own) in self.truth.items() if label in (None, own)}
        found = self.library.search("c", query, count, label)
        assert len(found) == min(count, len(right))
        for neighbour in found:
            similarity, own = right[neighbour.item.id]
            assert neighbour.item.label == own
            assert abs(neighbour.similarity - similarity) < 1e-5
        expected = sorted((similarity for similarity, _ in right.values()), reverse=True)[:count]
        np.testing.assert_allclose([neighbour.similarity for neighbour in found], expected, atol=1e-5)

    @rule(clean=st.booleans())
    def restart(self, clean):
        if clean:
            self.library.close()  # writes snapshots; without it the next start has older ones to catch up from
        self.context.__exit__(None, None, None)
        self.context = opened(self.place)
        self.library = self.context.__enter__()

    @invariant()
    def counts_agree(self):
        assert self.library.get_collection("c").items == len(self.truth)


def test_state_machine(tmp_path, rounds):
    Machine.folder, Machine.round = tmp_path, 0
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=rounds(25, 400),
            stateful_step_count=rounds(30, 60),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def filled(tmp_path):
    """A folder with 20 items in a snapshot, and 5 more after it."""
    with opened(tmp_path) as library:
        library.create_collection("c", "")
        for seed in range(20):
            library.add_item("c", vector=vector_of(seed), label=str(seed), details={}, picture=None)
        library.close()
        for seed in range(20, 25):
            library.add_item("c", vector=vector_of(seed), label=str(seed), details={}, picture=None)
    return tmp_path


def finds_all(folder):
    with opened(folder) as library:
        for seed in range(25):
            (best,) = library.search("c", vector_of(seed), 1)
            if best.item.label != str(seed):
                return False
        return len(library.search("c", vector_of(0), 100)) == 25


def test_a_snapshot_is_caught_up(filled, monkeypatch):
    read = []
    original = keeper.IndexKeeper._apply
    monkeypatch.setattr(keeper.IndexKeeper, "_apply", lambda self, *rest: read.append(rest[2]) or original(self, *rest))
    assert finds_all(filled)
    assert sum(map(len, read)) == 5  # the others came from the snapshot


def spoil_bytes(folder):
    (file,) = folder.glob("*.faiss")
    data = bytearray(file.read_bytes())
    data[-3] ^= 255
    file.write_bytes(bytes(data))


def cut_short(folder):
    (file,) = folder.glob("*.faiss")
    file.write_bytes(file.read_bytes()[:50])


def lose_vectors(folder):
    (file,) = folder.glob("*.faiss")
    file.unlink()


def spoil_description(folder):
    (file,) = folder.glob("*.json")
    file.write_text("{")


def another_model(folder):
    (file,) = folder.glob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model": "b" * 64}))


def ahead_of_the_database(folder):
    (file,) = folder.glob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"followed": 10_000}))


@pytest.mark.parametrize(
    "harm", [spoil_bytes, cut_short, lose_vectors, spoil_description, another_model, ahead_of_the_database]
)
def test_a_bad_snapshot_is_made_anew(filled, harm):
    harm(filled / "index" / MODEL[:16] / "1")
    assert finds_all(filled)


def test_vectors_of_another_model_are_not_compared(filled):
    with opened(filled, model="b" * 64, dim=6) as library:
        assert library.search("c", vector_of(1, dim=6), 5) == []
        item = library.add_item("c", vector=vector_of(1, dim=6), label="new", details={}, picture=None)
        assert [found.item.id for found in library.search("c", vector_of(1, dim=6), 5)] == [item.id]
    assert finds_all_but_new(filled)


def finds_all_but_new(folder):
    with opened(folder) as library:
        return len(library.search("c", vector_of(0), 100)) == 25


def test_a_collection_is_gone_with_its_snapshot_and_pictures(filled):
    with opened(filled) as library:
        picture = NewPicture(b"bytes", "image/jpeg", 1, 1)
        item = library.add_item("c", vector=vector_of(1), label=None, details={}, picture=picture)
        assert library.pictures.path(item.sha256).exists()
        library.close()
        library.delete_collection("c")
        assert not library.pictures.path(item.sha256).exists()
        assert not (filled / "index" / MODEL[:16] / "1").exists()
        library.create_collection("c", "")
        assert library.search("c", vector_of(1), 5) == []
        with pytest.raises(ItemMissing):
            library.get_item("c", item.id)


@pytest.mark.parametrize(
    "deletes", [lambda library, item: library.delete_item("c", item), lambda library, _: library.delete_collection("c")]
)
def test_a_picture_added_elsewhere_while_it_is_deleted_here_is_kept(tmp_path, monkeypatch, deletes):
    with opened(tmp_path) as library:
        library.create_collection("c", "")
        library.create_collection("other", "")
        picture = NewPicture(b"bytes", "image/jpeg", 1, 1)
        values = {"vector": vector_of(1), "label": None, "details": {}, "picture": picture}
        item = library.add_item("c", **values)
        elsewhere = threading.Thread(target=library.add_item, args=("other",), kwargs=values)
        forget = library.pictures.forget

        def slowly(name):
            elsewhere.start()
            elsewhere.join(timeout=0.3)  # time enough to come in between, if it could
            forget(name)

        monkeypatch.setattr(library.pictures, "forget", slowly)
        deletes(library, item.id)
        elsewhere.join()
        assert library.get_collection("other").items == 1
        assert library.pictures.read(item.sha256) == b"bytes"


def test_many_vectors_at_once(tmp_path):
    with opened(tmp_path) as library:
        library.create_collection("c", "")
        vectors = np.stack([vector_of(seed) for seed in range(3000)])
        library.add_vectors("c", vectors, [str(seed) for seed in range(3000)])
        assert library.get_collection("c").items == 3000
        for seed in (0, 1234, 2999):
            assert library.search("c", vector_of(seed), 1)[0].item.label == str(seed)
        with pytest.raises(ValueError, match="zip"):
            library.add_vectors("c", vectors[:2], ["one"])
        assert library.get_collection("c").items == 3000


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    with opened(tmp_path) as library:
        library.create_collection("c", "")

        def broken(_name, _data):
            raise PermissionError("no")

        monkeypatch.setattr(library.pictures, "keep", broken)
        picture = NewPicture(b"bytes", "image/jpeg", 1, 1)
        with pytest.raises(PermissionError):
            library.add_item("c", vector=vector_of(1), label=None, details={}, picture=picture)
        assert library.get_collection("c").items == 0
        with pytest.raises(CollectionMissing):
            library.get_collection("d")


def test_a_database_that_is_none(tmp_path):
    (tmp_path / "readleaf.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(DatabaseUnusable, match="not a database that can be used"), opened(tmp_path):
        pass


def test_a_database_from_the_future(filled):
    import sqlite3

    with sqlite3.connect(filled / "readleaf.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="newer Readleaf"), opened(filled):
        pass


def test_vectors_of_a_model_that_is_not_in_use_are_not_kept(filled):
    """The embedder may be switched between making a vector and keeping it."""
    with opened(filled) as library:
        with pytest.raises(VectorOutdated, match="switched meanwhile"):
            library.add_item("c", vector=vector_of(30), label="x", details={}, picture=None, model="b" * 64)
        [first, *_] = library.list_items("c", label="0", after=0, limit=1)
        with pytest.raises(VectorOutdated):
            library.renew_vector("c", first.id, vector_of(30), "b" * 64)
        item = library.add_item("c", vector=vector_of(30), label="mine", details={}, picture=None, model=MODEL)
        library.renew_vector("c", first.id, vector_of(31), MODEL)
        assert library.get_collection("c").items == 26
        assert library.search("c", vector_of(30), 1)[0].item.id == item.id
        assert library.search("c", vector_of(31), 1)[0].item.id == first.id


def test_another_embedder_is_adopted(filled):
    """Searches that began before go on in its predecessor's index, and find what they would have found."""
    with opened(filled) as library:
        before = library.indexes
        after = library.open_indexes("b" * 64, 6)
        library.adopt("b" * 64, after)
        assert after is library.indexes is not before
        assert library.model == "b" * 64
        library.close()
        assert [child.name for child in (filled / "index").iterdir()] == ["b" * 16]  # snapshots of no other
        assert library.get_collection("c").outdated == 25
        assert library.search("c", vector_of(3, dim=6), 5) == []
        item = library.add_item("c", vector=vector_of(3, dim=6), label="new", details={}, picture=None)
        assert [found.item.id for found in library.search("c", vector_of(3, dim=6), 5)] == [item.id]
        [found] = library.search("c", vector_of(3), 1, indexes=before)
        assert (found.item.label, found.similarity) == ("3", pytest.approx(1, abs=1e-6))


def test_how_crowded_it_is(filled):
    """Of each item the similarity to its third neighbour; nothing, if the index is not of these items' model."""
    with opened(filled) as library:
        items = library.list_items("c", label=None, after=0, limit=100)
        vectors = np.stack([vector_of(int(item.label)) for item in items])
        similarities = vectors @ vectors.T
        np.fill_diagonal(similarities, -np.inf)
        expected = np.sort(similarities, axis=1)[:, -3]
        wanted = [item.id for item in items]
        assert library.crowding("c", wanted, 3) == pytest.approx(expected.tolist(), abs=1e-6)
        assert library.crowding("c", wanted[:1], 25) == []  # it has 24
        before = library.indexes
        library.adopt("b" * 64, library.open_indexes("b" * 64, 6))
        assert library.crowding("c", wanted, 3) == []
        assert library.crowding("c", wanted, 3, indexes=before) == pytest.approx(expected.tolist(), abs=1e-6)


def test_writes_wait_while_the_library_is_held(filled):
    """Reads and searches go on, and so do writes of the one who holds it."""
    with opened(filled) as library:

        def add():
            library.add_item("c", vector=vector_of(40), label="waits", details={}, picture=None)

        with library.held():
            writer = threading.Thread(target=add)
            writer.start()
            writer.join(0.2)
            assert writer.is_alive()
            assert library.search("c", vector_of(1), 1)[0].item.label == "1"
            item = library.add_item("c", vector=vector_of(41), label="first", details={}, picture=None)
        writer.join(10)
        assert not writer.is_alive()
        last = library.list_items("c", label="waits", after=0, limit=1)[0]
        assert last.id > item.id
