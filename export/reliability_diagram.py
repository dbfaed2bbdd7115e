"""Reliability diagrams: how sure a classifier is, and how often it is right then."""

from collections.abc import Mapping
from pathlib import Path

from export.evaluate_classifier import ClassifierFigures


def draw_reliability(models: Mapping[str, ClassifierFigures], file: Path) -> None:
    """A row of two diagrams for each model: before and after calibration."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8 * len(models)), layout="constrained")
    rows = figure.subplots(len(models), 2, squeeze=False)
    for (name, figures), (left, right) in zip(models.items(), rows, strict=True):
        before, after = (figures.metrics[f"val/{each}"] for each in ("ece before calibration", "ece"))
        for axes, bins, title in (
            (left, figures.before, f"{name}, before: ECE {before:.3f}"),
            (right, figures.after, f"{name}, calibrated: ECE {after:.3f}"),
        ):
            width = 1 / len(bins)
            places = [(number + 0.5) * width for number in range(len(bins))]
            most = max(count for count, _, _ in bins)
            axes.bar(places, [accuracy for _, _, accuracy in bins], width, color="#7fb58a", edgecolor="white")
            axes.bar(places, [0.2 * count / most for count, _, _ in bins], width * 0.4, color="#24572f", alpha=0.5)
            axes.plot([0, 1], [0, 1], color="#24572f", linestyle="--")
            axes.set(title=title, xlabel="probability", ylabel="share of right answers", xlim=(0, 1), ylim=(0, 1))
    figure.savefig(file)
