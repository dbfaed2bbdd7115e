import cv2
import numpy as np
import pytest

from training.data.scenes import read_scenes
from training.errors import DataError

HEADER = "file\tx1\ty1\tx2\ty2\tx3\ty3\tx4\ty4\ttext\tset"
TRAIN_PICTURES, TRAIN_TRUTHS = "ch4_training_images", "ch4_training_localization_transcription_gt"
TEST_PICTURES, TEST_TRUTHS = "ch4_test_images", "Challenge4_Test_Task4_GT"


def paint(file, colour=(10, 20, 200)):
    """A picture of one colour (RGB), 30 × 20."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(file), np.full((20, 30, 3), colour[::-1], dtype=np.uint8))


@pytest.fixture
def table(tmp_path):
    """`table(row, …)` writes labels.tsv."""

    def write(*rows, header=HEADER):
        (tmp_path / "labels.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def published(tmp_path):
    """ICDAR'15 as it is published: two photographs of the same name, one to train on and one to test with."""
    folder = tmp_path / "icdar15"
    for pictures, truths, colour, lines in (
        (TRAIN_PICTURES, TRAIN_TRUTHS, (200, 0, 0), ["1,2,21,2,21,9,1,9,Exit", "3,12,9,12,9,18,3,18,###"]),
        (TEST_PICTURES, TEST_TRUTHS, (0, 200, 0), ["5,5,15,6,15,12,5,11,HOTEL"]),
    ):
        paint(folder / pictures / "img_1.png", colour)
        (folder / truths).mkdir()
        (folder / truths / "gt_img_1.txt").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig")
    return folder


def test_a_table(table):
    folder = table(
        "images/b.png\t1\t2\t21\t2\t21\t9\t1\t9\tExit\ttrain",
        'images/a.png\t0.5\t0\t10\t0\t10\t5\t0\t5\t"quoted\ttrain',
        "images/b.png\t3\t12\t9\t12\t9\t18\t3\t18\t###\ttrain",
        "c.png\t0\t0\t10\t0\t10\t5\t0\t5\té, è\tval",
    )
    first, second, third = read_scenes(folder)
    assert first.file == folder / "images/b.png"
    assert first.texts == ("Exit", "###")
    assert first.ignored.tolist() == [False, True]
    np.testing.assert_array_equal(first.quads[0], [(1, 2), (21, 2), (21, 9), (1, 9)])
    assert first.quads.shape == (2, 4, 2)
    assert second.texts == ('"quoted',)
    assert second.quads[0, 0, 0] == 0.5
    assert third.texts == ("é, è",)
    assert [scene.set_name for scene in (first, second, third)] == ["train", "train", "val"]


def test_pixels_are_rgb(table):
    folder = table("a.png\t1\t2\t21\t2\t21\t9\t1\t9\tExit\ttrain")
    paint(folder / "a.png", (10, 20, 200))
    pixels = read_scenes(folder)[0].load()
    assert pixels.shape == (20, 30, 3)
    assert pixels.dtype == np.uint8
    assert pixels[3, 3].tolist() == [10, 20, 200]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.png\t1\t2\ttwo\t2\t21\t9\t1\t9\tExit\ttrain", r"a corner of a\.png is not a number"),
        ("a.png\t1\t2\t21\t2", r"a\.png"),  # cut off among the corners
        ("a.png\t1\t2\t21\t2\t21\t9\t1\t9", r"a\.png"),  # cut off before the text
        ("a.png\t1\t2\t21\t2\t21\t9\t1\t9\tExit", r"a\.png"),  # cut off before the set
    ],
)
def test_broken_rows_are_named(table, row, message):
    with pytest.raises(DataError, match=message):
        read_scenes(table("b.png\t1\t2\t21\t2\t21\t9\t1\t9\tExit\ttrain", row))


def test_columns_that_are_missing_are_named(table):
    with pytest.raises(DataError, match="lacks the columns set, y4"):
        read_scenes(table(header=HEADER.replace("\ty4", "").replace("\tset", "")))


