import io
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from serving.images import ImageLimits, decode, fit
from training.data.labelled import load_pixels, read_labels
from training.errors import DataError


def write_table(folder, text):
    (folder / "labels.tsv").write_text(text, encoding="utf-8")


def test_rows_are_read_without_quoting(tmp_path):
    write_table(tmp_path, "file\tclass_name\tsource\tset\nimages/a.jpg\tlady's \"slipper\tflowers\tval\n")
    [row] = read_labels(tmp_path)
    assert row.class_name == "lady's \"slipper"
    assert row.path == tmp_path / "images/a.jpg"
    assert (row.source, row.set_name) == ("flowers", "val")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match="there is no data folder"):
        read_labels(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"neither labels\.tsv nor a folder for each class"):
        read_labels(tmp_path)
    write_table(tmp_path, "file\tsource\n")
    with pytest.raises(DataError, match="lacks the columns class_name, set"):
        read_labels(tmp_path)


def fill(folder, count, suffix=".jpg"):
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number}{suffix}").touch()


def test_a_folder_for_each_class(tmp_path):
    fill(tmp_path / "rose", 10)
    fill(tmp_path / "oak/autumn", 4, ".PNG")
    fill(tmp_path / ".hidden", 3)
    (tmp_path / "rose/notes.txt").touch()
    files = read_labels(tmp_path)
    assert Counter((file.class_name, file.set_name) for file in files) == {
        ("rose", "train"): 8,
        ("rose", "val"): 2,
        ("oak", "train"): 4,
    }
    assert {file.source for file in files} == {tmp_path.name}
    assert files == read_labels(tmp_path)


def test_the_order_is_not_that_of_the_disk(tmp_path):
    for place, names in ((tmp_path / "one", "abcdefgh"), (tmp_path / "two", "hgfedcba")):
        for set_name in ("train", "val"):
            (place / set_name / "rose").mkdir(parents=True)
            for name in names:
                (place / set_name / "rose" / f"{name}.jpg").touch()
    one, two = (
        [file.path.relative_to(file.path.parents[2]) for file in read_labels(tmp_path / name)]
        for name in ("one", "two")
    )
    assert one == two


def test_folders_of_classes_below_their_sets(tmp_path):
    for name, count in (("train", 3), ("val", 1), ("val_unseen_class", 2)):
        fill(tmp_path / name / "rose", count)
    assert Counter(file.set_name for file in read_labels(tmp_path)) == {"train": 3, "val": 1, "val_unseen_class": 2}


def test_a_class_without_pictures(tmp_path):
    fill(tmp_path / "rose", 2)
    (tmp_path / "oak").mkdir()
    with pytest.raises(DataError, match="the class oak has no picture"):
        read_labels(tmp_path)


@pytest.mark.parametrize("size", [(300, 220), (160, 213), (900, 1300), (64, 64), (2000, 90)])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_training_and_serving_see_the_same_pixels(tmp_path, photo, size, orientation):
    file = tmp_path / "leaf.jpg"
    exif = Image.Exif()
    exif[0x0112] = orientation
    photo(*size).save(file, quality=90, exif=exif)
    served = fit(decode(file.read_bytes(), ImageLimits(10**8, 10**8), min_side=128), 128, 96)
    assert np.array_equal(load_pixels(file, 128, 96), served)


def test_gray_pictures_have_three_channels(tmp_path, photo):
    stream = io.BytesIO()
    photo().convert("L").save(stream, "PNG")
    file = tmp_path / "gray.png"
    file.write_bytes(stream.getvalue())
    assert load_pixels(file, 32, 32).shape == (32, 32, 3)
