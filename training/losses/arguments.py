"""Checks that every loss shares: a wrong argument is named, never turned into NaN."""

from collections.abc import Sequence

import torch
from torch import Tensor

# Rows of half-precision embeddings are off by up to about 0.4 %.
UNIT_TOLERANCE = 0.02


def check_labels(labels: Tensor, count: int, of: str) -> None:
    """`labels` are `count` integers on one axis."""
    if (
        not isinstance(labels, Tensor)
        or labels.dtype.is_floating_point
        or labels.dtype in (torch.bool, torch.complex64)
    ):
        raise TypeError(f"labels must be a tensor of integers, not {getattr(labels, 'dtype', type(labels).__name__)}")
    if labels.shape != (count,):
        raise ValueError(f"labels have shape {list(labels.shape)}; {of} want [{count}]")


def check_rows(name: str, rows: Tensor) -> None:
    """`rows` is a finite matrix [N, d] with at least one row."""
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} must be [N, d] with at least one row, not {list(rows.shape)}")
    if not rows.dtype.is_floating_point:
        raise TypeError(f"{name} must be floating point, not {rows.dtype}")
    if not torch.isfinite(rows.detach()).all():
        raise ValueError(f"{name} hold NaN or infinity")


def check_batch(embeddings: Tensor, labels: Tensor) -> None:
    """`embeddings` are finite unit rows [N, d] and `labels` [N] belong to them."""
    check_rows("embeddings", embeddings)
    check_labels(labels, len(embeddings), "embeddings")
    lengths = embeddings.detach().float().norm(dim=1)
    worst = float((lengths - 1).abs().max())
    if worst > UNIT_TOLERANCE:
        raise ValueError(f"embeddings must be unit rows; one is off by {worst:.3g}: normalise them first")


def check_similarities(similarities: Tensor, labels: Tensor) -> None:
    """`similarities` are a finite square [N, N] and `labels` [N] belong to it."""
    check_rows("similarities", similarities)
    if similarities.shape[0] != similarities.shape[1]:
        raise ValueError(f"similarities must be square, not {list(similarities.shape)}")
    check_labels(labels, len(similarities), "similarities")


def check_positive(name: str, value: float) -> None:
    """A temperature or weight above zero."""
    if not value > 0:
        raise ValueError(f"{name} must be above 0, not {value}")


def check_ks(ks: Sequence[float]) -> None:
    """At least one k, each at least 1."""
    if not ks:
        raise ValueError("ks must name at least one k")
    for k in ks:
        if not k >= 1:
            raise ValueError(f"ks must be at least 1 each, not {k}")


def at_least_single(values: Tensor) -> Tensor:
    """Half precision becomes float32: sums over a batch and exp((s − s')/0.01) need it."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def nothing_to_learn(values: Tensor) -> Tensor:
    """The value of a loss over no terms: 0, with a gradient of zeros."""
    return values.sum() * 0.0
