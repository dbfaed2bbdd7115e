"""LS-IoU: a learned surrogate of 1 − IoU between two rotated boxes.

IoU is a similarity and |h(z) − h(y)| a distance that is 0 for equal boxes: what is learned is 1 − IoU.

A box is (cx, cy, w, h, cos θ, sin θ). A rectangle turned by 180°, or by 90° with its sides swapped, is the same
rectangle, and IoU does not change when both boxes are moved, turned or scaled together. So each pair is brought to
the frame of its truth before h sees it (`in_frame_of_truth`): the truth lies at the origin, upright, w ≥ h, with
area 1. What h has to learn is then the same in every corner of a picture and for words of every size.
"""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training.metrics.rotated_iou import check_boxes, rotated_iou
from training.surrogates.pairs import Pair

Floats = NDArray[np.float64]


def in_frame_of_truth(prediction: Tensor, truth: Tensor) -> Pair:
    """Both boxes of each pair as seen from the truth: [N, 6] each → [N, 6] each; sizes of truths are above 0.

    The prediction's angle ends within ±45°: of the four forms of a rectangle the one most like the truth.
    Differentiable in the prediction wherever that choice does not change. (cos, sin) need not have length 1.
    """
    truth = _pointing_right(_longer_side_first(_unit_direction(truth)))
    prediction = _unit_direction(prediction)
    scale = (truth[:, 2] * truth[:, 3]).sqrt()
    cosine, sine = truth[:, 4], truth[:, 5]
    x, y = (prediction[:, :2] - truth[:, :2]).unbind(1)
    turned = _nearest_form(
        torch.stack(
            [
                (x * cosine + y * sine) / scale,
                (y * cosine - x * sine) / scale,
                prediction[:, 2] / scale,
                prediction[:, 3] / scale,
                prediction[:, 4] * cosine + prediction[:, 5] * sine,
                prediction[:, 5] * cosine - prediction[:, 4] * sine,
            ],
            dim=1,
        )
    )
    zero, one = torch.zeros_like(scale), torch.ones_like(scale)
    return turned, torch.stack([zero, zero, truth[:, 2] / scale, truth[:, 3] / scale, one, zero], dim=1)


def _unit_direction(boxes: Tensor) -> Tensor:
    length = (boxes[:, 4:].square().sum(dim=1, keepdim=True) + 1e-12).sqrt()
    return torch.cat([boxes[:, :4], boxes[:, 4:] / length], dim=1)


def _quarter_turn(boxes: Tensor) -> Tensor:
    """The same rectangles with their sides swapped."""
    cx, cy, width, height, cosine, sine = boxes.unbind(1)
    return torch.stack([cx, cy, height, width, -sine, cosine], dim=1)


def _longer_side_first(boxes: Tensor) -> Tensor:
    return torch.where((boxes[:, 3] > boxes[:, 2])[:, None], _quarter_turn(boxes), boxes)


def _pointing_right(boxes: Tensor) -> Tensor:
    sign = torch.where(boxes[:, 4:5] < 0, -1.0, 1.0)
    return torch.cat([boxes[:, :4], boxes[:, 4:] * sign], dim=1)


def _nearest_form(boxes: Tensor) -> Tensor:
    """The form of each rectangle whose angle lies within ±45°."""
    steep = boxes[:, 5].abs() > boxes[:, 4].abs()
    return _pointing_right(torch.where(steep[:, None], _quarter_turn(boxes), boxes))


def encode_boxes(boxes: NDArray[np.floating]) -> Tensor:
    """(cx, cy, w, h, degrees) [N, 5] → (cx, cy, w, h, cos, sin) [N, 6]."""
    array = check_boxes("boxes", boxes)
    angle = np.deg2rad(array[:, 4:])
    return torch.from_numpy(np.concatenate([array[:, :4], np.cos(angle), np.sin(angle)], axis=1)).float()


def decode_boxes(encoded: Tensor) -> Floats:
    """(cx, cy, w, h, cos, sin) [N, 6] → (cx, cy, w, h, degrees) [N, 5]; sizes below 0 count as 0."""
    rows = encoded.detach().double().cpu().numpy()
    degrees = np.rad2deg(np.arctan2(rows[:, 5], rows[:, 4]))
    return np.concatenate([rows[:, :2], np.maximum(rows[:, 2:4], 0), degrees[:, None]], axis=1)


def one_minus_iou(prediction: Tensor, truth: Tensor) -> Tensor:
    """The exact metric on encoded boxes: [N]."""
    overlap = rotated_iou(decode_boxes(prediction), decode_boxes(truth))
    return torch.from_numpy(1 - overlap).to(truth.dtype)


class BoxNetwork(nn.Sequential):
    """Five fully connected layers with ReLU between them: [N, 6] → [N, 16]."""

    def __init__(self, width: int = 256, dimension: int = 16) -> None:
        sizes = [6, width, width, width, width, dimension]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        super().__init__(*layers[:-1])


class BoxDistorter:
    """Pairs of a box and a distorted one, from a pool that is balanced over ten equal bins of IoU."""

    def __init__(self, boxes: NDArray[np.floating], *, batch: int = 1024, pool: int = 200_000, seed: int = 0) -> None:
        """boxes [N, 5]: true ones, (cx, cy, w, h, degrees) in any unit."""
        self.boxes = check_boxes("boxes", boxes)
        if not len(self.boxes):
            raise ValueError("boxes must hold at least one box")
        self.batch = batch
        self.random = np.random.default_rng(seed)
        self.prediction, self.truth = self._fill(pool)

    def __call__(self) -> Pair:
        """A batch of (distorted, true) boxes, each in the frame of its truth: [batch, 6] each."""
        chosen = torch.from_numpy(self.random.integers(len(self.truth), size=self.batch))
        return self.prediction[chosen], self.truth[chosen]

    def _fill(self, pool: int) -> Pair:
        """Distort until each bin holds its tenth."""
        bins = 10
        wanted = -(-pool // bins)
        found: list[list[Floats]] = [[] for _ in range(bins)]
        counts = np.zeros(bins, dtype=int)
        while counts.min() < wanted:
            truth = self.boxes[self.random.integers(len(self.boxes), size=4 * wanted)]
            distorted = self._distort(truth)
            places = np.minimum((rotated_iou(distorted, truth) * bins).astype(int), bins - 1)
            for place in np.flatnonzero(counts < wanted):
                rows = np.flatnonzero(places == place)[: wanted - counts[place]]
                found[place].append(np.stack([distorted[rows], truth[rows]]))
                counts[place] += len(rows)
        pairs = np.concatenate([part for parts in found for part in parts], axis=1)
        return in_frame_of_truth(encode_boxes(pairs[0]), encode_boxes(pairs[1]))

    def _distort(self, boxes: Floats) -> Floats:
        """Shift, stretch and turn each box, by anything between nothing and out of sight."""
        count = len(boxes)
        strength = self.random.uniform(0, 1, size=count)
        along, across = self.random.normal(size=(2, count)) * strength * boxes[:, 2:4].T * 0.6
        angle = np.deg2rad(boxes[:, 4])
        result = boxes.copy()
        result[:, 0] += along * np.cos(angle) - across * np.sin(angle)
        result[:, 1] += along * np.sin(angle) + across * np.cos(angle)
        result[:, 2:4] *= np.exp(self.random.normal(size=(count, 2)) * strength[:, None] * 0.5)
        result[:, 4] += self.random.normal(size=count) * strength * 30
        return result
