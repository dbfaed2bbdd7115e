"""Scores a model on validation pictures and keeps the figures in `metrics.json`."""

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from training.data.labelled import LabelledFile, load_pixels, read_labels
from training.errors import DataError
from training.metrics.retrieval import recall_at, similarity_percentiles
from training.models.embedder import Embedder

UNSEEN = "val_unseen_class"
BATCH = 32


@dataclass(frozen=True)
class EmbedderFigures:
    """What `metrics.json` of an embedder holds."""

    metrics: dict[str, float]
    measured_on: str
    different: list[float]
    same: list[float]

    def write(self, file: Path) -> None:
        """Write them as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> "EmbedderFigures":
        """Read what `write` wrote."""
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{file} holds no figures ({error}); `readleaf evaluate embedder` writes them") from error


def evaluate_embedder(model: Embedder, size: int, folders: Sequence[Path]) -> EmbedderFigures:
    """r@k on classes never trained on, by source, and what a similarity means over all of them."""
    files = [file for folder in folders for file in read_labels(folder) if file.set_name == UNSEEN]
    if not files:
        raise DataError(f"no picture of the set {UNSEEN} in {', '.join(map(str, folders))}")
    counts = Counter(map(_class, files))
    sources = sorted({file.source for file in files})
    for source in sources:
        if len(counts) < 2 or not any(count > 1 for (owner, _), count in counts.items() if owner == source):
            raise DataError(f"{source}: neighbours need two classes, and a class with two pictures")
    vectors = embed_files(model, size, files)
    classes = {name: number for number, name in enumerate(sorted(counts))}
    labels = np.array([classes[_class(file)] for file in files])
    metrics: dict[str, float] = {}
    for source in sources:
        chosen = np.array([file.source == source for file in files])
        for k, value in recall_at(vectors[chosen], labels[chosen]).items():
            metrics[f"{source}/{UNSEEN}/r@{k}"] = round(value, 4)
    different, same = similarity_percentiles(vectors, labels)
    described = f"{len(files)} pictures of {len(classes)} classes never trained on ({', '.join(sources)})"
    return EmbedderFigures(metrics, described, different, same)


def embed_files(model: Embedder, size: int, files: Sequence[LabelledFile]) -> np.ndarray:
    """Embed pictures from disk, with a progress bar; returns [files, dim]."""
    rows = []
    with torch.inference_mode(), ThreadPoolExecutor() as readers:
        for start in track(range(0, len(files), BATCH), description="embedding"):
            chunk = files[start : start + BATCH]
            pixels = np.stack(list(readers.map(lambda file: load_pixels(file.path, size, size), chunk)))
            images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1
            rows.append(model(images).numpy())
    return np.concatenate(rows)


def _class(file: LabelledFile) -> tuple[str, str]:
    return file.source, file.class_name
