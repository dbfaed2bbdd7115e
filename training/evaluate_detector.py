"""Scores a detector on validation pictures, upright and turned, and keeps the figures in `metrics.json`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from training.data.scenes import Scene, read_scenes
from training.data.words import Pixels
from training.errors import DataError
from training.figures import Figures
from training.metrics.text_detection import Counts, detection_counts, end_to_end_counts, match_words
from training.models.detector import Quads

TURNS = (15, 45, 90, 180)  # degrees
SURROUNDINGS = 127  # grey, where a turned picture leaves its canvas empty
NEARLY = 0.01  # of the two F1 together: what a higher threshold may cost


@dataclass(frozen=True)
class DetectorFigures(Figures):
    """What `metrics.json` of a detector holds."""

    heart: float = 0.5  # thresholds that the figures were measured with
    word: float = 0.5


@dataclass(frozen=True)
class ReadWords:
    """What was found and read in one picture."""

    quads: Quads  # [K, 4, 2], from the text's own top left
    texts: list[str]
    scores: NDArray[np.floating] | None = None  # [K] how surely there is a word, where that is known

    def surer(self, threshold: float) -> "ReadWords":
        """Those of this score and more."""
        assert self.scores is not None
        kept = np.flatnonzero(self.scores >= threshold)
        return ReadWords(self.quads[kept], [self.texts[place] for place in kept], self.scores[kept])


class ReadsPictures(Protocol):
    """Finds and reads words; the service's own pipeline is one."""

    def __call__(self, picture: Pixels) -> ReadWords:
        """Words of a picture [H, W, 3]."""


@dataclass(frozen=True)
class TurnedScene:
    """A scene on a canvas that grows when it is turned."""

    pixels: Pixels
    quads: Quads
    texts: tuple[str, ...]
    ignored: list[bool]


def validation_scenes(folders: Sequence[Path]) -> list[Scene]:
    """All photographs of the set `val`."""
    scenes = [scene for folder in folders for scene in read_scenes(folder) if scene.set_name == "val"]
    if not scenes:
        raise DataError("no photograph of the set val in the data")
    return scenes


def turned(scene: Scene, degrees: float) -> TurnedScene:
    """A scene turned clockwise; nothing of it is lost."""
    pixels = scene.load()
    height, width = pixels.shape[:2]
    angle = np.deg2rad(degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    across, down = abs(cosine), abs(sine)
    room = np.ceil(np.array([width * across + height * down, width * down + height * across]) - 1e-6)
    matrix = np.array([[cosine, -sine], [sine, cosine]])
    shift = (room - 1) / 2 - matrix @ ((np.array([width, height]) - 1) / 2)
    seen = cv2.warpAffine(
        pixels,
        np.concatenate([matrix, shift[:, None]], axis=1),
        (int(room[0]), int(room[1])),
        flags=cv2.INTER_CUBIC if degrees % 90 else cv2.INTER_NEAREST,
        borderValue=(SURROUNDINGS,) * 3,
    )
    quads = scene.quads @ matrix.T + shift
    return TurnedScene(np.asarray(seen, dtype=np.uint8), quads, scene.texts, scene.ignored.tolist())


@dataclass(frozen=True)
class Tally:
    """What came of many pictures."""

    found: Counts = field(default_factory=Counts)
    read: Counts = field(default_factory=Counts)
    right_way: int = 0  # found words whose polygon begins at the text's own top left

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.found + other.found, self.read + other.read, self.right_way + other.right_way)

    def figures(self, name: str) -> dict[str, float]:
        """Precision, recall and F1 of finding, F1 of finding and reading, and the share of right directions."""
        return {
            f"{name}/precision": round(self.found.precision, 4),
            f"{name}/recall": round(self.found.recall, 4),
            f"{name}/f1": round(self.found.f1, 4),
            f"{name}/end to end f1": round(self.read.f1, 4),
            f"{name}/right directions": round(self.right_way / max(self.found.matched, 1), 4),
        }


def judge(scene: TurnedScene, words: ReadWords) -> Tally:
    """The ICDAR'15 protocol on one picture."""
    found = detection_counts(words.quads, scene.quads, scene.ignored)
    read = end_to_end_counts(words.quads, words.texts, scene.quads, scene.texts, scene.ignored)
    pairs = match_words(words.quads, scene.quads, scene.ignored).pairs
    right = sum(_same_way(words.quads[own], scene.quads[true]) for own, true in pairs)
    return Tally(found, read, right)


def _same_way(first: Quads, second: Quads) -> bool:
    """Whether two words are read in the same direction, give or take 45°."""
    along = [quad[1] - quad[0] + quad[2] - quad[3] for quad in (first, second)]
    return bool(along[0] @ along[1] > np.sqrt(0.5) * np.linalg.norm(along[0]) * np.linalg.norm(along[1]))


def best_score(scenes: Sequence[Scene], read: ReadsPictures) -> float:
    """The score from which found words are best taken, by F1 of finding and of reading together.

    Of scores that are nearly as good, the highest: what is taken for no word need not be read.
    """
    shown = [turned(scene, 0) for scene in track(scenes, description="choosing", transient=True)]
    words = [read(scene.pixels) for scene in track(shown, description="choosing", transient=True)]

    def goodness(threshold: float) -> float:
        judged = (judge(scene, each.surer(threshold)) for scene, each in zip(shown, words, strict=True))
        tally = sum(judged, start=Tally())
        return tally.found.f1 + tally.read.f1

    judged = {float(threshold): goodness(threshold) for threshold in np.arange(0.5, 0.91, 0.025)}
    return max(threshold for threshold, good in judged.items() if good >= max(judged.values()) - NEARLY)


def evaluate_reading(scenes: Sequence[Scene], read: ReadsPictures, turns: Sequence[int] = TURNS) -> dict[str, float]:
    """Figures of upright pictures, and of the same pictures turned."""
    metrics: dict[str, float] = {}
    for degrees in (0, *turns):
        name = f"turned by {degrees}" if degrees else "reading"
        tally = Tally()
        for scene in track(scenes, description=name, transient=True):
            shown = turned(scene, degrees)
            tally += judge(shown, read(shown.pixels))
        metrics |= tally.figures(name)
    return metrics
