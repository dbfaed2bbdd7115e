"""What a quadrilateral says of its word: where it is, how large, which way it runs and how sure that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NOISE = np.deg2rad(6.0)  # error of the angle of a word as wide as it is high; a longer word is surer
LEAST_NOISE = np.deg2rad(1.5)  # error of the angle of a long word
STEADY = 1.4  # width over height from which a word's angle is believed; a single letter may lie in any way


@dataclass(frozen=True)
class Shapes:
    """Words on their own: centers [M, 2]; widths, heights and angles in radians, clockwise as y points down [M]."""

    centers: Floats
    widths: Floats
    heights: Floats
    angles: Floats

    def __getitem__(self, chosen: Indices) -> "Shapes":
        return Shapes(self.centers[chosen], self.widths[chosen], self.heights[chosen], self.angles[chosen])

    @property
    def lengths(self) -> Floats:
        """Widths in heights, up to 10: about twice that many letters."""
        return np.minimum(self.widths / self.heights, 10.0)

    @property
    def sure(self) -> Floats:
        """One over the error of each angle; a single letter's says next to nothing."""
        lengths = self.lengths
        return np.where(lengths < STEADY, 1e-3, 1 / np.hypot(LEAST_NOISE, NOISE / np.maximum(lengths, STEADY)))

    @property
    def halves(self) -> Floats:
        """From the center of each word to the middle of its end [M, 2]."""
        return np.stack([np.cos(self.angles), np.sin(self.angles)], axis=1) * self.widths[:, None] / 2


def measure(quads: Floats) -> Shapes:
    """Shapes of quads [M, 4, 2]; a word without width is read across its height."""
    along = (quads[:, 1] - quads[:, 0] + quads[:, 2] - quads[:, 3]) / 2
    down = (quads[:, 3] - quads[:, 0] + quads[:, 2] - quads[:, 1]) / 2
    widths, heights = np.hypot(*along.T), np.hypot(*down.T)
    least = 1e-3 * max(float(heights.max()), float(widths.max()), 1e-6)
    along = np.where(widths[:, None] > least, along, down[:, ::-1] * [1, -1])
    return Shapes(quads.mean(axis=1), widths, np.maximum(heights, least), np.arctan2(along[:, 1], along[:, 0]))


def direction(shapes: Shapes) -> float:
    """The mean angle; long words are surer of theirs."""
    weights = np.square(shapes.sure)
    return float(np.arctan2(weights @ np.sin(shapes.angles), weights @ np.cos(shapes.angles)))


def difference(one: Floats, other: Floats | float) -> Floats:
    """Between angles, from −π to π."""
    return np.asarray((one - other + np.pi) % (2 * np.pi) - np.pi)


def turned(points: Floats, angle: float) -> Floats:
    """Points [M, 2] in a frame whose x axis has the angle."""
    return np.asarray(points @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
