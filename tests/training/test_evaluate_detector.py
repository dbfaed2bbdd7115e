import cv2
import numpy as np
import pytest

from training.data.scenes import Scene
from training.errors import DataError
from training.evaluate_detector import (
    SURROUNDINGS,
    TURNS,
    DetectorFigures,
    ReadWords,
    Tally,
    best_score,
    evaluate_reading,
    judge,
    turned,
    validation_scenes,
)
from training.metrics.text_detection import Counts

COLOURS = ((250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0))  # of a word's corners, in order
# In the corners of the picture, along it, and turned.
QUADS = np.array(
    [
        [(4, 4), (50, 4), (50, 24), (4, 24)],
        [(145, 95), (90, 95), (90, 70), (145, 70)],  # on its head
        [(70, 30), (110, 40), (105, 60), (65, 50)],
    ],
    dtype=float,
)
TEXTS = ("leaf", "Oak42", "###")


@pytest.fixture
def scene(tmp_path):
    """A mark of 7 × 7 pixels at each corner of each word: [100, 150, 3]."""
    pixels = np.full((100, 150, 3), 30, dtype=np.uint8)
    for quad in QUADS.astype(int):
        for (x, y), colour in zip(quad, COLOURS, strict=True):
            pixels[y - 3 : y + 4, x - 3 : x + 4] = colour
    cv2.imwrite(str(tmp_path / "a.png"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    return Scene(tmp_path / "a.png", QUADS, TEXTS, "val")


@pytest.mark.parametrize("degrees", [0, *TURNS, 270, -30])
def test_corners_land_where_the_quadrilaterals_say(scene, degrees):
    shown = turned(scene, degrees)
    height, width = shown.pixels.shape[:2]
    for quad in shown.quads:
        for (x, y), colour in zip(np.rint(quad).astype(int), COLOURS, strict=True):
            assert 0 <= x < width
            assert 0 <= y < height
            assert np.abs(shown.pixels[y, x].astype(int) - colour).max() < 40
    along = (shown.quads[0][1] - shown.quads[0][0]) / 46
    np.testing.assert_allclose(along, [np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))], atol=1e-9)
    assert shown.texts == TEXTS
    assert shown.ignored == [False, False, True]


@pytest.mark.parametrize(("degrees", "quarters"), [(0, 0), (90, 3), (180, 2), (270, 1)])
def test_quarter_turns_keep_every_pixel(scene, degrees, quarters):
    np.testing.assert_array_equal(turned(scene, degrees).pixels, np.rot90(scene.load(), quarters))


@pytest.mark.parametrize("degrees", [15, 45])
def test_the_canvas_grows_and_is_grey_where_it_is_empty(scene, degrees):
    shown = turned(scene, degrees)
    height, width = shown.pixels.shape[:2]
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    assert width == int(np.ceil(150 * cosine + 100 * sine))
    assert height == int(np.ceil(150 * sine + 100 * cosine))
    for y, x in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        assert shown.pixels[y, x].tolist() == [SURROUNDINGS] * 3


def test_perfect_words(scene):
    tally = judge(turned(scene, 15), ReadWords(turned(scene, 15).quads, ["LEAF", "oak-42", "?"]))
    assert tally == Tally(Counts(2, 2, 2), Counts(2, 2, 2), 2)
    assert tally.figures("a") == {
        "a/precision": 1.0,
        "a/recall": 1.0,
        "a/f1": 1.0,
        "a/end to end f1": 1.0,
        "a/right directions": 1.0,
    }


@pytest.mark.parametrize(("corners", "right"), [(0, 2), (1, 0), (2, 0), (3, 0)])
def test_a_word_that_begins_at_another_corner_is_found_the_wrong_way(scene, corners, right):
    shown = turned(scene, 0)
    tally = judge(shown, ReadWords(np.roll(shown.quads, corners, axis=1), list(TEXTS)))
    assert tally.found == Counts(2, 2, 2)
    assert tally.right_way == right


