import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.metrics.retrieval import recall_at, similarity_percentiles


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
