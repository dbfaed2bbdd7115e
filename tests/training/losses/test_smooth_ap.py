import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import smooth_ap


def slow_smooth_ap(embeddings, labels, temperature):
    similarities = embeddings @ embeddings.T
    losses = []
    for query, own in enumerate(labels):
        others = [item for item in range(len(labels)) if item != query]
        positives = [item for item in others if labels[item] == own]
        if not positives:
            continue

        def rank(item, among, row=similarities[query]):
            steps = [torch.sigmoid((row[z] - row[item]) / temperature) for z in among if z != item]
            return 1 + sum(steps)

        losses.append(1 - sum(rank(x, positives) / rank(x, others) for x in positives) / len(positives))
    return float(sum(losses) / len(losses)) if losses else 0.0


@pytest.mark.parametrize("temperature", [0.01, 0.1])
def test_golden(golden, matches, temperature):
    matches(f"sap_{temperature}", lambda rows: smooth_ap(normalize(rows, dim=1), golden["y"], temperature), golden["X"])


def test_golden_of_unequal_classes(golden, matches):
    matches("sap_unbalanced", lambda rows: smooth_ap(normalize(rows, dim=1), golden["yu"]), golden["Xu"])


@settings(deadline=None, max_examples=30)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    temperature=st.sampled_from([0.01, 0.5]),
    seed=st.integers(0, 99),
)
def test_equals_its_slow_twin(unit_rows, labels, temperature, seed):
    embeddings = unit_rows(len(labels), seed=seed)
    loss = smooth_ap(embeddings, torch.tensor(labels), temperature)
    assert loss.item() == pytest.approx(slow_smooth_ap(embeddings, labels, temperature), abs=1e-9)


def test_gradcheck(unit_rows):
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    raw = unit_rows(6).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: smooth_ap(normalize(rows, dim=1), labels, 0.2), raw)


def test_a_perfect_ranking_costs_nothing():
    embeddings = torch.eye(3, dtype=torch.float64).repeat(4, 1)
    assert smooth_ap(embeddings, torch.arange(12) % 3).item() == pytest.approx(0, abs=1e-9)


def test_temperature_that_cannot_be(unit_rows):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        smooth_ap(unit_rows(2), torch.tensor([0, 0]), 0)