def test_words_read_wrong_words_missed_and_words_made_up(scene):
    shown = turned(scene, 0)
    tally = judge(shown, ReadWords(shown.quads[:2], ["leaf", "Oak43"]))
    assert (tally.found, tally.read) == (Counts(2, 2, 2), Counts(1, 2, 2))
    tally = judge(shown, ReadWords(np.stack([shown.quads[1], shown.quads[1] + 500]), ["Oak42", "no"]))
    assert tally == Tally(Counts(1, 2, 2), Counts(1, 2, 2), 1)
    nothing = judge(shown, ReadWords(np.zeros((0, 4, 2)), []))
    assert nothing == Tally(Counts(0, 0, 2), Counts(0, 0, 2), 0)
    assert set(nothing.figures("a").values()) == {0.0}
    assert (tally + nothing).found == Counts(1, 2, 4)


def test_a_perfect_reader_has_perfect_figures(scene):
    known = {turned(scene, degrees).pixels.tobytes(): turned(scene, degrees) for degrees in (0, *TURNS)}

    def read(picture):
        shown = known[picture.tobytes()]
        return ReadWords(shown.quads, list(shown.texts))

    figures = evaluate_reading([scene], read)
    names = ["reading", *(f"turned by {degrees}" for degrees in TURNS)]
    parts = ["precision", "recall", "f1", "end to end f1", "right directions"]
    assert list(figures) == [f"{name}/{part}" for name in names for part in parts]
    assert set(figures.values()) == {1.0}

    def read_upside_down(picture):
        words = read(picture)
        return ReadWords(np.roll(words.quads, 2, axis=1), words.texts)

    flipped = evaluate_reading([scene], read_upside_down, (90,))
    assert [flipped[f"{name}/right directions"] for name in ("reading", "turned by 90")] == [0, 0]
    assert [flipped[f"{name}/end to end f1"] for name in ("reading", "turned by 90")] == [1, 1]
    assert len(flipped) == 10


def test_figures_are_of_all_pictures(scene):
    """Found in one of two pictures: counted by words, not by pictures."""
    asked = []

    def read(picture):
        asked.append(picture)
        return ReadWords(QUADS, list(TEXTS)) if len(asked) == 1 else ReadWords(np.zeros((0, 4, 2)), [])

    figures = evaluate_reading([scene, scene], read, ())
    assert figures["reading/recall"] == 0.5
    assert figures["reading/precision"] == 1
    assert figures["reading/f1"] == 0.6667
    assert figures["reading/right directions"] == 1


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0.8, 0.71, 0.56), 0.7),  # both words are kept, the made-up one is not: 0.575 would do as well
        ((0.8, 0.56, 0.71), 0.55),  # the second word is worth more than the made-up one costs
        ((0.95, 0.95, 0.95), 0.9),  # nothing is gained by a lower one
    ],
)
def test_of_thresholds_that_are_as_good_the_highest(scene, scores, best):
    words = ReadWords(np.stack([*QUADS[:2], QUADS[0] + 500]), ["leaf", "Oak42", "no"], np.array(scores))
    assert best_score([scene], lambda _: words) == pytest.approx(best)


def test_scenes_to_validate_with(tmp_path):
    header = "file\tx1\ty1\tx2\ty2\tx3\ty3\tx4\ty4\ttext\tset"
    numbers = "0\t0\t9\t0\t9\t5\t0\t5"
    for name, set_name in (("one", "train"), ("two", "val")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "labels.tsv").write_text(f"{header}\n{name}.png\t{numbers}\tleaf\t{set_name}\n")
    found = validation_scenes([tmp_path / "one", tmp_path / "two"])
    assert [scene.file.name for scene in found] == ["two.png"]
    with pytest.raises(DataError, match="no photograph of the set val"):
        validation_scenes([tmp_path / "one"])


def test_figures_are_kept_beside_their_weights(tmp_path):
    weights = tmp_path / "best.pt"
    weights.write_bytes(b"some")
    kept = DetectorFigures({"detection/f1": 0.7}, heart=0.4, word=0.65).keep(str(weights))
    assert DetectorFigures.of(str(weights)) == kept
    assert (kept.heart, kept.word) == (0.4, 0.65)
    weights.write_bytes(b"other")
    with pytest.raises(DataError, match="figures of other weights"):
        DetectorFigures.of(str(weights))
    (tmp_path / "metrics.json").write_text('{"metrics": {}, "temperature": 1.0}')
    with pytest.raises(DataError, match="holds no figures"):
        DetectorFigures.of(str(weights))
