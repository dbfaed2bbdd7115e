from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.metrics.retrieval import (
    average_precision_at_r,
    mean_average_precision,
    recall_at,
    revisited_average_precisions,
    revisited_precisions,
    share_recalled_at,
    similarity_percentiles,
)

GOLDEN = np.load(Path(__file__).parents[2] / "golden/metrics.npz")


def unit_rows(count, dim, seed):
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def slow_recall(embeddings, labels, k):
    """From the definition, one query at a time."""
    hits = []
    for query in range(len(labels)):
        others = [other for other in range(len(labels)) if other != query]
        if not any(labels[other] == labels[query] for other in others):
            continue
        others.sort(key=lambda other: -float(embeddings[query] @ embeddings[other]))
        hits.append(any(labels[other] == labels[query] for other in others[:k]))
    return np.mean(hits)


@settings(max_examples=50, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=2, max_size=20).filter(lambda found: len(set(found)) < len(found)),
    k=st.integers(1, 25),
    seed=st.integers(0, 1000),
)
def test_recall_equals_its_slow_twin(labels, k, seed):
    embeddings = unit_rows(len(labels), 5, seed)
    assert recall_at(embeddings, np.array(labels), [k])[k] == pytest.approx(slow_recall(embeddings, labels, k))


def test_perfect_and_hopeless():
    corners = np.eye(4, dtype=np.float32)
    embeddings = np.concatenate([corners, corners])
    assert recall_at(embeddings, np.array([0, 1, 2, 3] * 2), [1]) == {1: 1.0}
    assert recall_at(embeddings, np.array([0, 0, 1, 1, 2, 2, 3, 3]), [1]) == {1: 0.0}


def test_percentiles_of_known_pairs():
    embeddings = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    different, same = similarity_percentiles(embeddings, np.array([0, 0, 1, 1]))
    assert different == [0.0] * 101
    assert same == [1.0] * 101


def rankings(embeddings, labels):
    """For each query that has positives: whether each other, nearest first, is one."""
    for query in range(len(labels)):
        others = [other for other in range(len(labels)) if other != query]
        others.sort(key=lambda other: -float(embeddings[query] @ embeddings[other]))
        hits = [labels[other] == labels[query] for other in others]
        if any(hits):
            yield hits


def slow_average_precision(embeddings, labels, at_r):
    """From the definition, one query at a time."""
    values = []
    for hits in rankings(embeddings, labels):
        found, total = 0, 0.0
        for place, hit in enumerate(hits[: sum(hits)] if at_r else hits, start=1):
            if hit:
                found += 1
                total += found / place
        values.append(total / sum(hits))
    return np.mean(values)


LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=20).filter(lambda found: len(set(found)) < len(found))


@settings(max_examples=50, deadline=None)
@given(labels=LABELS, seed=st.integers(0, 1000))
def test_average_precision_equals_its_slow_twin(labels, seed):
    embeddings = unit_rows(len(labels), 5, seed)
    expected = slow_average_precision(embeddings, labels, at_r=True)
    assert average_precision_at_r(embeddings, np.array(labels)) == pytest.approx(expected)
    expected = slow_average_precision(embeddings, labels, at_r=False)
    assert mean_average_precision(embeddings, np.array(labels)) == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(labels=LABELS, k=st.integers(1, 25), seed=st.integers(0, 1000))
def test_share_recalled_equals_its_slow_twin(labels, k, seed):
    embeddings = unit_rows(len(labels), 5, seed)
    expected = np.mean([sum(hits[:k]) / min(k, sum(hits)) for hits in rankings(embeddings, labels)])
    assert share_recalled_at(embeddings, np.array(labels), [k])[k] == pytest.approx(expected)


def test_golden_revisited_average_precision():
    positives, junk = ([row[row >= 0].tolist() for row in GOLDEN[key]] for key in ("map_ok", "map_junk"))
    found = revisited_average_precisions(GOLDEN["map_ranks"], positives, junk)
    np.testing.assert_allclose(found, GOLDEN["map_aps"], atol=1e-8, rtol=0)
    assert np.nanmean(found) == pytest.approx(float(GOLDEN["map"]), abs=1e-8)


def test_golden_revisited_precision():
    positives, junk = ([row[row >= 0].tolist() for row in GOLDEN[key]] for key in ("map_ok", "map_junk"))
    found = revisited_precisions(GOLDEN["map_ranks"], positives, junk, ks=(1, 5, 10))
    np.testing.assert_allclose(found, GOLDEN["map_prs"], atol=1e-8, rtol=0)
    np.testing.assert_allclose(np.nanmean(found, axis=0), GOLDEN["map_pr"], atol=1e-8, rtol=0)


def test_revisited_precision_looks_no_further_than_the_last_positive():
    ranks = np.arange(12)[:, None]
    assert revisited_precisions(ranks, [[0, 2]], [[]]).tolist() == [[1.0, 2 / 3, 2 / 3]]


def test_revisited_average_precision_of_a_perfect_ranking():
    ranks = np.arange(6)[:, None]
    assert revisited_average_precisions(ranks, [[0, 1]], [[]]).tolist() == [1.0]
    assert revisited_average_precisions(ranks, [[1, 2]], [[0]]).tolist() == [1.0]  # junk is not in the way
    assert np.isnan(revisited_average_precisions(ranks, [[]], [[]])[0])
