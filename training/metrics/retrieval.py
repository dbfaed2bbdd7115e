"""How well a nearest neighbour shares its query's label."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


def recall_at(embeddings: Vectors, labels: Labels, ks: Sequence[int] = (1, 2, 4, 8)) -> dict[int, float]:
    """r@k, leave one out: the share of queries with a picture of their own label among the k nearest others.

    embeddings [N, d] unit rows, labels [N]. Here and below, queries without another picture of their label are
    left out.
    """
    hits, positives = _hits(embeddings, labels)
    return {k: float(hits[positives > 0, :k].any(axis=1).mean()) for k in ks}


def share_recalled_at(embeddings: Vectors, labels: Labels, ks: Sequence[int] = (1, 2, 4, 8)) -> dict[int, float]:
    """recall@k, leave one out: of a query's R positives, those among the k nearest, over min(k, R).

    It is what the loss `recall_at_k` smooths; r@k above asks for one positive only.
    """
    hits, positives = _hits(embeddings, labels)
    answerable = positives > 0
    found = {k: hits[answerable, :k].sum(axis=1) for k in ks}
    return {k: float((found[k] / np.minimum(k, positives[answerable])).mean()) for k in ks}


def mean_average_precision(embeddings: Vectors, labels: Labels) -> float:
    """mAP, leave one out: for a query with R positives, 1/R Σ over the ranks i of its positives of precision@i."""
    hits, positives = _hits(embeddings, labels)
    return _mean_precision(hits, positives, within=np.ones_like(hits))


def average_precision_at_r(embeddings: Vectors, labels: Labels) -> float:
    """mAP@R, leave one out: as mAP, but only the R nearest are looked at."""
    hits, positives = _hits(embeddings, labels)
    places = np.arange(1, hits.shape[1] + 1)
    return _mean_precision(hits, positives, within=places[None, :] <= positives[:, None])


def _hits(embeddings: Vectors, labels: Labels) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each query's i-th nearest other has its label [N, N − 1], and how many do [N]."""
    similarities = embeddings @ embeddings.T
    np.fill_diagonal(similarities, -np.inf)
    ranking = np.argsort(-similarities, axis=1, kind="stable")[:, :-1]  # each query is its own last
    hits = labels[ranking] == labels[:, None]
    return hits, hits.sum(axis=1)


def _mean_precision(hits: NDArray[np.bool_], positives: NDArray[np.int64], within: NDArray[np.bool_]) -> float:
    answerable = positives > 0
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
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


def revisited_precisions(
    ranks: NDArray[np.int64],
    positives: Sequence[Sequence[int]],
    junk: Sequence[Sequence[int]],
    ks: Sequence[int] = (1, 5, 10),
) -> Vectors:
    """Precision among the k nearest of each query by the same rule: [queries, ks].

    k reaches no further than the last positive: one that stands alone at rank 1 is not held against the query.
    """
    result = np.full((ranks.shape[1], len(ks)), np.nan)
    for query in range(ranks.shape[1]):
        if not len(positives[query]):
            continue
        ranking = ranks[:, query][~np.isin(ranks[:, query], junk[query])]
        hits = np.isin(ranking, positives[query])
        last = int(np.flatnonzero(hits).max(initial=0)) + 1
        result[query] = [hits[: min(k, last)].mean() for k in ks]
    return result


def similarity_percentiles(embeddings: Vectors, labels: Labels) -> tuple[list[float], list[float]]:
    """The 101 percentiles of the cosine similarity over pairs of (different, equal) labels."""
    first, second = np.triu_indices(len(labels), k=1)
    similarities = (embeddings @ embeddings.T)[first, second]
    same = labels[first] == labels[second]
    different_q, same_q = (
        np.round(np.percentile(chosen, np.arange(101)), 4).tolist()
        for chosen in (similarities[~same], similarities[same])
    )
    return different_q, same_q
