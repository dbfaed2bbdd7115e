"""Rotated boxes as tensors: anchors, regression targets, overlaps and non-maximum suppression.

A box is (cx, cy, w, h, degrees), [N, 5], in pixels of a picture: y grows downwards, the side w lies along
(cos, sin) of the angle, so degrees turn from x towards y, clockwise on a screen. That is the direction a `Truth` has,
and the formula of `rotated_iou`. RRPN counts against the clock. Nothing here can tell: its anchors' angles −30…120 are
mirrored onto themselves modulo 180°, and regression targets only hold differences of angles.

θ and θ + 180° are one rectangle: differences of angles are taken modulo 180°, within ±90°. Decoded angles stay as the
regression left them, they may well be −50° or 145°; only `pointing_right` brings them to one form.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from training.metrics.rotated_iou import rotated_iou

LARGEST_GROWTH = math.log(1000 / 16)  # of a side in one step: the exponential of a wild guess stays finite
PAIRS_AT_ONCE = 1 << 18  # that stay in the cache
ROUNDING = 1e-3  # by which a bound in float32 may be too low
AT_ONCE = 64  # boxes that suppress others in one go


def cell_anchors(scales: Sequence[float], ratios: Sequence[float], angles: Sequence[float], stride: int = 16) -> Tensor:
    """Anchors of the cell in the top left corner: [ratios · scales · angles, 5], angles change first, ratios last.

    A ratio is h / w. Sides are rounded before they are scaled, and the centre is that of the pixels 0…14: as in RRPN.
    """
    centre = stride / 2 - 1
    widths = [round(stride / math.sqrt(ratio)) for ratio in ratios]
    return torch.tensor(
        [
            [centre, centre, width * scale, round(width * ratio) * scale, angle]
            for width, ratio in zip(widths, ratios, strict=True)
            for scale in scales
            for angle in angles
        ]
    )


def grid_anchors(cell: Tensor, rows: int, columns: int, stride: int = 16) -> Tensor:
    """The anchors [A, 5] of one cell, repeated over a grid: [rows · columns · A, 5], row by row."""
    down, across = torch.meshgrid(
        torch.arange(rows, device=cell.device), torch.arange(columns, device=cell.device), indexing="ij"
    )
    shifts = torch.zeros(rows, columns, 1, 5, dtype=cell.dtype, device=cell.device)
    shifts[..., 0, 0], shifts[..., 0, 1] = across * stride, down * stride
    return (shifts + cell).view(-1, 5)


def angle_difference(degrees: Tensor, other: Tensor) -> Tensor:
    """How far to turn from the other angle to this one, as axes without a direction: −90 … 90."""
    return torch.remainder(degrees - other + 90, 180) - 90


def encode(anchors: Tensor, boxes: Tensor) -> Tensor:
    """What regression should answer to lead from anchors [N, 5] to boxes [N, 5]: [N, 5].

    (Δx / w, Δy / h, log w'/w, log h'/h, Δθ in radians); Δx and Δy lie along the picture's axes, not the anchor's.
    """
    shift = (boxes[:, :2] - anchors[:, :2]) / anchors[:, 2:4]
    growth = torch.log(boxes[:, 2:4] / anchors[:, 2:4])
    turn = torch.deg2rad(angle_difference(boxes[:, 4:], anchors[:, 4:]))
    return torch.cat([shift, growth, turn], dim=1)


def decode(anchors: Tensor, targets: Tensor) -> Tensor:
    """Boxes [N, 5] that regression answers for anchors [N, 5]; differentiable in the targets [N, 5]."""
    centre = anchors[:, :2] + targets[:, :2] * anchors[:, 2:4]
    size = anchors[:, 2:4] * torch.exp(targets[:, 2:4].clamp(max=LARGEST_GROWTH))
    return torch.cat([centre, size, anchors[:, 4:] + torch.rad2deg(targets[:, 4:])], dim=1)


def with_direction(boxes: Tensor) -> Tensor:
    """(cx, cy, w, h, degrees) [N, 5] → (cx, cy, w, h, cos, sin) [N, 6]."""
    angle = torch.deg2rad(boxes[:, 4:])
    return torch.cat([boxes[:, :4], torch.cos(angle), torch.sin(angle)], dim=1)


def with_degrees(boxes: Tensor) -> Tensor:
    """(cx, cy, w, h, cos, sin) [N, 6] → (cx, cy, w, h, degrees) [N, 5]."""
    return torch.cat([boxes[:, :4], torch.rad2deg(torch.atan2(boxes[:, 5:], boxes[:, 4:5]))], dim=1)


def longer_side_first(boxes: Tensor) -> Tensor:
    """The same rectangles [N, 5] with w ≥ h."""
    turned = torch.stack([*boxes[:, :2].unbind(1), boxes[:, 3], boxes[:, 2], boxes[:, 4] + 90], dim=1)
    return torch.where((boxes[:, 3] > boxes[:, 2])[:, None], turned, boxes)


def pointing_right(boxes: Tensor) -> Tensor:
    """The same rectangles [N, 5] with −90 < degrees ≤ 90: read to the right, or downwards."""
    return torch.cat([boxes[:, :4], 90 - torch.remainder(90 - boxes[:, 4:], 180)], dim=1)


@torch.no_grad()
def overlap(first: Tensor, second: Tensor, floor: float, *, of_first: bool = False) -> Tensor:
    """IoU of every pair, first [N, 5], second [M, 5] → [N, M]; or the share of the first box that lies in the second.

    What is surely below `floor` is not computed and left at 0: of a hundred thousand anchors few come near a word.
    """
    result = first.new_zeros(len(first), len(second))
    block = max(1, PAIRS_AT_ONCE // max(1, len(first)))
    for start in range(0, len(second), block):
        part = second[start : start + block]
        shared = _shared_at_most(first, part)
        whole = _area(first)[:, None] if of_first else _area(first)[:, None] + _area(part) - shared
        rows, columns = torch.nonzero(shared > max(floor - ROUNDING, 0) * whole, as_tuple=True)
        a, b = first[rows], part[columns]
        exact = torch.from_numpy(rotated_iou(*(each.double().cpu().numpy() for each in (a, b)))).to(first)
        if of_first:  # IoU = S / (A + B − S)
            exact = exact / (1 + exact) * (_area(a) + _area(b)) / _area(a).clamp(min=1e-6)
        result[rows, start + columns] = exact
    return result


def _area(boxes: Tensor) -> Tensor:
    return boxes[:, 2] * boxes[:, 3]


def _shared_at_most(first: Tensor, second: Tensor) -> Tensor:
    """An upper bound of the area that two boxes share: that of the second and the first's hull in its frame; [N, M]."""
    a, b = with_direction(first)[:, None], with_direction(second)[None]
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    along, over = x * b[..., 4] + y * b[..., 5], y * b[..., 4] - x * b[..., 5]
    cosine = (a[..., 4] * b[..., 4] + a[..., 5] * b[..., 5]).abs()
    sine = (a[..., 5] * b[..., 4] - a[..., 4] * b[..., 5]).abs()
    hull_width = a[..., 2] * cosine + a[..., 3] * sine
    hull_height = a[..., 2] * sine + a[..., 3] * cosine
    shared = _common(along, hull_width, b[..., 2]) * _common(over, hull_height, b[..., 3])
    return torch.minimum(shared, a[..., 2] * a[..., 3])


