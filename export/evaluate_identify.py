"""`readleaf evaluate identify`: how well the models in a repository name species together, and know what they do not.

Pictures of the set `train` are the collection; `val` are asked about, and `val_unseen_class` must be refused. All of it
goes through the service's own code: its embedder, vote, classifier and way to fuse them.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from serving.images import ImageLimits
from serving.manifest import EmbedderManifest
from serving.on_this_machine import opened
from serving.pipelines.classify import open_classifiers
from serving.pipelines.embed import Embedder
from serving.pipelines.identify import CLASSIFIER, CROWD, FIFTH, NEIGHBOURS, POWER, familiarity
from serving.pipelines.upload import Upload
from serving.repository import load_repository, manifest_as, model_of
from serving.settings import Settings
from serving.timing import Timings
from training.data.labelled import LabelledFile, read_labels
from training.errors import DataError
from training.metrics.classification import macro_f1

Floats = NDArray[np.float64]
UNSEEN = "val_unseen_class"
ACCEPTED = 0.05  # share of strangers that may be given a name
KEPT = 0.95  # share of known kinds that must not be refused
GROUP = 3  # pictures that are taken for one organism
GROUPS = 400


@dataclass(frozen=True)
class Looks:
    """What the models see in pictures of one set."""

    labels: NDArray[np.str_]
    vectors: NDArray[np.float32]  # [N, d]
    posteriors: Floats  # [N, K]


@dataclass(frozen=True)
class Sets:
    """A collection, pictures of kinds that it knows, and pictures of kinds that it does not."""

    classes: list[str]  # of the classifier
    train: Looks
    val: Looks
    unseen: Looks


def look_at(folders: Sequence[Path], models: Path) -> Sets:
    """Every picture of classes that the classifier knows, and of those that nobody trained on."""
    repository = load_repository(models)
    wanted = {name: model_of(repository, name) for name in ("embedder", "classifier")}
    limits = ImageLimits(1 << 40, 1 << 40)
    files = [file for folder in folders for file in read_labels(folder)]
    with opened(wanted, Settings()) as (networks, workers):
        embedder = Embedder(networks["embedder"], manifest_as(wanted["embedder"], EmbedderManifest), limits, workers)
        classifier = open_classifiers(wanted, networks, limits, workers).named("classifier")
        classes = list(classifier.manifest.labels)

        def look(file: LabelledFile) -> tuple[NDArray[np.float32], Floats]:
            upload = Upload(file.path.name, file.path.read_bytes())
            return embedder.embed_one(upload), classifier.posterior(upload, Timings())

        def looks(name: str, known: bool) -> Looks:
            own = [file for file in files if file.set_name == name and (file.class_name in classes) == known]
            return _gathered(own, look, workers, name)

        sets = Sets(classes, looks("train", True), looks("val", True), looks(UNSEEN, False))
    if not len(sets.train.labels) or not len(sets.val.labels):
        raise DataError("no picture of the sets train and val is of a class that the classifier knows")
    return sets


def _gathered(
    files: Sequence[LabelledFile],
    look: Callable[[LabelledFile], tuple[NDArray[np.float32], Floats]],
    workers: Executor,
    name: str,
) -> Looks:
    rows = list(track(workers.map(look, files), description=name, total=len(files), transient=True))
    if not rows:
        return Looks(np.array([], dtype=np.str_), np.zeros((0, 1), np.float32), np.zeros((0, 1)))
    return Looks(
        np.array([file.class_name for file in files]),
        np.stack([row[0] for row in rows]),
        np.stack([r[1] for r in rows]),
    )


def shares(asked: Looks, sets: Sets, count: int = NEIGHBOURS) -> tuple[Floats, Floats]:
    """The neighbours' vote as the service counts it, [N, K], and the similarity of the nearest, [N]."""
    similarity = (asked.vectors @ sets.train.vectors.T).astype(np.float64)
    nearest = np.argpartition(-similarity, count, axis=1)[:, :count]
    weights = np.maximum(np.take_along_axis(similarity, nearest, axis=1), 0) ** POWER
    numbers = {name: number for number, name in enumerate(sets.classes)}
    own = np.array([numbers[name] for name in sets.train.labels])
    votes = np.zeros((len(similarity), len(sets.classes)))
    for row, (places, heavy) in enumerate(zip(nearest, weights, strict=True)):
        np.add.at(votes[row], own[places], heavy)
    return votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-12), similarity.max(axis=1)


