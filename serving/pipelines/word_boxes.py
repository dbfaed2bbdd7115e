"""From a detector's maps to words: cells that mean the same word are found and their boxes joined.

A map says for each cell of a picture how surely it is the heart of a word, and what box that word has: score, and
(cx, cy, w, h, cos, sin) in pixels, y downwards, (cos, sin) in reading direction.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SAME_ALONG, SAME_ACROSS = 0.35, 0.5  # how far apart two boxes' middles may lie, in widths and heights, to be one word
OVERLAP = 0.4  # share of the smaller box that another, surer word may cover
SMALLEST = 3.0  # pixels: lower boxes are nothing that could be read


@dataclass(frozen=True)
class Words:
    """Words of a picture, the surest first."""

    boxes: Floats  # [K, 6]
    scores: Floats  # [K]


NOTHING = Words(np.zeros((0, 6), np.float32), np.zeros(0, np.float32))


def gather(maps: Floats, *, stride: int, heart: float, word: float) -> Words:
    """Words of one picture's maps [h, w, 7], whose cells are `stride` pixels wide.

    Cells with a score of at least `heart` are looked at, words with a score of at least `word` are kept.
    """
    rows, columns = np.nonzero(maps[..., 0] >= heart)
    if not rows.size:
        return NOTHING
    cells = maps[rows, columns]
    places = ((np.stack([columns, rows], axis=1) + 0.5) * stride).astype(np.float32)
    order = np.argsort(-cells[:, 0], kind="stable")
    cells, places = cells[order], places[order]
    found = []
    while len(cells):
        along, across = _in_frame(cells[0, 1:], cells[:, 1:3])
        same = (np.abs(along) < SAME_ALONG * cells[0, 3]) & (np.abs(across) < SAME_ACROSS * cells[0, 4])
        same[0] = True
        found.append(_joined(cells[same], places[same]))
        cells, places = cells[~same], places[~same]
    words = np.array(found, dtype=np.float32)
    words = words[(words[:, 0] >= word) & (words[:, 3:5].min(axis=1) >= SMALLEST)]
    words = words[np.argsort(-words[:, 0], kind="stable")]
    kept = without_doubles(words[:, 1:])
    return Words(words[kept, 1:], words[kept, 0])


def _in_frame(box: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Points as seen from a box's middle: along its direction and across, in pixels."""
    offset = points - box[:2]
    cosine, sine = box[4], box[5]
    return offset[:, 0] * cosine + offset[:, 1] * sine, offset[:, 1] * cosine - offset[:, 0] * sine


def _joined(cells: Floats, places: Floats) -> list[float]:
    """One word of all cells that mean it: [score, cx, cy, w, h, cos, sin].

    Each cell knows the edges best that are near to it, so an edge is the mean of what cells say with weights that fall
    with their distance from it.
    """
    scores = cells[:, 0]
    first = cells[0, 1:]
    cosine, sine = cells[:, 5], cells[:, 6]
    # The axis is the mean of doubled angles, in which a box and the same box on its head are equal; then a vote.
    double = np.arctan2((scores * 2 * cosine * sine).sum(), (scores * (cosine**2 - sine**2)).sum()) / 2
    axis = np.array([np.cos(double), np.sin(double)])
    if (scores * (cosine * axis[0] + sine * axis[1])).sum() < 0:
        axis = -axis
    frame = np.array([*first[:2], 1, 1, *axis], dtype=np.float32)
    along, across = _in_frame(frame, cells[:, 1:3])
    own_along, own_across = _in_frame(frame, places)
    edges, usual = [], np.median(cells[:, 4])
    for middle, own, size in ((along, own_along, cells[:, 3]), (across, own_across, cells[:, 4])):
        for sign in (-1, 1):
            edge = middle + sign * size / 2
            # Distances from the mean edge, not from each cell's own: one that ends a word early would weigh more.
            mean = (edge * scores).sum() / scores.sum()
            weights = scores / (np.abs(mean - own) + usual)
            edges.append(float((edge * weights).sum() / weights.sum()))
    left, right, top, bottom = edges
    x, y = (left + right) / 2, (top + bottom) / 2
    centre = first[:2] + x * axis + y * np.array([-axis[1], axis[0]])
    strongest = np.sort(scores)[-5:]
    return [float(strongest.mean()), *centre.tolist(), right - left, bottom - top, *axis.tolist()]


def without_doubles(boxes: Floats) -> list[int]:
    """Which boxes stay, the surest first: a box that a surer one covers in large part does not."""
    kept: list[int] = []
    reach = np.hypot(boxes[:, 2], boxes[:, 3]) / 2
    for number, box in enumerate(boxes):
        apart = np.hypot(*(boxes[kept, :2] - box[:2]).T)
        near = np.asarray(kept, dtype=int)[apart < reach[kept] + reach[number]]
        if all(shared_part(box, boxes[other]) < OVERLAP for other in near):
            kept.append(number)
    return kept


def shared_part(first: Floats, second: Floats) -> float:
    """What two boxes share, as a part of the smaller one."""
    # Where edges lie on each other OpenCV may find nothing, or too much; a hair larger, they do not.
    kind, corners = cv2.rotatedRectangleIntersection(_rectangle(first), _rectangle(second, 1.002))
    if kind == cv2.INTERSECT_NONE or corners is None:
        return 0.0
    smaller = min(float(first[2] * first[3]), float(second[2] * second[3]))
    return float(cv2.contourArea(cv2.convexHull(corners))) / max(smaller, 1e-6)


def _rectangle(box: Floats, grown: float = 1.0) -> tuple[tuple[float, float], tuple[float, float], float]:
    """A box as OpenCV has it: centre, size, degrees."""
    cx, cy, width, height, cosine, sine = (float(value) for value in box)
    return (cx, cy), (width * grown, height * grown), float(np.degrees(np.arctan2(sine, cosine)))