def test_the_published_form(published):
    test, train = sorted(read_scenes(published), key=lambda scene: scene.set_name, reverse=True)
    assert (train.set_name, test.set_name) == ("train", "val")
    assert train.texts == ("Exit", "###")  # no mark of byte order before the first number
    assert train.ignored.tolist() == [False, True]
    np.testing.assert_array_equal(train.quads[0], [(1, 2), (21, 2), (21, 9), (1, 9)])
    assert train.load()[0, 0].tolist() == [200, 0, 0]
    assert test.load()[0, 0].tolist() == [0, 200, 0]  # of the same name, but from its own folder


def test_texts_may_hold_commas_and_lines_may_be_empty(published):
    lines = ["1,2,21,2,21,9,1,9,$1,000,000", "", '3,12,9,12,9,18,3,18,"é"', "3,12,9,12,9,18,3,18,"]
    (published / TRAIN_TRUTHS / "gt_img_1.txt").write_text("\n".join(lines), encoding="utf-8")
    [train] = (scene for scene in read_scenes(published) if scene.set_name == "train")
    assert train.texts == ("$1,000,000", '"é"', "")


def test_a_photograph_without_words(published):
    (published / TRAIN_TRUTHS / "gt_img_1.txt").write_text("\n")
    [train] = (scene for scene in read_scenes(published) if scene.set_name == "train")
    assert train.quads.shape == (0, 4, 2)
    assert train.ignored.shape == (0,)
    assert train.ignored.dtype == bool


@pytest.mark.parametrize("line", ["1,2,21,2,21,9,1,Exit", "1,2,21,2,21,9,1,9", "1;2;21;2;21;9;1;9;Exit", "Exit"])
def test_broken_lines_are_named(published, line):
    file = published / TEST_TRUTHS / "gt_img_1.txt"
    file.write_text(f"5,5,15,6,15,12,5,11,HOTEL\n{line}\n")
    with pytest.raises(DataError, match=r"gt_img_1\.txt, line 2: eight numbers and a text are expected, not"):
        read_scenes(published)


def test_a_file_in_another_encoding_is_named(published):
    file = published / TEST_TRUTHS / "gt_img_1.txt"
    file.write_bytes("5,5,15,6,15,12,5,11,Käse\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"gt_img_1\.txt"):
        read_scenes(published)


def test_a_missing_picture_is_named(published):
    (published / TRAIN_TRUTHS / "gt_img_7.txt").write_text("1,2,21,2,21,9,1,9,Exit\n")
    with pytest.raises(DataError, match=r"gt_img_7\.txt has no picture: img_7\.jpg"):
        read_scenes(published)


def test_a_picture_of_the_other_set_is_not_taken_instead(published):
    (published / TEST_PICTURES / "img_1.png").unlink()
    with pytest.raises(DataError, match=r"gt_img_1\.txt has no picture"):
        read_scenes(published)


def test_pictures_that_belong_to_no_word_do_not_matter(published):
    paint(published / "logo.png")
    paint(published / TRAIN_PICTURES / "img_99.png")
    assert len(read_scenes(published)) == 2


def test_each_set_may_be_read_alone(published):
    train = published / "train"
    train.mkdir()
    for name in (TRAIN_PICTURES, TRAIN_TRUTHS):
        (published / name).rename(train / name.removeprefix("ch4_training_"))
    [scene] = read_scenes(train)
    assert scene.set_name == "train"
    assert scene.texts == ("Exit", "###")


def test_a_folder_that_says_nothing(published):
    folder = published / "elsewhere"
    folder.mkdir()
    (published / TRAIN_PICTURES / "img_1.png").rename(folder / "img_1.png")
    (published / TRAIN_TRUTHS / "gt_img_1.txt").rename(folder / "gt_img_1.txt")
    with pytest.raises(DataError, match="lies below no folder that says train, val or test"):
        read_scenes(folder)


@pytest.mark.parametrize("content", [b"", b"no picture"])
def test_a_broken_picture_is_named(table, content):
    folder = table("a.jpg\t1\t2\t21\t2\t21\t9\t1\t9\tExit\ttrain")
    (folder / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.jpg is not a picture that can be read"):
        read_scenes(folder)[0].load()


def test_no_folder_and_an_empty_one(tmp_path):
    with pytest.raises(DataError, match="there is no data folder at"):
        read_scenes(tmp_path / "none")
    with pytest.raises(DataError, match=r"holds neither labels\.tsv nor files like gt_img_1\.txt"):
        read_scenes(tmp_path)
