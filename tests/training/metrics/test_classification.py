import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.errors import DataError
from training.metrics.classification import (
    fit_temperature,
    macro_f1,
    reliability,
    softmax,
    top_k_accuracy,
)


def draw(random, count, classes, sharpness=2.0):
    """Logits that are honest: labels are drawn from their own soft-max."""
    logits = sharpness * random.normal(size=(count, classes))
    chances = softmax(logits)
    labels = (chances.cumsum(axis=1) > random.uniform(size=(count, 1))).argmax(axis=1)
    return logits, labels


def test_top_k():
    scores = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    labels = np.array([1, 2])
    assert [top_k_accuracy(scores, labels, k) for k in (1, 2, 3)] == [0.5, 1.0, 1.0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_macro_f1_equals_precision_and_recall(pairs):
    predictions, labels = (np.array(column) for column in zip(*pairs, strict=True))
    scores = []
    for name in set(predictions) | set(labels):
        hits = sum(p == t == name for p, t in pairs)
        precision = hits / max(1, sum(p == name for p, _ in pairs))
        recall = hits / max(1, sum(t == name for _, t in pairs))
        scores.append(2 * precision * recall / (precision + recall) if hits else 0.0)
    assert macro_f1(predictions, labels) == pytest.approx(np.mean(scores))


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1000), bins=st.integers(1, 20), count=st.integers(1, 50))
def test_reliability_equals_its_slow_twin(seed, bins, count):
    logits, labels = draw(np.random.default_rng(seed), count, 4)
    probabilities = softmax(logits)
    expected = 0.0
    for low in range(bins):
        rows = [
            (max(p), int(np.argmax(p)) == label)
            for p, label in zip(probabilities, labels, strict=True)
            if low / bins < max(p) <= (low + 1) / bins
        ]
        if rows:
            gap = abs(np.mean([sure for sure, _ in rows]) - np.mean([right for _, right in rows]))
            expected += gap * len(rows) / count
    diagram = reliability(probabilities, labels, bins)
    assert diagram.counts.sum() == count
    assert diagram.ece == pytest.approx(expected, abs=1e-9)


def test_honest_probabilities_have_a_small_error_and_boastful_ones_a_large_one():
    logits, labels = draw(np.random.default_rng(0), 20_000, 5)
    assert reliability(softmax(logits), labels).ece < 0.02
    assert reliability(softmax(4 * logits), labels).ece > 0.1


@pytest.mark.parametrize("boast", [0.3, 1.0, 4.0])
def test_temperature_undoes_boasting(boast):
    logits, labels = draw(np.random.default_rng(1), 20_000, 5)
    assert fit_temperature(boast * logits, labels) == pytest.approx(boast, rel=0.05)


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.ones((2, 3)), np.array([0])),
        (np.ones((0, 3)), np.array([], dtype=int)),
        (np.ones((1, 3)), np.array([3])),
        (np.full((1, 3), np.nan), np.array([0])),
    ],
)
def test_what_cannot_be_scored(scores, labels):
    for function in (top_k_accuracy, reliability, fit_temperature):
        with pytest.raises(DataError):
            function(scores, labels)


def test_other_arguments_that_cannot_be():
    with pytest.raises(DataError, match="1 predictions for 2 labels"):
        macro_f1(np.array([0]), np.array([0, 1]))
