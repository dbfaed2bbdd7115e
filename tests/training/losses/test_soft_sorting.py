import doctest

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.losses import soft_count, soft_rank, soft_sorting
from training.losses.soft_sorting import ordered_positives

LABELS = st.lists(st.integers(-3, 3), min_size=1, max_size=14)


def slow_rank(similarities, query, item, temperature, leave_out_query=True):
    """From the formula, one column at a time."""
    rank = 1.0
    for other in range(similarities.shape[1]):
        if other == item or (leave_out_query and other == query):
            continue
        rank += torch.sigmoid((similarities[query, other] - similarities[query, item]) / temperature).item()
    return rank


@given(LABELS)
def test_ordered_positives_are_all_pairs(labels):
    queries, items = ordered_positives(torch.tensor(labels))
    expected = {(q, x) for q, a in enumerate(labels) for x, b in enumerate(labels) if a == b and q != x}
    found = list(zip(queries.tolist(), items.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected


@settings(deadline=None, max_examples=40)
@given(labels=LABELS, temperature=st.sampled_from([0.01, 0.3, 5.0]), seed=st.integers(0, 99), leave_out=st.booleans())
def test_equals_its_slow_twin(labels, temperature, seed, leave_out):
    similarities = torch.randn(
        len(labels), len(labels), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    queries, items = ordered_positives(torch.tensor(labels))
    ranks = soft_rank(similarities, queries, items, temperature, leave_out_query=leave_out)
    expected = [slow_rank(similarities, q, x, temperature, leave_out) for q, x in zip(queries, items, strict=True)]
    torch.testing.assert_close(ranks, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 20, 1 << 18])
def test_gradient_is_exact_whatever_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(soft_sorting, "CHUNK_ELEMENTS", chunk)
    queries, items = ordered_positives(torch.tensor([0, 1, 0, 1, 0, 2]))
    similarities = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: soft_rank(s, queries, items, 0.3), similarities)


def test_rows_that_are_no_columns():
    """Queries outside their database: nothing is left out."""
    similarities = torch.tensor([[0.9, 0.1, 0.5]], dtype=torch.float64)
    ranks = soft_rank(similarities, torch.tensor([0, 0, 0]), torch.arange(3), 1e-4, leave_out_query=False)
    torch.testing.assert_close(ranks, torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64))


def test_no_overflow_at_a_hundredth():
    similarities = torch.tensor([[0.0, 1.0, -1.0]], requires_grad=True)
    ranks = soft_rank(similarities * 1e6, torch.tensor([0, 0]), torch.tensor([1, 2]), 0.01)
    ranks.sum().backward()
    assert torch.equal(ranks, torch.tensor([1.0, 2.0]))
    assert torch.isfinite(similarities.grad).all()


def test_soft_count_is_a_half_at_k():
    ranks = torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64)
    torch.testing.assert_close(soft_count(ranks, 4, 1e-3), torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_temperatures_that_cannot_be(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        soft_count(torch.ones(1), 1, temperature)
    with pytest.raises(ValueError, match="temperature must be above 0"):
        soft_rank(torch.ones(1, 1), torch.tensor([0]), torch.tensor([0]), temperature)


def test_the_ndcg_example_works():
    result = doctest.testmod(soft_sorting)
    assert result.attempted > 5
    assert result.failed == 0
