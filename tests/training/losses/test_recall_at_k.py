import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import mixed_recall_at_k, positive_pairs, recall_at_k, recall_at_k_from_similarities

KS = (1, 2, 4, 8, 16)


def slow_recall_at_k(embeddings, labels, ks, rank_temperature, similarity_temperature):
    """From the equation, one sigmoid at a time."""

    def sigmoid(value):
        return 1 / (1 + math.exp(-value)) if value > -700 else 0.0

    similarities = (embeddings @ embeddings.T).tolist()
    losses = []
    for query, own in enumerate(labels):
        positives = [item for item, label in enumerate(labels) if label == own and item != query]
        if not positives:
            continue
        row = similarities[query]
        ranks = [
            1 + sum(sigmoid((row[z] - row[x]) / similarity_temperature) for z in range(len(row)) if z not in (query, x))
            for x in positives
        ]
        for k in ks:
            count = min(k, sum(sigmoid((k - rank) / rank_temperature) for rank in ranks))
            losses.append(1 - count / min(k, len(positives)))
    return sum(losses) / len(losses) if losses else 0.0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rsk_default", {}),
        ("rsk_k1", {"ks": (1,)}),
        ("rsk_soft", {"ks": (1, 2, 4, 8), "rank_temperature": 0.5, "similarity_temperature": 0.05}),
        ("rsk_k15", {"ks": (1, 5), "similarity_temperature": 0.1}),
    ],
)
def test_golden(golden, matches, name, options):
    matches(name, lambda rows: recall_at_k(normalize(rows, dim=1), golden["y"], **options), golden["X"])


def test_golden_of_unequal_classes(golden, matches):
    matches("rsk_unbalanced", lambda rows: recall_at_k(normalize(rows, dim=1), golden["yu"]), golden["Xu"])


@settings(deadline=None, max_examples=40)
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    ks=st.lists(st.floats(1, 20), min_size=1, max_size=3),
    rank_temperature=st.sampled_from([0.3, 1.0]),
    similarity_temperature=st.sampled_from([0.01, 0.2]),
    seed=st.integers(0, 99),
)
def test_equals_its_slow_twin(unit_rows, labels, ks, rank_temperature, similarity_temperature, seed):
    embeddings = unit_rows(len(labels), seed=seed)
    loss = recall_at_k(embeddings, torch.tensor(labels), ks, rank_temperature, similarity_temperature)
    expected = slow_recall_at_k(embeddings, labels, ks, rank_temperature, similarity_temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=16).filter(lambda found: len(set(found)) < len(found)),
    k=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_the_limit_is_exact_recall(unit_rows, labels, k, seed):
    """τ → 0 at k + ½: a positive at rank k counts whole, one at rank k + 1 not at all.

    What is left of the softness is the divisor, min(k + ½, positives), which the exact count gets too.
    """
    embeddings = unit_rows(len(labels), dim=16, seed=seed)
    recalls = []
    for query, own in enumerate(labels):
        positives = sum(label == own for label in labels) - 1
        if positives:
            nearest = (embeddings @ embeddings[query]).argsort(descending=True).tolist()
            nearest.remove(query)
            recalls.append(sum(labels[item] == own for item in nearest[:k]) / min(k + 0.5, positives))
    loss = recall_at_k(embeddings, torch.tensor(labels), [k + 0.5], 1e-4, 1e-7).item()
    assert 1 - loss == pytest.approx(sum(recalls) / len(recalls), abs=1e-6)


def test_gradcheck(unit_rows):
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 0, 3])
    raw = unit_rows(8).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: recall_at_k(normalize(rows, dim=1), labels, KS, 1.0, 0.2), raw)
    similarities = (raw.detach() @ raw.detach().T).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda s: recall_at_k_from_similarities(s, labels, KS, 1.0, 0.2), similarities)


def test_from_similarities_is_the_same(unit_rows):
    embeddings, labels = unit_rows(20), torch.arange(20) % 5
    assert torch.equal(
        recall_at_k(embeddings, labels), recall_at_k_from_similarities(embeddings @ embeddings.T, labels)
    )


def test_the_order_of_the_batch_does_not_matter(unit_rows):
    embeddings, labels = unit_rows(20), torch.arange(20) % 6
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(recall_at_k(embeddings, labels), recall_at_k(embeddings[order], labels[order]))


def test_a_step_against_the_gradient_helps(unit_rows):
    raw, labels = unit_rows(40, 8).requires_grad_(True), torch.arange(40) % 10
    loss = recall_at_k(raw, labels, similarity_temperature=0.1)
    loss.backward()
    with torch.no_grad():
        assert (
            recall_at_k(normalize(raw - 0.1 * raw.grad / raw.grad.norm(), dim=1), labels, similarity_temperature=0.1)
            < loss
        )


def test_bfloat16_is_computed_in_single(unit_rows):
    half = unit_rows(32, 16).to(torch.bfloat16).requires_grad_(True)
    labels = torch.arange(32) % 8
    loss = recall_at_k(half, labels)
    loss.backward()
    assert loss.dtype == torch.float32
    assert half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(loss, recall_at_k(half.detach().float(), labels))


def test_no_positives_is_zero_with_a_zero_gradient(unit_rows):
    embeddings = unit_rows(5).requires_grad_(True)
    loss = recall_at_k(embeddings, torch.arange(5))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(embeddings.grad, torch.zeros_like(embeddings))


def test_one_class_only(unit_rows):
    assert torch.isfinite(recall_at_k(unit_rows(6), torch.zeros(6, dtype=torch.int64)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": ()}, "ks must name"),
        ({"ks": (0.5,)}, "ks must be at least 1"),
        ({"ks": (1, float("nan"))}, "ks must be at least 1"),
        ({"rank_temperature": 0}, "rank_temperature must be above 0"),
        ({"similarity_temperature": -1}, "similarity_temperature must be above 0"),
    ],
)
def test_arguments_that_cannot_be(unit_rows, options, message):
    labels = torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match=message):
        recall_at_k(unit_rows(4), labels, **options)
    with pytest.raises(ValueError, match=message):
        mixed_recall_at_k(unit_rows(4), labels, positive_pairs(labels), torch.rand(2), **options)


def test_similarities_must_be_square():
    with pytest.raises(ValueError, match="similarities must be square"):
        recall_at_k_from_similarities(torch.ones(2, 3), torch.tensor([0, 0]))