def auroc(known: Floats, unknown: Floats) -> float:
    """How often a known picture scores above an unknown one; a draw counts half."""
    ranked = np.sort(unknown)
    below, upto = np.searchsorted(ranked, known, "left"), np.searchsorted(ranked, known, "right")
    return float((below + upto).mean() / 2 / len(unknown))


def kept_at(known: Floats, right: NDArray[np.bool_], unknown: Floats, accepted: float = ACCEPTED) -> float:
    """The share of known pictures that are named, and named right, when this share of strangers is accepted."""
    threshold = float(np.quantile(unknown, 1 - accepted, method="higher"))
    return float(((known > threshold) & right).mean())


@dataclass(frozen=True)
class IdentifyFigures:
    """What was measured, and from where on an organism is familiar."""

    metrics: dict[str, float]
    familiar_from: float | None


def figures(sets: Sets) -> IdentifyFigures:
    """Accuracy of neighbours, of the classifier, of both; of groups of pictures; and what is done with strangers."""
    truth = np.array([sets.classes.index(name) for name in sets.val.labels])
    votes, _ = shares(sets.val, sets)
    both = fused(votes, sets.val.posteriors)
    metrics: dict[str, float] = {}
    for name, scores in (("neighbours", votes), ("classifier", sets.val.posteriors), ("both", both)):
        found = scores.argmax(axis=1)
        metrics[f"{name}/accuracy"] = float((found == truth).mean())
        metrics[f"{name}/macro f1"] = macro_f1(found, truth)
    for name, accuracy in grouped(both, truth).items():
        metrics[f"{GROUP} pictures/{name}"] = accuracy
    if not len(sets.unseen.labels):
        return IdentifyFigures(_rounded(metrics), None)
    right = both.argmax(axis=1) == truth
    (known, near), (unknown, far) = (at_home(asked, sets) for asked in (sets.val, sets.unseen))
    for name, mine, others in (("open set", known, unknown), ("open set, nearest alone", near, far)):
        metrics[f"{name}/auroc"] = auroc(mine, others)
        metrics[f"{name}/right at 5 % false acceptance"] = kept_at(mine, right, others)
        metrics[f"{name}/strangers refused at 95 % kept"] = float((others < np.quantile(mine, 1 - KEPT)).mean())
    return IdentifyFigures(_rounded(metrics), round(float(np.quantile(known, 1 - KEPT)), 4))


def fused(votes: Floats, posteriors: Floats) -> Floats:
    """As the service does where the classifier knows all labels."""
    return (1 - CLASSIFIER) * votes + CLASSIFIER * posteriors


def at_home(asked: Looks, sets: Sets) -> tuple[Floats, Floats]:
    """How familiar pictures are, as the service counts it, and how near the nearest is; both [N]."""
    among = (sets.train.vectors @ sets.train.vectors.T).astype(np.float64)
    np.fill_diagonal(among, -1)
    crowding = -np.partition(-among, FIFTH - 1, axis=1)[:, FIFTH - 1]
    similarity = (asked.vectors @ sets.train.vectors.T).astype(np.float64)
    order = np.argsort(-similarity, axis=1)[:, :CROWD]
    votes, nearest = shares(asked, sets)
    sure = fused(votes, asked.posteriors).max(axis=1)
    found = [
        familiarity(row[places].tolist(), crowding[places].tolist(), float(score))
        for row, places, score in zip(similarity, order, sure, strict=True)
    ]
    return np.array(found), nearest


def _rounded(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in metrics.items()}


def grouped(scores: Floats, truth: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy when three pictures of one class are one organism: by its most confident picture, and by the mean."""
    random = np.random.default_rng(0)
    right: Mapping[str, list[bool]] = {"one picture": [], "most confident": [], "mean": []}
    classes = [name for name in np.unique(truth) if (truth == name).sum() >= GROUP]
    for _ in range(GROUPS):
        name = random.choice(classes)
        rows = scores[random.choice(np.flatnonzero(truth == name), GROUP, replace=False)]
        right["one picture"].append(bool(rows[0].argmax() == name))
        right["most confident"].append(bool(rows[rows.max(axis=1).argmax()].argmax() == name))
        right["mean"].append(bool(rows.mean(axis=0).argmax() == name))
    return {name: float(np.mean(values)) for name, values in right.items()}