def _common(distance: Tensor, length: Tensor, other: Tensor) -> Tensor:
    """How much two stretches of a line have in common, given how far apart their middles are."""
    reach = (length + other) / 2 - distance.abs()
    return torch.minimum(reach, torch.minimum(length, other)).clamp(min=0)


def rotated_nms(boxes: Tensor, scores: Tensor, threshold: float, at_most: int) -> Tensor:
    """Which boxes [N, 5] stay when each removes those of a lower score with a larger IoU: their numbers, best first.

    Boxes are taken in portions: those that an earlier portion removed are never compared with anything again.
    """
    left = torch.argsort(scores, descending=True, stable=True).cpu()
    kept: list[int] = []
    rows = boxes.detach().cpu()
    while len(left) and len(kept) < at_most:
        ahead = left[:AT_ONCE]
        removes = (overlap(rows[ahead], rows[left], threshold) > threshold).numpy()  # [ahead, left]
        stays = np.ones(len(left), dtype=bool)
        for place, number in enumerate(ahead.tolist()):
            if stays[place]:
                kept.append(number)
                stays &= ~removes[place]
        left = left[len(ahead) :][torch.from_numpy(stays[len(ahead) :])]
    return torch.tensor(kept[:at_most], dtype=torch.int64, device=boxes.device)
