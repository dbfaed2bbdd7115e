"""Which words run in one direction."""

import numpy as np
from numpy.typing import NDArray

from serving.pipelines.reading_order.shapes import STEADY, Floats, Indices, Shapes, difference, direction, turned
from serving.pipelines.reading_order.slopes import slopes_of

NEIGHBOURS = 6
ALIKE = np.deg2rad(10.0)  # neighbours within this smooth each other's angle
LINKED = np.deg2rad(8.0)  # smoothed neighbours within this share a direction: a curve turns slowly
TURNED = np.deg2rad(25.0)  # words that adjoin share a direction within this
SAME = np.deg2rad(5.0)  # parts that are apart share a direction within this, and what noise adds
OPPOSITE = np.deg2rad(160.0)
STRAY = 4.0  # width over height up to which a word among others may have been taken to lie on its side
AT_ONCE = 256  # words of which the distances to all others are held in memory


def by_direction(shapes: Shapes) -> list[Indices]:
    """Words of one direction each, the group with most text first; together they are all words."""
    steady = np.flatnonzero(shapes.lengths >= STEADY)
    if not len(steady):
        steady = np.arange(len(shapes.widths))
    known = shapes[steady]
    near = _nearest(known.centers)
    angles = _smoothed(known, near)
    linked = (np.abs(difference(angles[:, None], angles[near])) < LINKED) | _adjoining(known, near)
    parts = _connected(len(known.widths), np.nonzero(linked)[0], near[linked])
    groups = [steady[group] for group in _joined(known, _without_strays(known, parts))]
    owners = np.full(len(shapes.widths), -1)
    for number, group in enumerate(groups):
        owners[group] = number
    owned, others = np.flatnonzero(owners >= 0), np.flatnonzero(owners < 0)
    owners[others] = owners[owned[_closest(shapes.centers[others], shapes[owned])[0]]]
    return [np.flatnonzero(owners == number) for number in range(len(groups))]


def _nearest(centers: Floats) -> Indices:
    """Indices [M, K] of the points nearest to each, itself among them."""
    count = min(NEIGHBOURS + 1, len(centers))
    found = np.empty((len(centers), count), dtype=np.intp)
    for start in range(0, len(centers), AT_ONCE):
        apart = np.square(centers[start : start + AT_ONCE, None] - centers).sum(axis=-1)
        found[start : start + AT_ONCE] = np.argpartition(apart, count - 1, axis=1)[:, :count]
    return found


def _smoothed(shapes: Shapes, near: Indices) -> Floats:
    """Angles [M], each the mean of those around it [M, K] that are much the same."""
    angles = shapes.angles
    weights = np.square(shapes.sure)[near]
    for _ in range(2):
        off = difference(angles[near], angles[:, None])
        alike = np.where((np.abs(off) < ALIKE) | (near == np.arange(len(near))[:, None]), weights, 0.0)
        angles = angles + (alike * off).sum(axis=1) / alike.sum(axis=1)
    return angles


def _adjoining(shapes: Shapes, near: Indices) -> NDArray[np.bool_]:
    """Whether neighbours [M, K] begin where a word ends, much in its direction: in a sharp curve, words turn more."""
    starts, ends = shapes.centers - shapes.halves, shapes.centers + shapes.halves
    apart = np.hypot(*np.moveaxis(starts[near] - ends[:, None], -1, 0))
    off = np.abs(difference(shapes.angles[near], shapes.angles[:, None]))
    return np.asarray((apart < 0.8 * np.minimum(shapes.heights[near], shapes.heights[:, None])) & (off < TURNED))


def _connected(count: int, first: Indices, second: Indices) -> list[Indices]:
    """Parts of a graph with `count` nodes and edges first–second [E]."""
    labels = np.arange(count)
    while True:
        least = labels.copy()
        np.minimum.at(least, first, labels[second])
        np.minimum.at(least, second, labels[first])
        least = least[least]  # to the label's own label: long chains become short
        if np.array_equal(least, labels):
            return [np.flatnonzero(labels == label) for label in np.unique(labels)]
        labels = least


