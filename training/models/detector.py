"""What every detector of rotated words has in common: what it is shown, what it answers, and its checkpoints.

A box is (cx, cy, w, h, cos, sin) in pixels, y downwards: (cos, sin) is the direction of reading, w lies along it, and
(−sin, cos) points from the top of the letters to their feet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Quads = NDArray[np.float64]  # [M, 4, 2], clockwise from the text's own top left


@dataclass(frozen=True)
class Truth:
    """The words of one picture."""

    boxes: Tensor  # [M, 6]
    ignored: Tensor  # [M], True: don't care

    @classmethod
    def of(cls, quads: Quads, ignored: NDArray[np.bool_]) -> "Truth":
        """Truth from quadrilaterals."""
        return cls(torch.from_numpy(boxes_of(quads)).float(), torch.from_numpy(np.asarray(ignored, dtype=bool)))


@dataclass(frozen=True)
class Learned:
    """What a detector made of a batch, with a graph, and how wrong that is."""

    rest: Tensor  # the part of the loss that does not judge boxes
    proxy: Tensor  # smooth-L1 of the boxes' parameters: what LS-IoU replaces
    prediction: Tensor  # [P, 6] boxes
    truth: Tensor  # [P, 6] what they should have been
    weights: Tensor  # [P]: how much each counts; together 1, or nothing is there


class WordDetector(Protocol):
    """A network that finds words."""

    def learn(self, images: Tensor, truths: Sequence[Truth]) -> Learned:
        """Losses of normalised images [N, 3, H, W]."""


def boxes_of(quads: Quads) -> NDArray[np.float64]:
    """Rotated boxes like quadrilaterals: [M, 4, 2] → [M, 6]. Sides are the means of opposite edges."""
    quads = np.asarray(quads, dtype=np.float64).reshape(-1, 4, 2)
    top_left, top_right, bottom_right, bottom_left = quads.transpose(1, 0, 2)
    along = (top_right - top_left + bottom_right - bottom_left) / 2
    down = (bottom_left - top_left + bottom_right - top_right) / 2
    # A word of one thin letter is higher than wide: its direction is better known from the longer side.
    turned = np.stack([down[:, 1], -down[:, 0]], axis=1)
    use_down = np.hypot(*down.T) > np.hypot(*along.T)
    direction = np.where(use_down[:, None], turned, along)
    length = np.hypot(*direction.T)[:, None]
    direction = np.where(length > 0, direction / np.maximum(length, 1e-9), [[1.0, 0.0]])
    across = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    width = np.abs((along * direction).sum(axis=1))
    height = np.abs((down * across).sum(axis=1))
    return np.concatenate([quads.mean(axis=1), width[:, None], height[:, None], direction], axis=1)


def quads_of(boxes: NDArray[np.floating]) -> Quads:
    """Corners of rotated boxes: [M, 6] → [M, 4, 2]."""
    boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 6)
    along = boxes[:, 4:] * boxes[:, 2:3] / 2
    down = np.stack([-boxes[:, 5], boxes[:, 4]], axis=1) * boxes[:, 3:4] / 2
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return np.stack([boxes[:, :2] + a * along + d * down for a, d in signs], axis=1)
