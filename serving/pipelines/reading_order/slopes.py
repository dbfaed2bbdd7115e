"""How the lines of a text run, and where its words are once the lines are made level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.pipelines.reading_order.shapes import Floats, Indices, Shapes, difference, direction, turned

WOBBLE = 0.12  # error of a word's place across its line, in heights
CURVE = np.deg2rad(6.0)  # usual change of slope over half a page along its lines
SLANT = np.deg2rad(3.0)  # usual change of slope over half a page from line to line
ASKEW = np.deg2rad(30.0)  # a word that is further off was misjudged and has no say
LEAST = 1e-3  # pixels of a word's height


@dataclass(frozen=True)
class Boxes:
    """Upright rectangles: centers and extents [M]."""

    x: Floats
    y: Floats
    widths: Floats
    heights: Floats


@dataclass(frozen=True)
class Slopes:
    """How lines run in a frame turned by `angle`: dy/dx = a + b·u + c·v, u and v measured from `middle` in `reach`.

    That is a straight text askew, and to a first order also one on a curve (b) or seen from the side (c).
    """

    angle: float
    middle: Floats  # [2]
    reach: float
    terms: Floats  # a, b, c
    errors: Floats  # their covariance [3, 3]

    def at(self, centers: Floats) -> Floats:
        """Angles [M] that words at centers [M, 2] should have."""
        return np.asarray(self.angle + np.arctan(self._places(centers) @ self.terms))

    def doubts(self, centers: Floats) -> Floats:
        """How wrong the slopes [M] at centers [M, 2] may be."""
        places = self._places(centers)
        return np.asarray(np.sqrt(((places @ self.errors) * places).sum(axis=1)))

    def level(self, centers: Floats) -> tuple[Floats, Floats]:
        """Centers [M, 2] as x and y with lines made level: y less the integral of the slope along x."""
        x, y = turned(centers, self.angle).T
        _, u, v = self._places(centers).T
        a, b, c = self.terms
        return x, y - self.reach * (a * u + b * u * u / 2 + c * u * v)

    def _places(self, centers: Floats) -> Floats:
        """1, u and v [M, 3]."""
        return np.insert((turned(centers, self.angle) - self.middle) / self.reach, 0, 1.0, axis=1)


def slopes_of(shapes: Shapes, lines: Sequence[Indices] = ()) -> Slopes:
    """Fitted to the angles of words and, which is surer, to words that are known to follow one another in lines."""
    angle = direction(shapes)
    places = turned(shapes.centers, angle)
    middle, reach = places.mean(axis=0), max(float(np.ptp(places, axis=0).max()) / 2, 1e-9)
    off = difference(shapes.angles, angle)
    seen = [(places, np.tan(np.clip(off, -ASKEW, ASKEW)), np.where(np.abs(off) < ASKEW, shapes.sure, 0.0))]
    if lines:
        seen.append(_slopes_of_lines(places, shapes.heights, lines))
    places, slopes, sure = (np.concatenate(each) for each in zip(*seen, strict=True))
    terms = np.insert((places - middle) / reach, 0, 1.0, axis=1) * sure[:, None]
    # Few words seem bent by chance: a page is taken to be as flat as pages usually are until they say otherwise.
    errors = np.linalg.inv(terms.T @ terms + np.diag([1e-9, CURVE**-2, SLANT**-2]))
    return Slopes(angle, middle, reach, errors @ (terms.T @ (slopes * sure)), errors)


def straightened(shapes: Shapes, slopes: Slopes) -> Boxes:
    """Words where they are when their lines are level; a letter that was taken to lie on its side is put upright."""
    x, y = slopes.level(shapes.centers)
    lying = np.abs(np.sin(difference(shapes.angles, slopes.at(shapes.centers)))) > np.sqrt(0.5)
    widths = np.where(lying, shapes.heights, shapes.widths)
    heights = np.where(lying, shapes.widths, shapes.heights)
    least = max(1e-3 * float(heights.max()), LEAST)  # where no word has a height, too
    return Boxes(x, y, widths, np.maximum(heights, least))


def _slopes_of_lines(places: Floats, heights: Floats, lines: Sequence[Indices]) -> tuple[Floats, Floats, Floats]:
    """Middles [L, 2] of lines; their slopes [L], by least squares over the centers of words; how sure these are."""
    line = np.repeat(np.arange(len(lines)), [len(each) for each in lines])
    words = np.concatenate(lines)
    count = np.bincount(line)
    middles = np.stack([np.bincount(line, places[words, axis]) / count for axis in (0, 1)], axis=1)
    x, y = (places[words] - middles[line]).T
    spread = np.bincount(line, x * x)
    slopes = np.bincount(line, x * y) / np.maximum(spread, 1e-12)
    sure = np.sqrt(spread) / (WOBBLE * np.bincount(line, heights[words]) / count)
    return middles, np.clip(slopes, -1, 1), np.where(np.abs(slopes) < 1, sure, 0.0)
