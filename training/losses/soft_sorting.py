"""Sorting and counting with a gradient: the two blocks that ranking losses are built from.

A new surrogate is a few lines. NDCG, for one, with a gain of 1 for every positive:

>>> import torch
>>> labels = torch.tensor([0, 0, 0, 1, 1, 1])
>>> embeddings = torch.nn.functional.normalize(torch.randn(6, 4), dim=1)
>>> queries, items = ordered_positives(labels)
>>> ranks = soft_rank(embeddings @ embeddings.T, queries, items, temperature=0.01)
>>> gain = torch.zeros(6).index_add(0, queries, 1 / torch.log2(1 + ranks))
>>> best = (1 / torch.log2(torch.tensor([2.0, 3.0]))).sum()
>>> loss = 1 - (gain / best).mean()
>>> bool(0 <= loss <= 1)
True

Time grows with pairs × database, memory with the similarities alone: the pairs × database sigmoids are made
a chunk at a time and made again for the gradient.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from training.losses.arguments import check_positive

# So many sigmoids at a time stay in a core's cache.
CHUNK_ELEMENTS = 1 << 18


def ordered_positives(labels: Tensor) -> tuple[Tensor, Tensor]:
    """All (query, positive) with equal labels and query ≠ positive, by query: two index vectors [M]."""
    order = torch.argsort(labels, stable=True)
    _, sizes = torch.unique_consecutive(labels[order], return_counts=True)
    starts = torch.cumsum(sizes, 0) - sizes
    size = sizes.repeat_interleave(sizes)  # of each ordered item's class
    start = starts.repeat_interleave(sizes)
    repeats = size - 1
    queries = torch.arange(len(labels), device=labels.device).repeat_interleave(repeats)
    step = torch.arange(len(queries), device=labels.device) - (torch.cumsum(repeats, 0) - repeats).repeat_interleave(
        repeats
    )
    place = start.repeat_interleave(repeats) + step
    place = place + (place >= queries).long()  # step over the query itself
    return order[queries], order[place]


def soft_rank(
    similarities: Tensor, queries: Tensor, items: Tensor, temperature: float, *, leave_out_query: bool = True
) -> Tensor:
    """Smooth rank of each item in its query's row, 1 for the nearest.

    r_m = 1 + Σ_{z ≠ x} σ((s_qz − s_qx) / τ) with q = queries[m], x = items[m], over the columns z of row q;
    the column q itself is left out (a query is not in its own database) unless `leave_out_query` is False.

    similarities [R, N]; queries [M] rows, items [M] columns; returns [M]. The gradient is exact and made in chunks.
    """
    check_positive("temperature", temperature)
    ranks: Tensor = _SoftRank.apply(similarities, queries, items, temperature, leave_out_query)
    return ranks


def soft_count(ranks: Tensor, k: float, temperature: float) -> Tensor:
    """How far each rank is within the first k: σ((k − r) / τ), elementwise. Sum over a query's items to count."""
    check_positive("temperature", temperature)
    return torch.sigmoid((k - ranks) / temperature)


class _SoftRank(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, similarities: Tensor, queries: Tensor, items: Tensor, temperature: float, leave_out_query: bool
    ) -> Tensor:
        ctx.save_for_backward(similarities, queries, items)
        ctx.temperature, ctx.leave_out_query = temperature, leave_out_query
        ranks = similarities.new_empty(len(queries))
        for part in _chunks(len(queries), similarities.shape[1]):
            steps = _steps(similarities, queries[part], items[part], temperature, leave_out_query)
            ranks[part] = steps.sum(dim=1) + 0.5  # the item against itself is a half; its rank starts at one
        return ranks

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        similarities, queries, items = ctx.saved_tensors
        result = torch.zeros_like(similarities)
        for part in _chunks(len(queries), similarities.shape[1]):
            rows, columns = queries[part], items[part]
            steps = _steps(similarities, rows, columns, ctx.temperature, ctx.leave_out_query)
            slopes = torch.addcmul(steps, steps, steps, value=-1)  # σ(1 − σ)
            slopes *= (gradient[part] / ctx.temperature)[:, None]
            # The item's own column gets its slope here and loses it again below: it does not move its own rank.
            result.index_add_(0, rows, slopes)
            result.index_put_((rows, columns), -slopes.sum(dim=1), accumulate=True)
        return result, None, None, None, None


def _chunks(count: int, width: int) -> list[slice]:
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    return [slice(start, start + step) for start in range(0, count, step)]


def _steps(similarities: Tensor, rows: Tensor, columns: Tensor, temperature: float, leave_out: bool) -> Tensor:
    """σ((s_qz − s_qx) / τ) for a chunk of pairs: [m, N]."""
    differences = similarities[rows]
    differences -= similarities[rows, columns][:, None]
    differences /= temperature
    if leave_out:
        differences.scatter_(1, rows[:, None], -torch.inf)
    return differences.sigmoid_()
