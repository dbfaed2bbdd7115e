"""A collection as a zip file: unpacked, it is what training reads."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from serving.errors import CollectionMissing
from serving.library import Library, NewPicture
from serving.review import dataset_export
from serving.review.dataset_export import dataset_zip
from serving.store.database import open_database
from training.data.labelled import read_labels

DIM = 4


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with open_database(folder / "readleaf.db") as database:
        found = Library(database, folder, model="a" * 64, dim=DIM)
        found.create_collection("garden", "")
        yield found


def add(library, label, data, media_type="image/jpeg"):
    picture = None if data is None else NewPicture(data, media_type, 1, 1)
    vector = np.ones(DIM, dtype=np.float32) / 2
    return library.add_item("garden", vector=vector, label=label, details={}, picture=picture)


def unpacked(library, folder):
    with zipfile.ZipFile(io.BytesIO(b"".join(dataset_zip(library, "garden")))) as archive:
        assert archive.testzip() is None
        archive.extractall(folder)
        return archive


def test_training_reads_it(library, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_export, "AT_ONCE", 2)
    pictures = {"rose": b"one", 'Rosa "Ёж" 🌹': b"two", "of two\tlines\nand a tab": b"three"}
    for label, data in pictures.items():
        add(library, label, data, "image/png")
    add(library, None, b"no label")
    add(library, "no picture", None)
    gone = add(library, "its file is gone", b"gone")
    library.pictures.path(gone.sha256).unlink()
    add(library, "rose", b"of a kind without a suffix", "image/odd")
    archive = unpacked(library, tmp_path / "out")
    files = read_labels(tmp_path / "out")
    assert [(file.class_name, file.path.read_bytes()) for file in files] == [
        ("rose", b"one"),
        ('Rosa "Ёж" 🌹', b"two"),
        ("of two lines and a tab", b"three"),
        ("rose", b"of a kind without a suffix"),
    ]
    assert {(file.source, file.set_name) for file in files} == {("garden", "train")}
    assert [file.path.suffix for file in files] == [".png", ".png", ".png", ""]
    assert {each.compress_type for each in archive.infolist() if each.filename != "labels.tsv"} == {zipfile.ZIP_STORED}


def test_an_empty_collection_is_an_empty_table(library, tmp_path):
    assert unpacked(library, tmp_path / "out").namelist() == ["labels.tsv"]
    assert read_labels(tmp_path / "out") == []


def test_a_missing_collection_is_said_before_the_first_byte(library):
    with pytest.raises(CollectionMissing):
        dataset_zip(library, "nothing")


def test_what_changes_on_the_way_fits_the_table(library, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_export, "AT_ONCE", 1)
    first, second, third = (add(library, "rose", name.encode()) for name in ("a", "b", "c"))
    pieces = dataset_zip(library, "garden")
    got = [next(pieces)]
    library.update_item("garden", first.id, label="tulip")
    library.delete_item("garden", second.id)
    library.update_item("garden", third.id, label="lily")
    got += pieces
    with zipfile.ZipFile(io.BytesIO(b"".join(got))) as archive:
        archive.extractall(tmp_path / "out")
    assert [(file.class_name, file.path.read_bytes()) for file in read_labels(tmp_path / "out")] == [
        ("rose", b"a"),
        ("lily", b"c"),
    ]


def test_memory_is_that_of_a_picture(library):
    size = 1 << 20
    for number in range(24):
        add(library, "rose", bytes([number]) * size)
    tracemalloc.start()
    try:
        total = sum(len(piece) for piece in dataset_zip(library, "garden"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total > 24 * size
    assert peak < 6 * size
