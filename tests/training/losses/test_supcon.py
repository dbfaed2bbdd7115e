import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import supcon


def slow_supcon(embeddings, labels, temperature):
    similarities = (embeddings @ embeddings.T / temperature).tolist()
    losses = []
    for i, row in enumerate(similarities):
        positives = [p for p, label in enumerate(labels) if label == labels[i] and p != i]
        if positives:
            normaliser = math.log(sum(math.exp(s) for j, s in enumerate(row) if j != i))
            losses.append(sum(normaliser - row[p] for p in positives) / len(positives))
    return sum(losses) / len(losses) if losses else 0.0


@pytest.mark.parametrize("temperature", [0.07, 0.1, 1.0])
def test_golden(golden, matches, temperature):
    matches(f"supcon_{temperature}", lambda rows: supcon(normalize(rows, dim=1), golden["y"], temperature), golden["X"])


def test_golden_of_unequal_classes(golden, matches):
    matches("supcon_unbalanced", lambda rows: supcon(normalize(rows, dim=1), golden["yu"]), golden["Xu"])


@settings(deadline=None, max_examples=30)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=10), seed=st.integers(0, 99))
def test_equals_its_slow_twin(unit_rows, labels, seed):
    embeddings = unit_rows(len(labels), seed=seed)
    expected = slow_supcon(embeddings, labels, 0.1)
    assert supcon(embeddings, torch.tensor(labels)).item() == pytest.approx(expected, abs=1e-9)


def test_gradcheck(unit_rows):
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    raw = unit_rows(6).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: supcon(normalize(rows, dim=1), labels, 0.5), raw)


@pytest.mark.parametrize("count", [1, 4])
def test_no_positives_is_zero_with_a_zero_gradient(unit_rows, count):
    embeddings = unit_rows(count).requires_grad_(True)
    supcon(embeddings, torch.arange(count)).backward()
    assert torch.equal(embeddings.grad, torch.zeros_like(embeddings))
