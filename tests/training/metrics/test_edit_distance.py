from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.errors import DataError
from training.metrics.edit_distance import edit_distances, score_readings

GOLDEN = np.load(Path(__file__).parents[2] / "golden/metrics.npz")


def slow_distance(a, b):
    """The recursion itself."""

    @cache
    def distance(i, j):
        if not i or not j:
            return i + j
        replaced = distance(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(replaced, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(a), len(b))


def test_golden():
    words = GOLDEN["words"].tolist()
    for row, word in enumerate(words):
        assert edit_distances([word] * len(words), words).tolist() == GOLDEN["ed"][row].tolist()


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5))
def test_equals_its_slow_twin(pairs):
    readings, truths = [a for a, _ in pairs], [b for _, b in pairs]
    assert edit_distances(readings, truths).tolist() == [slow_distance(a, b) for a, b in pairs]


def test_figures():
    figures = score_readings(["Leaf!", "oak", "wilow", ""], ["leaf", "oat", "willow", "..."])
    assert figures.accuracy == 0.5
    assert figures.ted == 2
    assert figures.ned == pytest.approx((1 + 2 / 3 + 5 / 6 + 1) / 4)
    assert figures.words == 4
    strict = score_readings(["Leaf!"], ["leaf"], alphanumeric=False)
    assert (strict.accuracy, strict.ted) == (0.0, 2)
    assert strict.ned == pytest.approx(3 / 5)


def test_what_cannot_be_scored():
    with pytest.raises(DataError, match="1 readings for 2 truths"):
        edit_distances(["a"], ["a", "b"])
    with pytest.raises(DataError, match="no words"):
        score_readings([], [])
