"""Euclidean distances within a batch, and which pairs of it are positive."""

import torch
from torch import Tensor

from training.losses.arguments import at_least_single, check_batch, nothing_to_learn

EPSILON = 1e-12  # under the root: the slope of |x| at 0 is not a number


def pair_distances(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distances d [N, N], and masks of positive and negative pairs [N, N]; nothing is paired with itself."""
    check_batch(embeddings, labels)
    rows = at_least_single(embeddings)
    squares = rows.square().sum(dim=1)
    distances = (squares[:, None] + squares[None, :] - 2 * rows @ rows.T).clamp(min=0).add(EPSILON).sqrt()
    same = labels[:, None] == labels[None, :]
    return distances, same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same


def mean_above_zero(terms: Tensor) -> Tensor:
    """Mean of the hinge terms above 0; 0 with a gradient of zeros if none is."""
    active = terms[terms > 0]
    return active.mean() if active.numel() else nothing_to_learn(terms)
