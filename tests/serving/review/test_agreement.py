"""Krippendorff's alpha beside a slow twin written from the formula, and beside the library asked at once."""

from collections import Counter
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.review.agreement import agreement

PEOPLE, VALUES = 4, 5
tables = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, VALUES - 1)), min_size=PEOPLE, max_size=PEOPLE),
    min_size=1,
    max_size=12,
)


def slow(units):
    """1 − observed / expected disagreement, pair by pair."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    pairs = list(permutations(values, 2))
    if len(set(values)) < 2:
        return None
    observed = sum(sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / len(values)
    return 1 - observed / (sum(a != b for a, b in pairs) / len(pairs))


@given(tables)
def test_as_the_formula_and_the_library_say(table):
    units = [[value for value in row if value is not None] for row in table]
    found, expected = agreement(Counter(unit) for unit in units), slow(units)
    if expected is None:
        assert found is None
        return
    assert found == pytest.approx(expected, abs=1e-9)
    data = np.array(
        [[np.nan if value is None else value for value in row] for row in table if sum(v is not None for v in row) > 1]
    )
    assert found == pytest.approx(krippendorff.alpha(reliability_data=data.T, level_of_measurement="nominal"), abs=1e-9)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ([], None),
        ([["a"]], None),
        ([["a", "a"]], None),  # nothing else was ever said
        ([["a", "a"], ["b", "b"]], 1.0),
        ([["a", "b"], ["a", "b"]], -0.5),
    ],
)
def test_limits(units, expected):
    assert agreement(Counter(unit) for unit in units) == (None if expected is None else pytest.approx(expected))


def test_fifty_thousand_observations_of_a_thousand_species():
    random = np.random.default_rng(0)
    units = [Counter(random.integers(0, 1000, 2).tolist()) for _ in range(50_000)]
    assert abs(agreement(units)) < 0.01
