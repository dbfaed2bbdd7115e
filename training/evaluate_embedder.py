"""Scores a model on validation pictures and keeps the figures in `metrics.json`."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from training.data.labelled import LabelledFile, load_pixels, read_labels
from training.data.pixels import normalised
from training.errors import DataError
from training.figures import Figures
from training.metrics.rejection import calibrate_rejection
from training.metrics.retrieval import average_precision_at_r, recall_at, similarity_percentiles
from training.models.embedder import Embedder

UNSEEN = "val_unseen_class"
BATCH = 32
MOST_COMPARED = 5000  # pictures of which all pairs are looked at


@dataclass(frozen=True)
class EmbedderFigures(Figures):
    """What `metrics.json` of an embedder holds."""

    measured_on: str = ""
    different: list[float] = field(default_factory=list)  # percentiles of similarities
    same: list[float] = field(default_factory=list)
    reject_below: float | None = None


def evaluate_embedder(model: Embedder, size: int, folders: Sequence[Path]) -> EmbedderFigures:
    """Nearest neighbours by source, and what a similarity means.

    Of classes never trained on: r@k and mAP@R, leave one out. Of known classes: the share of `val` pictures whose
    nearest `train` picture is of their class (1-nn). The similarity below which a picture is called none of the known
    is taken from the classes never trained on: a visitor's kinds are such, too.
    """
    files = [file for folder in folders for file in read_labels(folder)]
    unseen, known, asked = _sets(files)
    metrics: dict[str, float] = {}
    reject_below = None
    if unseen:
        strangers = embed_files(model, size, unseen)
        metrics |= _unseen_figures(unseen, strangers, (1, 2, 4, 8))
        rejection = calibrate_rejection(_by_source(unseen, strangers))
        reject_below = round(rejection.threshold, 4)
        for source, share in rejection.refused.items():
            metrics[f"{source}/{UNSEEN}/named"] = rejection.kept[source]
            metrics[f"{source}/{UNSEEN}/strangers refused"] = share
    if asked:
        gallery, queries = embed_files(model, size, known), embed_files(model, size, asked)
        metrics |= _nearest_is_right(known, gallery, asked, queries)
    measured, vectors = (unseen, strangers) if unseen else (known + asked, np.concatenate([gallery, queries]))
    if len(measured) > MOST_COMPARED:
        some = np.random.default_rng(0).choice(len(measured), MOST_COMPARED, replace=False)
        measured, vectors = [measured[place] for place in some], vectors[some]
    labels = _numbered(measured)
    different, same = similarity_percentiles(vectors, labels)
    sources = ", ".join(sorted({file.source for file in measured}))
    described = (
        f"{len(measured)} pictures of {len(set(labels))} classes {'never trained on ' if unseen else ''}({sources})"
    )
    return EmbedderFigures(
        {name: round(value, 4) for name, value in metrics.items()},
        measured_on=described,
        different=different,
        same=same,
        reject_below=reject_below,
    )


def validate_embedder(model: Embedder, size: int, files: Sequence[LabelledFile]) -> dict[str, float]:
    """Figures to watch a training by: r@1 and mAP@R on classes never trained on; without such, 1-nn on `val`."""
    unseen, known, asked = _sets(files)
    if unseen:
        return _unseen_figures(unseen, embed_files(model, size, unseen, quiet=True), (1,))
    gallery, queries = (embed_files(model, size, part, quiet=True) for part in (known, asked))
    return _nearest_is_right(known, gallery, asked, queries)


def _unseen_figures(unseen: Sequence[LabelledFile], vectors: np.ndarray, ks: Sequence[int]) -> dict[str, float]:
    """r@k and mAP@R by source, leave one out."""
    figures = {}
    for source, (own, labels) in _by_source(unseen, vectors).items():
        for k, value in recall_at(own, labels, ks).items():
            figures[f"{source}/{UNSEEN}/r@{k}"] = value
        figures[f"{source}/{UNSEEN}/mAP@R"] = average_precision_at_r(own, labels)
    return figures


def _by_source(files: Sequence[LabelledFile], vectors: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Vectors and class numbers of each source."""
    labels = _numbered(files)
    sources = np.array([file.source for file in files])
    return {str(source): (vectors[sources == source], labels[sources == source]) for source in np.unique(sources)}


def _nearest_is_right(
    known: Sequence[LabelledFile], gallery: np.ndarray, asked: Sequence[LabelledFile], queries: np.ndarray
) -> dict[str, float]:
    """1-nn by source: the nearest known picture of the same source has the right class."""
    figures = {}
    sources = np.array([file.source for file in known])
    for source in sorted({file.source for file in asked}):
        places = np.flatnonzero(sources == source)
        own = [index for index, file in enumerate(asked) if file.source == source]
        nearest = places[(queries[own] @ gallery[places].T).argmax(axis=1)]
        right = [known[there].class_name == asked[here].class_name for there, here in zip(nearest, own, strict=True)]
        figures[f"{source}/val/1-nn"] = float(np.mean(right))
    return figures


def embed_files(model: Embedder, size: int, files: Sequence[LabelledFile], *, quiet: bool = False) -> np.ndarray:
    """Embed pictures from disk, with a progress bar unless `quiet`; returns [files, dim]."""
    rows = []
    starts = range(0, len(files), BATCH)
    with torch.inference_mode(), ThreadPoolExecutor() as readers:
        for start in starts if quiet else track(starts, description="embedding"):
            chunk = files[start : start + BATCH]
            pixels = np.stack(list(readers.map(lambda file: load_pixels(file.path, size, size), chunk)))
            rows.append(model(normalised(torch.from_numpy(pixels))).numpy())
    return np.concatenate(rows)


def _sets(files: Sequence[LabelledFile]) -> tuple[list[LabelledFile], ...]:
    """Pictures of unseen classes, known ones, and those to ask about; says what keeps them from being compared."""
    unseen, known, asked = ([file for file in files if file.set_name == name] for name in (UNSEEN, "train", "val"))
    if not unseen and not asked:
        raise DataError(f"no picture of the set {UNSEEN} or val in the data")
    if len(set(map(_class, unseen or known))) < 2:
        raise DataError("all pictures are of one class; neighbours need two classes to be told apart")
    counts = Counter(map(_class, unseen))
    for source in sorted({file.source for file in unseen}):
        if not any(count > 1 for (owner, _), count in counts.items() if owner == source):
            raise DataError(f"{source}: neighbours need a class with two pictures")
    strangers = {file.source for file in asked} - {file.source for file in known}
    if strangers:
        raise DataError(f"{min(strangers)} has pictures of the set val, but none of train to compare them with")
    return unseen, known, asked


def _numbered(files: Sequence[LabelledFile]) -> np.ndarray:
    numbers = {name: number for number, name in enumerate(sorted(set(map(_class, files))))}
    return np.array([numbers[_class(file)] for file in files])


def _class(file: LabelledFile) -> tuple[str, str]:
    return file.source, file.class_name
