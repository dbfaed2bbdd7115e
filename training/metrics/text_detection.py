"""The ICDAR'15 protocol: how well words are found, and how well they are found and read.

A detection is right if its IoU with a true word is above one half; each is matched once, in the order given. True
words marked "don't care" are not asked for: a detection that one of them covers by more than half of the
detection's own area is left out, and so is a don't-care word itself. Words are quadrilaterals, as in ICDAR'15;
`training.metrics.rotated_iou.corners` makes them of rotated boxes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from training.errors import DataError
from training.metrics.edit_distance import alphanumeric_only

MATCH = 0.5  # IoU of a match, and the share of a detection that a don't-care region must cover


@dataclass(frozen=True)
class Counts:
    """What was found in one picture or in many: add them up, then ask for the rates."""

    matched: int = 0
    detected: int = 0
    wanted: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.matched + other.matched, self.detected + other.detected, self.wanted + other.wanted)

    @property
    def precision(self) -> float:
        """Share of detections that are right; 0 without detections."""
        return self.matched / self.detected if self.detected else 0.0

    @property
    def recall(self) -> float:
        """Share of wanted words that were found; 0 if none was wanted."""
        return self.matched / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.matched / (self.detected + self.wanted) if self.detected + self.wanted else 0.0


@dataclass(frozen=True)
class Matches:
    """Which detection is which true word in one picture."""

    pairs: list[tuple[int, int]]  # (detection, true word)
    detected: int  # detections that count
    wanted: int  # true words that count


def match_words(detections: ArrayLike, truths: ArrayLike, dont_care: Sequence[bool]) -> Matches:
    """Match quadrilaterals: detections [N, 4, 2], truths [M, 4, 2], dont_care [M]."""
    found, true = _polygons("detections", detections), _polygons("truths", truths)
    ignored = np.asarray(dont_care, dtype=bool)
    if ignored.shape != true.shape:
        raise DataError(f"dont_care has {ignored.size} marks for {len(true)} truths; there must be one for each")
    shared = shapely.area(shapely.intersection(found[:, None], true[None, :]))  # [N, M]
    area_found, area_true = shapely.area(found)[:, None], shapely.area(true)[None, :]
    covered = (shared > MATCH * area_found) & ignored
    counted = ~covered.any(axis=1)
    # IoU above one half, written without a division: a shape without area matches nothing.
    close = shared > MATCH * (area_found + area_true - shared)
    close &= counted[:, None] & ~ignored[None, :]
    free = np.ones(len(found), dtype=bool)
    pairs = []
    for word in range(len(true)):
        candidates = np.flatnonzero(close[:, word] & free)
        if candidates.size:
            free[candidates[0]] = False
            pairs.append((int(candidates[0]), word))
    return Matches(pairs, int(counted.sum()), int((~ignored).sum()))


def detection_counts(detections: ArrayLike, truths: ArrayLike, dont_care: Sequence[bool]) -> Counts:
    """Words found in one picture, whatever was read there."""
    matches = match_words(detections, truths, dont_care)
    return Counts(len(matches.pairs), matches.detected, matches.wanted)


def end_to_end_counts(
    detections: ArrayLike, readings: Sequence[str], truths: ArrayLike, words: Sequence[str], dont_care: Sequence[bool]
) -> Counts:
    """Words found *and* read in one picture: texts are compared on [0-9a-z], capitals and small letters alike."""
    matches = match_words(detections, truths, dont_care)
    for name, texts, shapes in (("readings", readings, np.asarray(detections)), ("words", words, np.asarray(truths))):
        if len(texts) != len(shapes):
            raise DataError(f"{name} has {len(texts)} texts for {len(shapes)} shapes; there must be one for each")
    right = sum(alphanumeric_only(readings[found]) == alphanumeric_only(words[true]) for found, true in matches.pairs)
    return Counts(right, matches.detected, matches.wanted)


def _polygons(name: str, shapes: ArrayLike) -> NDArray[np.object_]:
    """Polygons of quadrilaterals; crossed edges are undone, as annotators do draw them."""
    array = np.asarray(shapes, dtype=np.float64)
    if array.size == 0:
        return np.empty(0, dtype=object)
    if array.ndim != 3 or array.shape[1:] != (4, 2):
        raise DataError(f"{name} must be [N, 4, 2], not {list(array.shape)}")
    if not np.isfinite(array).all():
        raise DataError(f"{name} holds NaN or infinity")
    return np.asarray(shapely.make_valid(shapely.polygons(array)))
