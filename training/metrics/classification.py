"""How often a classifier is right, and whether its probabilities can be believed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from training.errors import DataError

Floats = NDArray[np.floating]
Labels = NDArray[np.integer]


def top_k_accuracy(probabilities: Floats, labels: Labels, k: int = 1) -> float:
    """Share of rows whose label is among their k most probable classes. probabilities [N, K], labels [N]."""
    _check(probabilities, labels)
    own = probabilities[np.arange(len(labels)), labels]
    return float(((probabilities > own[:, None]).sum(axis=1) < k).mean())


def macro_f1(predictions: Labels, labels: Labels) -> float:
    """Mean over the classes that occur in either of 2·hits / (predicted + true)."""
    if len(labels) == 0 or predictions.shape != labels.shape:
        raise DataError(f"{len(predictions)} predictions for {len(labels)} labels; one for each, and not none")
    classes = np.union1d(predictions, labels)
    scores = []
    for name in classes:
        hits = ((predictions == name) & (labels == name)).sum()
        scores.append(2 * hits / ((predictions == name).sum() + (labels == name).sum()))
    return float(np.mean(scores))


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: for each bin of confidence, how many rows, how sure, how often right."""

    edges: Floats  # [bins + 1]
    counts: NDArray[np.int64]  # [bins]
    confidence: Floats  # [bins], NaN where there are no rows
    accuracy: Floats  # [bins], NaN where there are no rows

    @property
    def ece(self) -> float:
        """Expected calibration error: |accuracy − confidence|, weighted by the bins' rows."""
        filled = self.counts > 0
        gaps = np.abs(self.accuracy - self.confidence)[filled]
        return float((gaps * self.counts[filled]).sum() / self.counts.sum())


def reliability(probabilities: Floats, labels: Labels, bins: int = 15) -> Reliability:
    """Bins of equal width over the largest probability. probabilities [N, K], labels [N]."""
    _check(probabilities, labels)
    return reliability_of(probabilities.max(axis=1), probabilities.argmax(axis=1) == labels, bins)


def reliability_of(confidence: Floats, right: NDArray[np.bool_], bins: int = 15) -> Reliability:
    """Bins of equal width over the confidence of answers that were right or not: [N] each."""
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.digitize(confidence, edges[1:-1], right=True), 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            edges,
            counts,
            np.bincount(place, weights=confidence, minlength=bins) / counts,
            np.bincount(place, weights=right, minlength=bins) / counts,
        )


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """exp(logits / T), normalised by row."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_temperature(logits: Floats, labels: Labels, doubt: float = 0.0) -> float:
    """The temperature T > 0 that makes softmax(logits / T) most likely on held-out rows; found on log T.

    `doubt` counts as so many rows more of which nobody knows the label: where every row is right, the most likely
    temperature would be 0, and everything certain.
    """
    _check(logits, labels)

    def cost(log_temperature: float) -> float:
        logs = np.log(np.maximum(softmax(logits, np.exp(log_temperature)), 1e-300))
        return float(-logs[np.arange(len(labels)), labels].mean() - doubt / len(labels) * logs.mean())

    return float(np.exp(minimize_scalar(cost, bounds=(-5, 5), method="bounded", options={"xatol": 1e-6}).x))


def _check(scores: Floats, labels: Labels) -> None:
    if scores.ndim != 2 or len(scores) == 0 or labels.shape != scores.shape[:1]:
        raise DataError(f"scores {list(scores.shape)} and labels {list(labels.shape)} must be [N, K] and [N], N > 0")
    if labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise DataError(f"labels must lie in 0…{scores.shape[1] - 1}")
    if not np.isfinite(scores).all():
        raise DataError("scores hold NaN or infinity")
