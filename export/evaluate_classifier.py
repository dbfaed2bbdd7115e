"""Scores a classifier as the service would use it: how often it is right, whether its probabilities can be believed,
when it had better be unsure, and what a prior is worth that nobody knows but the pictures.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from serving.pipelines.priors import estimate_weights, reweigh
from training.classifier_data import classifier_data, readable
from training.data.labelled import LabelledFile, read_labels
from training.data.paired_views import CHUNK, plain_views
from training.errors import DataError
from training.figures import Figures
from training.metrics.classification import (
    Floats,
    Labels,
    Reliability,
    fit_temperature,
    macro_f1,
    reliability,
    softmax,
    top_k_accuracy,
)
from training.models.classifier import Classifier

UNSEEN = "val_unseen_class"
RIGHT = 0.9  # share of answers that are right, of those that are not called unsure
DOUBT = 1.0  # pictures that might have been wrong, so that a perfect answer to few questions is not certainty
LEAST = 0.5  # what is less probable than not is unsure in any case
SKEWS, DRAWN = 20, 500  # resampled sets with priors of their own, and pictures of each


@dataclass(frozen=True)
class ClassifierFigures(Figures):
    """What `metrics.json` holds of a classifier."""

    size: int = 0  # pixels of the side it was scored at
    temperature: float = 1.0
    unsure_below: float = LEAST
    prior: list[float] = field(default_factory=list)  # the share of each class among the training pictures
    before: list[list[float]] = field(
        default_factory=list
    )  # rows of a reliability diagram: count, confidence, accuracy
    after: list[list[float]] = field(default_factory=list)


def evaluate_classifier(
    model: Classifier,
    folders: Sequence[Path],
    size: int,
    *,
    sources: Sequence[str] = (),
    strangers: bool = True,
    skip_unreadable: bool = False,
) -> ClassifierFigures:
    """All figures of a classifier on the set `val` and, for what it does not know, on `val_unseen_class`."""
    data = classifier_data(folders, sources, skip_unreadable=skip_unreadable)
    known = set(model.classes)
    asked = [file for file in data.val if file.class_name in known]
    if not asked:
        raise DataError(f"no validation picture is of one of the model's {len(known)} classes, {model.classes[0]} …")
    numbers = {name: number for number, name in enumerate(model.classes)}
    labels = np.array([numbers[file.class_name] for file in asked])
    scores = scores_of(model, asked, size)
    temperature, believed = calibrated(scores, labels)
    unsure_below = threshold(believed, labels)
    metrics = accuracies(scores, labels, asked)
    before, after = reliability(softmax(scores), labels), reliability(believed, labels)
    metrics |= {"val/ece before calibration": before.ece, "val/ece": after.ece}
    metrics |= sureness(believed, labels, unsure_below)
    unseen = _unseen(folders, sources, skip_unreadable=skip_unreadable) if strangers else []
    if unseen:
        surest = softmax(scores_of(model, unseen, size), temperature).max(axis=1)
        metrics["unseen classes/unsure"] = float((surest < unsure_below).mean())
    prior = np.array(model.counts) / sum(model.counts)
    metrics |= prior_shift(believed, labels, prior)
    return ClassifierFigures(
        {name: round(value, 4) for name, value in metrics.items()},
        size=size,
        temperature=round(temperature, 4),
        unsure_below=round(unsure_below, 2),
        prior=prior.tolist(),
        before=_rows(before),
        after=_rows(after),
    )


def trained_size(weights: str) -> int:
    """The size of pictures that a training was validated with, from its config."""
    config = Path(weights).parent / "config.json"
    try:
        return int(json.loads(config.read_text())["test_size"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{config} does not say how large pictures were; give --size") from error


def _unseen(folders: Sequence[Path], sources: Sequence[str], *, skip_unreadable: bool) -> list[LabelledFile]:
    files = [file for folder in folders for file in read_labels(folder) if file.set_name == UNSEEN]
    return readable([file for file in files if not sources or file.source in sources], skip=skip_unreadable)


def scores_of(model: Classifier, files: Sequence[LabelledFile], size: int) -> NDArray[np.float64]:
    """Scores of pictures as the service shows them to the network: [N, K]."""
    nothing = torch.nn.Identity()
    chunks = track(
        plain_views(files, nothing, size), description="classifying", total=-(-len(files) // CHUNK), transient=True
    )
    with torch.inference_mode():
        return np.concatenate([model(images).numpy() for images in chunks]).astype(np.float64)


def calibrated(scores: Floats, labels: Labels) -> tuple[float, Floats]:
    """The temperature of all rows, and probabilities of each row with a temperature that it had no part in.

    Rows are dealt into two hands, class by class; each hand is calibrated with the other's temperature.
    """
    hands = np.zeros(len(labels), dtype=int)
    for name in np.unique(labels):
        own = np.flatnonzero(labels == name)
        hands[own] = (np.arange(len(own)) + name) % 2
    believed = np.zeros(scores.shape)
    for hand in (0, 1):
        own, other = hands == hand, hands != hand
        believed[own] = softmax(
            scores[own], fit_temperature(scores[other], labels[other], DOUBT) if other.any() else 1.0
        )
    return fit_temperature(scores, labels, DOUBT), believed


def threshold(believed: Floats, labels: Labels) -> float:
    """The least probability from which on answers are right often enough; what is less probable than not is unsure."""
    surest, right = believed.max(axis=1), believed.argmax(axis=1) == labels
    for least in np.arange(LEAST, 1, 0.01):
        answered = surest >= least
        if not answered.any() or right[answered].mean() >= RIGHT:
            return float(least)
    return 0.99


def accuracies(scores: Floats, labels: Labels, files: Sequence[LabelledFile]) -> dict[str, float]:
    """Accuracy and macro-F1, over all and by source; of all classes, wherever they come from."""
    found = scores.argmax(axis=1)
    metrics = {
        "val/accuracy": top_k_accuracy(scores, labels),
        "val/among the first five": top_k_accuracy(scores, labels, k=5),
        "val/macro f1": macro_f1(found, labels),
    }
    sources = np.array([file.source for file in files])
    for source in np.unique(sources):
        own = sources == source
        metrics[f"{source}/val/accuracy"] = top_k_accuracy(scores[own], labels[own])
        metrics[f"{source}/val/macro f1"] = macro_f1(found[own], labels[own])
    return metrics


def sureness(believed: Floats, labels: Labels, unsure_below: float) -> dict[str, float]:
    """How many pictures get an answer, and how many of these answers are right."""
    answered = believed.max(axis=1) >= unsure_below
    right = believed.argmax(axis=1) == labels
    return {
        "val/answered": float(answered.mean()),
        "val/right when answered": float(right[answered].mean()) if answered.any() else 0.0,
    }


def prior_shift(believed: Floats, labels: Labels, prior: Floats) -> dict[str, float]:
    """Accuracy on sets drawn with skewed priors: as it is, with weights estimated from the set, and with true ones.

    In each set the classes' shares fall as 1, 1/2, 1/3 … in a random order.
    """
    random = np.random.default_rng(0)
    classes = np.unique(labels)
    right: dict[str, list[float]] = {"uncorrected": [], "estimated prior": [], "known prior": []}
    for _ in range(SKEWS):
        shares = np.zeros(believed.shape[1])
        shares[random.permutation(classes)] = 1 / np.arange(1, len(classes) + 1)
        shares /= shares.sum()
        chance = shares[labels] / np.bincount(labels, minlength=len(shares))[labels]
        drawn = random.choice(len(labels), DRAWN, p=chance / chance.sum())
        rows, truth = believed[drawn], labels[drawn]
        corrected = {
            "uncorrected": rows,
            "estimated prior": reweigh(rows, estimate_weights(rows, prior)),
            "known prior": reweigh(rows, np.maximum(shares, 1e-9) / prior),
        }
        for name, posteriors in corrected.items():
            right[name].append(float((posteriors.argmax(axis=1) == truth).mean()))
    return {f"prior shift/{name}": float(np.mean(values)) for name, values in right.items()}


def _rows(diagram: Reliability) -> list[list[float]]:
    """Bins as lists, empty ones as zeros."""
    columns = (diagram.counts, np.nan_to_num(diagram.confidence), np.nan_to_num(diagram.accuracy))
    return [[round(float(value), 4) for value in row] for row in zip(*columns, strict=True)]
