import cv2
import lmdb
import numpy as np
import pytest

from training.data.words import read_words
from training.errors import DataError


def picture(shade: int) -> bytes:
    _, data = cv2.imencode(".png", np.full((20, 60, 3), (shade, 0, 0), dtype=np.uint8))  # BGR: blue
    return data.tobytes()


def write_lmdb(folder, words, *, count=None):
    folder.mkdir(parents=True)
    with lmdb.open(str(folder), map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"num-samples", str(count or len(words)).encode())
        for number, word in enumerate(words, start=1):
            transaction.put(f"image-{number:09d}".encode(), picture(10 * number))
            transaction.put(f"label-{number:09d}".encode(), word.encode())


def test_a_table_of_crops(tmp_path):
    (tmp_path / "a.png").write_bytes(picture(200))
    (tmp_path / "labels.tsv").write_text('file\ttext\tsource\tset\na.png\t"Hi!\tstreet\tval\n')
    [crop] = read_words(tmp_path)
    assert (crop.text, crop.source, crop.set_name) == ('"Hi!', "street", "val")
    pixels = crop.load()
    assert pixels.shape == (20, 60, 3)
    assert pixels[0, 0].tolist() == [0, 0, 200]  # RGB


def test_lmdb_in_the_usual_form(tmp_path):
    write_lmdb(tmp_path / "training/MJ", ["one", "zwölf"])
    write_lmdb(tmp_path / "validation", ["three"])
    crops = read_words(tmp_path)
    assert [(crop.text, crop.source, crop.set_name) for crop in crops] == [
        ("one", "MJ", "train"),
        ("zwölf", "MJ", "train"),
        ("three", "validation", "val"),
    ]
    assert crops[1].load()[0, 0].tolist() == [0, 0, 20]


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(DataError, match="there is no data folder"):
        read_words(tmp_path / "none")
    with pytest.raises(DataError, match="holds neither"):
        read_words(tmp_path)
    (tmp_path / "labels.tsv").write_text("file\ttext\n")
    with pytest.raises(DataError, match="lacks the columns set, source"):
        read_words(tmp_path)


def test_broken_sets_are_named(tmp_path):
    write_lmdb(tmp_path / "one/somewhere", ["a"])
    with pytest.raises(DataError, match="is it for training or for validation"):
        read_words(tmp_path / "one")
    write_lmdb(tmp_path / "two/train", ["a"], count=2)
    with pytest.raises(DataError, match="promises 2 words, but has no label 2"):
        read_words(tmp_path / "two")
    (tmp_path / "a.jpg").write_text("no picture")
    (tmp_path / "labels.tsv").write_text("file\ttext\tsource\tset\na.jpg\tHi\tstreet\tval\n")
    with pytest.raises(DataError, match="not a picture that can be read"):
        read_words(tmp_path)[0].load()
