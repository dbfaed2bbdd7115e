"""How far a surrogate is from its metric: per range of the metric, and in pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from training.surrogates.learning import Round, Surrogate

EDIT_DISTANCE_EDGES = (1, 2, 3, 4)  # bins 0, 1, 2, 3 and 4 or more
OVERLAP_EDGES = tuple(tenth / 10 for tenth in range(1, 10))  # ten equal bins of 1 − IoU


@dataclass(frozen=True)
class Quality:
    """|ê − e| in bins of e. The mean has no weights: a surrogate that always answers 0 cannot hide in it."""

    exact: NDArray[np.float64]  # e of each pair
    estimate: NDArray[np.float64]  # ê
    by_bin: tuple[float, ...]  # NaN where there was no pair
    mean: float


def measure(surrogate: Surrogate, prediction: Tensor, truth: Tensor, edges: Sequence[float]) -> Quality:
    """Errors of a surrogate on given pairs, in the bins that `edges` lie between."""
    with torch.no_grad():
        estimate = surrogate(prediction, truth).double().cpu().numpy()
    exact = surrogate.metric(prediction, truth).double().cpu().numpy()
    errors = np.abs(estimate - exact)
    places = np.digitize(exact, edges)
    by_bin = [errors[places == place].mean() if (places == place).any() else np.nan for place in range(len(edges) + 1)]
    return Quality(exact, estimate, tuple(float(value) for value in by_bin), float(np.nanmean(by_bin)))


def draw_learning(rounds: Sequence[Round], path: Path) -> None:
    """The approximation error over the surrogate's steps, as a PNG."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([entry.steps for entry in rounds], [entry.error for entry in rounds])
    axes.set(xlabel="steps of the surrogate", ylabel="mean |ê − e|", ylim=(0, None))
    _save(figure, path)


def draw_band(quality: Quality, path: Path, threshold: float = 0.25) -> None:
    """ê against e, with the band |ê − e| ≤ threshold in which FEDS' filter lets a sample count, as a PNG."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot()
    ends = np.array([0.0, max(float(quality.exact.max()), threshold)])
    axes.fill_between(ends, ends - threshold, ends + threshold, alpha=0.2, label=f"within {threshold}")
    axes.plot(ends, ends, linewidth=1)
    axes.scatter(quality.exact, quality.estimate, s=4, alpha=0.4)
    axes.set(xlabel="metric e", ylabel="surrogate ê")
    axes.legend()
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure).print_png(path)
