"""How well a picture of no known kind is told from the others by the similarity of its nearest neighbour."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Rejection:
    """A threshold, and what it does to each collection."""

    threshold: float
    kept: dict[str, float]  # share of pictures named although their kind is there: more is better
    refused: dict[str, float]  # share of pictures refused when their kind is not there: more is better


def calibrate_rejection(collections: Mapping[str, tuple[Vectors, Labels]], keep: float = 0.95) -> Rejection:
    """The similarity that this share of all pictures reaches; unit vectors [N, dim] and labels [N] by collection.

    Each picture is looked up among the others of its collection, once as they are and once without its own kind.
    """
    nearest = {name: _nearest(*collection) for name, collection in collections.items()}
    threshold = float(np.quantile(np.concatenate([found for found, _ in nearest.values()]), 1 - keep))
    return Rejection(
        threshold,
        {name: float((found >= threshold).mean()) for name, (found, _) in nearest.items()},
        {name: float((without < threshold).mean()) for name, (_, without) in nearest.items()},
    )


def _nearest(vectors: Vectors, labels: Labels) -> tuple[Vectors, Vectors]:
    """The similarity of each picture's nearest other one, and of its nearest one of another kind."""
    similarities = vectors @ vectors.T
    np.fill_diagonal(similarities, -1)
    of_another = np.where(labels[:, None] == labels[None, :], -1, similarities)
    return similarities.max(axis=1), of_another.max(axis=1)
