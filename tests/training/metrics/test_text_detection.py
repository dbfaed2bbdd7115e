import numpy as np
import pytest

from training.errors import DataError
from training.metrics.rotated_iou import corners
from training.metrics.text_detection import Counts, detection_counts, end_to_end_counts, match_words


def boxes(*rows):
    """Upright boxes (left, top, width, height) as quadrilaterals."""
    return np.array([[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in rows], dtype=float)


WORDS = boxes((0, 0, 40, 10), (100, 0, 40, 10), (200, 0, 40, 10))
CARE = [False, False, True]  # the third is "don't care"


def test_all_found():
    counts = detection_counts(WORDS, WORDS, CARE)
    assert counts == Counts(matched=2, detected=2, wanted=2)
    assert (counts.precision, counts.recall, counts.f1) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("detection", "matched"),
    [
        ((0, 0, 20, 10), 0),  # IoU of exactly one half is not above it
        ((0, 0, 21, 10), 1),
        ((5, 2, 40, 10), 1),
        ((20, 0, 40, 10), 0),
    ],
)
def test_a_match_needs_more_than_half(detection, matched):
    assert detection_counts(boxes(detection), WORDS, CARE) == Counts(matched, 1, 2)


@pytest.mark.parametrize(
    ("detection", "counted"),
    [
        ((180, 0, 40, 10), 1),  # half of it lies in the don't-care word: it counts
        ((181, 0, 40, 10), 0),
        ((210, 3, 5, 5), 0),  # a small one inside: covered whole, however small its IoU
        ((150, 0, 140, 10), 1),  # a large one around: mostly elsewhere
    ],
)
def test_a_detection_mostly_in_a_dont_care_region_is_left_out(detection, counted):
    assert detection_counts(boxes(detection), WORDS, CARE) == Counts(0, counted, 2)


def test_each_word_and_each_detection_matches_once():
    twice = boxes((0, 0, 40, 10), (1, 0, 40, 10))
    assert detection_counts(twice, WORDS, CARE) == Counts(1, 2, 2)
    stacked = boxes((0, 0, 40, 10), (0, 0, 40, 10))
    assert detection_counts(boxes((0, 0, 40, 10)), stacked, [False, False]) == Counts(1, 1, 2)


def test_reading_is_compared_on_letters_and_digits():
    readings = ["exit", "HOTEL", "-"]
    assert end_to_end_counts(WORDS, readings, WORDS, ["Exit!", "motel", "###"], CARE) == Counts(1, 2, 2)
    assert end_to_end_counts(WORDS, readings, WORDS, ["EXIT", "hotel", "###"], CARE) == Counts(2, 2, 2)


def test_turned_words():
    turned = corners(np.array([[50.0, 50, 80, 10, 30]]))
    upright = corners(np.array([[50.0, 50, 80, 10, 0]]))
    assert match_words(turned, turned, [False]).pairs == [(0, 0)]
    assert match_words(upright, turned, [False]).pairs == []
    backwards = turned[:, ::-1]
    assert match_words(backwards, turned, [False]).pairs == [(0, 0)]


def test_a_crossed_quadrilateral_is_measured():
    crossed = np.array([[(0, 0), (40, 10), (40, 0), (0, 10)]], dtype=float)
    assert match_words(crossed, crossed, [False]).pairs == [(0, 0)]


def test_nothing_detected_and_nothing_wanted():
    none = np.empty((0, 4, 2))
    assert detection_counts(none, WORDS, CARE) == Counts(0, 0, 2)
    empty = detection_counts(none, none, [])
    assert (empty.precision, empty.recall, empty.f1) == (0.0, 0.0, 0.0)
    flat = boxes((0, 0, 40, 0))
    assert detection_counts(flat, flat, [False]) == Counts(0, 1, 1)


def test_counts_of_pictures_add_up():
    total = Counts(1, 2, 4) + Counts(2, 2, 2)
    assert total == Counts(3, 4, 6)
    assert total.precision == 0.75
    assert total.recall == 0.5
    assert total.f1 == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((1, 5)), WORDS, CARE), r"detections must be \[N, 4, 2\]"),
        ((WORDS * np.nan, WORDS, CARE), "detections holds NaN"),
        ((WORDS, WORDS, CARE[:2]), "dont_care has 2 marks for 3 truths"),
    ],
)
def test_bad_shapes(arguments, message):
    with pytest.raises(DataError, match=message):
        match_words(*arguments)


def test_a_text_for_each_shape():
    with pytest.raises(DataError, match="readings has 1 texts for 3 shapes"):
        end_to_end_counts(WORDS, ["a"], WORDS, ["a", "b", "c"], CARE)
