import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import esupcon, tightness


def slow_esupcon(embeddings, labels, prototypes, temperature):
    rows = (embeddings @ embeddings.T / temperature).tolist()
    to_prototypes = (embeddings @ normalize(prototypes, dim=1).T / temperature).tolist()
    total = 0.0
    for k in range(len(prototypes)):
        members = [i for i, label in enumerate(labels) if label == k]
        for i in members:
            others = sum(math.exp(s) for j, s in enumerate(rows[i]) if j != i)
            everything = sum(math.exp(s) for s in to_prototypes[i]) + others
            total += (math.log(everything) - to_prototypes[i][k]) / len(members)
    for i, row in enumerate(rows):
        positives = [p for p, label in enumerate(labels) if label == labels[i] and p != i]
        if positives:
            normaliser = math.log(sum(math.exp(s) for j, s in enumerate(row) if j != i))
            total += sum(normaliser - row[p] for p in positives) / len(positives)
    return total / (len(labels) + len(prototypes))


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_golden(golden, matches, temperature):
    def loss(rows, prototypes):
        return esupcon(normalize(rows, dim=1), golden["y"], prototypes, temperature)

    matches(f"esupcon_{temperature}", loss, golden["X"], golden["Theta"])


def test_golden_with_absent_classes(golden, matches):
    def loss(rows, prototypes):
        return esupcon(normalize(rows, dim=1), golden["y"], prototypes)

    matches("esupcon_extra_classes", loss, golden["X"], golden["Theta_extra"])


def test_golden_tightness(golden, matches):
    embeddings = normalize(golden["X"], dim=1)
    matches(
        "tightness",
        lambda prototypes: tightness(embeddings.to(prototypes.dtype), golden["y"], prototypes),
        golden["Theta"],
    )


@settings(deadline=None, max_examples=30)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=10), seed=st.integers(0, 99))
def test_equals_its_slow_twin(unit_rows, labels, seed):
    embeddings, prototypes = unit_rows(len(labels), seed=seed), 3 * unit_rows(5, seed=seed + 1)
    expected = slow_esupcon(embeddings, labels, prototypes, 0.2)
    assert esupcon(embeddings, torch.tensor(labels), prototypes, 0.2).item() == pytest.approx(expected, abs=1e-9)


def test_gradcheck(unit_rows):
    labels = torch.tensor([0, 0, 1, 1, 2])
    raw, prototypes = unit_rows(5).requires_grad_(True), unit_rows(4, seed=1).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda z, t: esupcon(normalize(z, dim=1), labels, t, 0.5), (raw, prototypes))
    assert torch.autograd.gradcheck(lambda t: tightness(raw.detach(), labels, t), prototypes)


def test_one_row_is_finite(unit_rows):
    raw, prototypes = unit_rows(1).requires_grad_(True), unit_rows(2, seed=1).requires_grad_(True)
    esupcon(raw, torch.tensor([1]), prototypes).backward()
    assert torch.isfinite(raw.grad).all()
    assert torch.isfinite(prototypes.grad).all()


def test_tightness_moves_the_prototypes_only(unit_rows):
    raw, prototypes = unit_rows(3).requires_grad_(True), unit_rows(2, seed=1).requires_grad_(True)
    tightness(raw, torch.tensor([0, 1, 1]), prototypes).backward()
    assert raw.grad is None
    assert prototypes.grad.abs().sum() > 0


@pytest.mark.parametrize("loss", [esupcon, tightness])
@pytest.mark.parametrize(
    ("labels", "columns", "message"),
    [
        ([0, 2], 6, r"labels must lie in 0…1"),
        ([0, -1], 6, r"labels must lie in 0…1"),
        ([0, 1], 5, "prototypes have 5 columns"),
    ],
)
def test_arguments_that_cannot_be(unit_rows, loss, labels, columns, message):
    with pytest.raises(ValueError, match=message):
        loss(unit_rows(2), torch.tensor(labels), unit_rows(2, columns))