def _without_strays(shapes: Shapes, parts: list[Indices]) -> list[Indices]:
    """Parts but for a word or two in the midst of others that were misjudged: an I seems to lie, a word to stand on
    its head. They run as what is around them.
    """
    few = [part for part in parts if len(part) <= 2]
    if len(few) == len(parts):
        return parts
    rest = shapes[np.concatenate([part for part in parts if len(part) > 2])]
    strays = set()
    for part in few:
        own = shapes[part]
        ends = np.concatenate([own.centers - own.halves, own.centers, own.centers + own.halves])
        closest, apart = (each.reshape(3, -1) for each in _closest(ends, rest))
        lying = (own.lengths < STRAY) & (apart < np.maximum(own.widths, own.heights))
        headlong = np.abs(difference(own.angles, rest.angles[closest])) > OPPOSITE
        if (lying | (headlong & (apart < own.heights))).any():
            strays.add(int(part[0]))
    return [part for part in parts if int(part[0]) not in strays]


def _joined(shapes: Shapes, parts: list[Indices]) -> list[Indices]:
    """Parts that lie apart in the same direction as one group: prices far to the right of what they are for.

    The group with most text takes all that run its way, wherever they are; another one only what lies next to it
    without anything foreign between, as each is read as a whole.
    """
    parts = sorted(parts, key=lambda part: -float(shapes.lengths[part].sum()))
    groups = [parts[0]]
    slopes = slopes_of(shapes[parts[0]])
    directions, centers = [slopes.angle], [shapes.centers[parts[0]].mean(axis=0)]
    for part in parts[1:]:
        own, center = direction(shapes[part]), shapes.centers[part].mean(axis=0)
        tolerance = SAME + 2 / np.sqrt(np.square(shapes.sure[part]).sum())
        there = slopes.at(center[None])  # a curve may run this way only there
        off = np.abs(difference(np.append(directions, there), own))
        if min(off[0], off[-1]) < tolerance:
            groups[0] = np.concatenate([groups[0], part])
            continue
        apart = np.where(off[:-1] < tolerance, np.hypot(*(np.array(centers) - center).T), np.inf)
        number = int(np.argmin(apart))
        together = np.concatenate([groups[number], part])
        if np.isfinite(apart[number]) and _undisturbed(shapes, together):
            groups[number] = together
        else:
            groups.append(part)
            directions.append(own)
            centers.append(center)
    return groups


def _undisturbed(shapes: Shapes, group: Indices) -> bool:
    """Whether no other word lies within the rectangle around a group."""
    centers = turned(shapes.centers, direction(shapes[group]))
    low, high = centers[group].min(axis=0), centers[group].max(axis=0)
    return int(((centers >= low) & (centers <= high)).all(axis=1).sum()) == len(group)


def _closest(points: Floats, shapes: Shapes) -> tuple[Indices, Floats]:
    """For each point [P, 2] the word whose rectangle is nearest, and how far that is."""
    found, distances = np.empty(len(points), dtype=np.intp), np.empty(len(points))
    cosines, sines = np.cos(shapes.angles), np.sin(shapes.angles)
    for start in range(0, len(points), AT_ONCE):
        x, y = np.moveaxis(points[start : start + AT_ONCE, None] - shapes.centers, -1, 0)
        beside = np.maximum(np.abs(x * cosines + y * sines) - shapes.widths / 2, 0)
        beyond = np.maximum(np.abs(y * cosines - x * sines) - shapes.heights / 2, 0)
        apart = np.hypot(beside, beyond)
        found[start : start + AT_ONCE] = np.argmin(apart, axis=1)
        distances[start : start + AT_ONCE] = apart.min(axis=1)
    return found, distances
