import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.metrics.rejection import calibrate_rejection


def kinds(spread, seed=0, count=8, each=25, dim=32):
    """Pictures around a random direction for each kind."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(count, dim))
    vectors = np.repeat(centres, each, axis=0) + spread * random.normal(size=(count * each, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), np.repeat(
        np.arange(count), each
    )


def test_kinds_far_apart_are_told_from_strangers():
    found = calibrate_rejection({"far": kinds(0.2)})
    assert found.kept["far"] == pytest.approx(0.95, abs=0.01)
    assert found.refused["far"] == 1


def test_kinds_that_overlap_are_not():
    found = calibrate_rejection({"near": kinds(3.0)})
    assert found.refused["near"] < 0.3


@given(st.floats(0.1, 2), st.integers(0, 100), st.floats(0.5, 1))
def test_it_equals_a_loop(spread, seed, keep):
    vectors, labels = kinds(spread, seed, count=3, each=4, dim=5)
    best, stranger = [], []
    for row, own in enumerate(labels):
        others = [(float(vectors[row] @ vectors[k]), labels[k]) for k in range(len(labels)) if k != row]
        best.append(max(similarity for similarity, _ in others))
        stranger.append(max(similarity for similarity, label in others if label != own))
    found = calibrate_rejection({"all": (vectors, labels)}, keep)
    assert found.threshold == pytest.approx(np.quantile(best, 1 - keep), abs=1e-5)
    least, most = (np.mean(np.array(stranger) < found.threshold + slack) for slack in (-1e-5, 1e-5))
    assert least <= found.refused["all"] <= most


def test_one_threshold_for_all_collections():
    found = calibrate_rejection({"easy": kinds(0.1, 1), "hard": kinds(1.0, 2)}, keep=0.9)
    assert found.kept["easy"] > found.kept["hard"]
    assert (found.kept["easy"] + found.kept["hard"]) / 2 == pytest.approx(0.9, abs=0.01)
