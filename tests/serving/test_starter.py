"""The collection a new data folder starts with."""

import shutil
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from serving.library import Library, NewPicture
from serving.repository import load_repository
from serving.settings import Settings
from serving.starter import Starter, read_starter
from serving.store.database import open_database

MODEL = "a" * 64
SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def starter():
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Starter("leaves", "six of them", vectors, [f"kind {row % 3}" for row in range(6)], ["made"] * 6)


def test_written_and_read(starter, tmp_path):
    file = tmp_path / "starter.npz"
    starter.write(file, MODEL)
    again = read_starter(file, MODEL, 4)
    np.testing.assert_allclose(again.vectors, starter.vectors, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(again.vectors, axis=1), 1, atol=1e-6)
    assert (again.name, again.labels, again.sources) == (starter.name, starter.labels, starter.sources)


@pytest.mark.parametrize(
    ("model", "dim", "message"), [("b" * 64, 4, "another model"), (MODEL, 5, r"vectors \[6, 4\] for 6 labels")]
)
def test_not_for_this_model(starter, tmp_path, model, dim, message):
    file = tmp_path / "starter.npz"
    starter.write(file, MODEL)
    with pytest.raises(ValueError, match=message):
        read_starter(file, model, dim)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"labels": [], "sources": [], "vectors": np.zeros((0, 4))}, "for 0 labels"), ({"name": "a/b"}, "slashes")],
)
def test_what_could_not_be_searched(starter, tmp_path, change, message):
    replace(starter, **change).write(tmp_path / "starter.npz", MODEL)
    with pytest.raises(ValueError, match=message):
        read_starter(tmp_path / "starter.npz", MODEL, 4)


def test_labels_are_written_as_everywhere(starter, tmp_path):
    decomposed = unicodedata.normalize("NFD", "Äpfel")
    replace(starter, labels=[decomposed] * 6).write(tmp_path / "starter.npz", MODEL)
    assert read_starter(tmp_path / "starter.npz", MODEL, 4).labels == ["Äpfel"] * 6


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY"])
def test_damaged(tmp_path, content):
    file = tmp_path / "starter.npz"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        read_starter(file, MODEL, 4)


def test_made_once(starter, tmp_path):
    for opening in range(3):
        with open_database(tmp_path / "readleaf.db") as database:
            library = Library(database, tmp_path, model=MODEL, dim=4)
            assert library.add_starter(starter) == (6 if opening == 0 else 0)
            if opening == 0:
                [nearest, *_] = library.search("leaves", starter.vectors[2], 3)
                assert nearest.item.label == "kind 2"
                assert nearest.item.details == {"source": "made", "starter": 2}
                library.delete_collection("leaves")
            assert library.list_collections() == []


def test_renewed_with_a_new_model(starter, tmp_path):
    with open_database(tmp_path / "readleaf.db") as database:
        library = Library(database, tmp_path, model=MODEL, dim=4)
        library.add_starter(starter)
        items = library.list_items("leaves", label=None, after=0, limit=10)
        library.update_item("leaves", items[2].id, label="mended")
        library.delete_item("leaves", items[3].id)
        library.add_item("leaves", vector=starter.vectors[0], label="mine", details={}, picture=None)
        newer = replace(starter, vectors=-starter.vectors)
        library = Library(database, tmp_path, model="b" * 64, dim=4)
        assert library.search("leaves", starter.vectors[2], 9) == []
        assert library.add_starter(newer) == 5
        assert library.search("leaves", -starter.vectors[2], 1)[0].item.label == "mended"
        assert library.get_collection("leaves").outdated == 1
        assert library.add_starter(newer) == 0


@pytest.mark.parametrize("row", ["x", None, -1, 6, 1.5, True, [0], {}])
def test_details_that_only_look_like_the_starters(starter, tmp_path, row):
    """Anybody may write an item's metadata; the next start must survive it, and leave other items alone."""
    with open_database(tmp_path / "readleaf.db") as database:
        library = Library(database, tmp_path, model=MODEL, dim=4)
        library.add_starter(starter)
        vector = starter.vectors[0]
        library.add_item("leaves", vector=vector, label="odd", details={"starter": row}, picture=None)
        picture = NewPicture(b"a picture", "image/png", 1, 1)
        library.add_item("leaves", vector=vector, label="mine", details={"starter": 0}, picture=picture)
        library = Library(database, tmp_path, model="b" * 64, dim=4)
        assert library.add_starter(replace(starter, vectors=-starter.vectors)) == 6
        assert library.get_collection("leaves").outdated == 2


def test_a_collection_of_that_name_stays_as_it_is(starter, tmp_path):
    with open_database(tmp_path / "readleaf.db") as database:
        library = Library(database, tmp_path, model=MODEL, dim=4)
        library.create_collection("leaves", "my own")
        assert not library.add_starter(starter)
        assert library.get_collection("leaves").description == "my own"
        assert library.get_collection("leaves").items == 0


def test_a_service_starts_with_it(start_service):
    [collection] = start_service(starter=True).client.collections().collections
    shipped = load_repository(SHIPPED)["embedder"].manifest
    known = read_starter(SHIPPED / "embedder/1/starter.npz", shipped.sha256, shipped.dim)
    assert collection.name == known.name == "flowers and leaves"
    assert collection.items == len(known.labels)
    assert collection.outdated == 0


def test_a_service_starts_without_it_when_it_is_damaged(start_service, tmp_path):
    models = shutil.copytree(SHIPPED, tmp_path / "models")
    (models / "embedder/1/starter.npz").write_bytes(b"nothing")
    service = start_service(starter=True, models_dir=models)
    assert service.client.collections().collections == []
    assert any("no starter collection" in line for line in service.log)
