"""How well a nearest neighbour shares its query's label."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


def recall_at(embeddings: Vectors, labels: Labels, ks: Sequence[int] = (1, 2, 4, 8)) -> dict[int, float]:
    """r@k, leave one out: the share of queries with a picture of their own label among the k nearest others.

    embeddings [N, d] unit rows, labels [N]. Queries without another picture of their label are left out.
    """
    similarities = embeddings @ embeddings.T  # [N, N]
    np.fill_diagonal(similarities, -np.inf)
    largest = min(max(ks), len(labels) - 1)
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :largest]
    hits = labels[nearest] == labels[:, None]  # [N, largest]
    answerable = (labels[:, None] == labels[None, :]).sum(axis=1) > 1
    return {k: float(hits[answerable, :k].any(axis=1).mean()) for k in ks}


def average_precision_at_r(embeddings: Vectors, labels: Labels) -> float:
    """mAP@R, leave one out: for a query with R positives, 1/R Σ_{i ≤ R} precision@i where the i-th is a positive.

    Queries without another picture of their label are left out.
    """
    similarities = embeddings @ embeddings.T
    np.fill_diagonal(similarities, -np.inf)
    hits = labels[np.argsort(-similarities, axis=1, kind="stable")] == labels[:, None]  # [N, N], own column last
    positives = (labels[:, None] == labels[None, :]).sum(axis=1) - 1
    places = np.arange(1, len(labels) + 1)
    precision = np.cumsum(hits, axis=1) / places
    within = places[None, :] <= positives[:, None]
    answerable = positives > 0
    sums = (precision * hits * within).sum(axis=1)[answerable]
    return float((sums / positives[answerable]).mean())


def revisited_average_precisions(
    ranks: NDArray[np.int64], positives: Sequence[Sequence[int]], junk: Sequence[Sequence[int]]
) -> Vectors:
    """Average precision of each query by the rule of revisited Oxford and Paris: [queries].

    ranks [database, queries]: database items, nearest first. positives and junk: items of each query; junk is taken
    out of the ranking first. The area under precision and recall is made of trapezoids. A query
    without positives has NaN: mAP is the mean of the others.
    """
    result = np.full(ranks.shape[1], np.nan)
    for query in range(ranks.shape[1]):
        if not len(positives[query]):
            continue
        ranking = ranks[:, query][~np.isin(ranks[:, query], junk[query])]
        places = np.flatnonzero(np.isin(ranking, positives[query]))  # from 0, in order
        found = np.arange(len(places))
        before = np.where(places > 0, found / np.maximum(places, 1), 1.0)
        after = (found + 1) / (places + 1)
        result[query] = (before + after).sum() / (2 * len(positives[query]))
    return result


def similarity_percentiles(embeddings: Vectors, labels: Labels) -> tuple[list[float], list[float]]:
    """The 101 percentiles of the cosine similarity over pairs of (different, equal) labels."""
    first, second = np.triu_indices(len(labels), k=1)
    similarities = np.einsum("nd,nd->n", embeddings[first], embeddings[second])
    same = labels[first] == labels[second]
    different_q, same_q = (
        np.round(np.percentile(chosen, np.arange(101)), 4).tolist()
        for chosen in (similarities[~same], similarities[same])
    )
    return different_q, same_q
