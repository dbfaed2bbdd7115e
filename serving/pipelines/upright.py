"""Which way most of a picture's text runs, and the picture turned so that it is level."""

import cv2
import numpy as np
from numpy.typing import NDArray

from serving.pipelines.word_boxes import Words

Pixels = NDArray[np.uint8]
SURROUNDINGS = (127, 127, 127)  # grey, where a turned picture leaves its canvas empty


def main_direction(words: Words) -> float | None:
    """Degrees clockwise in which most text is read; None if there is none. Long, sure words count most."""
    boxes = words.boxes
    weights = words.scores * np.maximum(boxes[:, 2] - 0.5 * boxes[:, 3], 0)  # a single letter knows no direction
    if not weights.sum() > 0:
        return None
    cosine, sine = boxes[:, 4], boxes[:, 5]
    # The axis first, in which a word and the same word on its head agree; then which of its ends has more votes.
    axis = np.arctan2((weights * 2 * cosine * sine).sum(), (weights * (cosine**2 - sine**2)).sum()) / 2
    if (weights * (cosine * np.cos(axis) + sine * np.sin(axis))).sum() < 0:
        axis += np.pi
    return float((np.degrees(axis) + 180) % 360 - 180)


def turned(picture: Pixels, degrees: float) -> tuple[Pixels, NDArray[np.float64]]:
    """A picture turned clockwise on a canvas that grows with it, and the matrix [2, 3] that takes points there."""
    height, width = picture.shape[:2]
    angle = np.deg2rad(degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    room = np.ceil(np.abs([[cosine, sine], [sine, cosine]]) @ [width, height] - 1e-6).astype(int)
    turn = np.array([[cosine, -sine], [sine, cosine]])
    shift = room / 2 - turn @ [width / 2, height / 2]
    matrix = np.concatenate([turn, shift[:, None]], axis=1)
    # Boxes count from the corner of a pixel, OpenCV from its middle.
    centred = matrix.copy()
    centred[:, 2] += turn @ [0.5, 0.5] - 0.5
    seen = cv2.warpAffine(picture, centred, (int(room[0]), int(room[1])), borderValue=SURROUNDINGS)
    return np.asarray(seen, dtype=np.uint8), matrix


def turned_back(words: Words, matrix: NDArray[np.float64], degrees: float) -> Words:
    """Words of a turned picture in the one it was made of; `degrees` is how far they turn back."""
    boxes = words.boxes.copy()
    boxes[:, :2] = (words.boxes[:, :2] - matrix[:, 2]) @ matrix[:, :2]  # the inverse of a turn is its transpose
    angle = np.deg2rad(degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    boxes[:, 4] = words.boxes[:, 4] * cosine - words.boxes[:, 5] * sine
    boxes[:, 5] = words.boxes[:, 4] * sine + words.boxes[:, 5] * cosine
    return Words(boxes, words.scores)
