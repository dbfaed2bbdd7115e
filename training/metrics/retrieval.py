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
