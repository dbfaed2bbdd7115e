"""Words that the border of a tile cuts in two, and what becomes of them."""

import numpy as np
from numpy.typing import NDArray

from serving.pipelines.tiles import Tile
from serving.pipelines.word_boxes import Floats, shared_part

NEAR = 4.0  # pixels from a border that count as touching it
SAME_DIRECTION = 0.2  # the largest sine between two parts of a word
SAME_HEIGHT = 1.5  # the largest ratio of their heights
MEET = 0.1  # share of the smaller part that both must cover


def are_cut(boxes: Floats, tile: Tile) -> NDArray[np.bool_]:
    """Which boxes [K, 6], in pixels of a tile, reach a border of it that is none of the picture: [K]."""
    cosine, sine = np.abs(boxes[:, 4]), np.abs(boxes[:, 5])
    wide, high = boxes[:, 2] * cosine + boxes[:, 3] * sine, boxes[:, 2] * sine + boxes[:, 3] * cosine
    low, far = boxes[:, :2] - np.stack([wide, high], axis=1) / 2, boxes[:, :2] + np.stack([wide, high], axis=1) / 2
    before = np.array([tile.left > 0, tile.top > 0])
    after = np.array([tile.right < tile.whole[0], tile.bottom < tile.whole[1]])
    ends = np.array([tile.width, tile.height])
    return np.asarray((((low < NEAR) & before) | ((far > ends - NEAR) & after)).any(axis=1))


def mended(boxes: Floats, cut: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Boxes [K, 6] in which two cut parts of a word have become one, and which of them stay: [K]."""
    boxes, stays = boxes.copy(), np.ones(len(boxes), dtype=bool)
    places = np.flatnonzero(cut)
    for number, one in enumerate(places):
        for other in places[number + 1 :]:
            if stays[one] and stays[other] and _belong_together(boxes[one], boxes[other]):
                boxes[one] = _around(boxes[one], boxes[other])
                stays[other] = False
    return boxes, stays


def _belong_together(first: Floats, second: Floats) -> bool:
    across = first[4] * second[5] - first[5] * second[4]
    ratio = first[3] / max(float(second[3]), 1e-6)
    offset = second[:2] - first[:2]
    off_line = abs(offset[1] * first[4] - offset[0] * first[5])
    return bool(
        abs(across) < SAME_DIRECTION
        and 1 / SAME_HEIGHT < ratio < SAME_HEIGHT
        and off_line < first[3] / 2
        and shared_part(first, second) > MEET
    )


def _around(first: Floats, second: Floats) -> Floats:
    """The first box, as long as both together."""
    offset = second[:2] - first[:2]
    along = offset[0] * first[4] + offset[1] * first[5]
    start, end = min(-first[2], 2 * along - second[2]) / 2, max(first[2], 2 * along + second[2]) / 2
    result = first.copy()
    result[:2] += (start + end) / 2 * first[4:]
    result[2] = end - start
    return result
