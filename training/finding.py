"""Finding words with a detector: pictures to maps, maps to words, words to figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from training.data.pixels import normalised
from training.data.scenes import Scene
from training.data.words import Pixels
from training.metrics.text_detection import Counts, detection_counts
from training.models.dense_detector import DenseDetector, box_maps
from training.models.detector import Quads, quads_of
from training.models.detectors import AnyDetector
from training.models.picture_backbone import MULTIPLE

Floats = NDArray[np.float32]
# Maps [h, w, 7] to boxes [K, 6] and scores [K]. The service defines it; whoever starts a training hands it in.
Gather = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Found:
    """The words found in one picture."""

    quads: Quads  # [K, 4, 2]
    scores: Floats  # [K]


def maps_of(model: DenseDetector, pixels: Pixels) -> Floats:
    """Maps of one picture, filled up to a size that the network takes: [h, w, 7]."""
    height, width = pixels.shape[:2]
    room = cv2.copyMakeBorder(pixels, 0, -height % MULTIPLE, 0, -width % MULTIPLE, cv2.BORDER_CONSTANT, value=(0, 0, 0))
    images = normalised(torch.from_numpy(np.asarray(room, dtype=np.uint8))[None])
    with torch.inference_mode():
        maps: Floats = box_maps(model(images.contiguous(memory_format=torch.channels_last)))[0].numpy()
    return maps


def find_words(model: AnyDetector, scenes: Sequence[Scene], gather: Gather, *, quiet: bool = True) -> list[Found]:
    """Words of each picture, at its own size. An RRPN gathers its boxes itself."""
    found = []
    for scene in track(scenes, description="finding words", transient=True, disable=quiet):
        if isinstance(model, DenseDetector):
            boxes, scores = gather(maps_of(model, scene.load()))
        else:
            [(own_boxes, own_scores)] = model.find(normalised(torch.from_numpy(scene.load())[None]))
            boxes, scores = own_boxes.numpy(), own_scores.numpy()
        found.append(Found(quads_of(boxes), scores))
    return found


def count_found(scenes: Sequence[Scene], found: Sequence[Found], threshold: float = 0.0) -> Counts:
    """The ICDAR'15 protocol over all pictures, with words of this score and more."""
    total = Counts()
    for scene, each in zip(scenes, found, strict=True):
        total += detection_counts(each.quads[each.scores >= threshold], scene.quads, scene.ignored.tolist())
    return total


def best_threshold(scenes: Sequence[Scene], found: Sequence[Found]) -> float:
    """The score from which words are best taken: the highest F1."""
    steps = np.arange(0.2, 0.96, 0.025)
    return float(max(steps, key=lambda step: count_found(scenes, found, step).f1))


def detection_figures(scenes: Sequence[Scene], found: Sequence[Found], threshold: float) -> dict[str, float]:
    """Precision, recall and F1."""
    counts = count_found(scenes, found, threshold)
    return {
        "detection/precision": round(counts.precision, 4),
        "detection/recall": round(counts.recall, 4),
        "detection/f1": round(counts.f1, 4),
    }
