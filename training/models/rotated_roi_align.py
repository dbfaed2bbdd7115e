"""Rotated RoI align: the features of a rotated box, as if it had been cut out upright.

A box is divided into size × size bins along its own axes; a bin is the mean of samples × samples values, each
interpolated between the four nearest cells. Beyond the picture features are 0.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


def rotated_roi_align(
    features: Tensor, boxes: Sequence[Tensor], stride: int, size: int = 7, samples: int = 2
) -> Tensor:
    """features [N, C, H, W] and the boxes [R_n, 5] of each picture, in pixels → [R_1 + … + R_N, C, size, size].

    Cell (i, j) of the features stands for the pixels stride · j … stride · (j + 1), stride · i … stride · (i + 1).
    Differentiable in the features.
    """
    height, width = features.shape[2:]
    extent = torch.tensor([width * stride, height * stride], dtype=features.dtype, device=features.device)
    parts = []
    for maps, own in zip(features, boxes, strict=True):  # per picture: maps are not copied for each box
        places = sample_places(own.to(features), size, samples) / extent * 2 - 1  # [R, size², samples², 2]
        values = F.grid_sample(maps[None], places.flatten(0, 1)[None], padding_mode="zeros", align_corners=False)
        means = values[0].mean(dim=2)  # [C, R · size²]
        parts.append(means.view(len(maps), len(own), size, size).transpose(0, 1))
    return torch.cat(parts)


def sample_places(boxes: Tensor, size: int, samples: int) -> Tensor:
    """Where a box is looked at, in pixels: boxes [R, 5] → [R, size², samples², 2], bins row by row, (x, y)."""
    steps = (torch.arange(size * samples, dtype=boxes.dtype, device=boxes.device) + 0.5) / (size * samples) - 0.5
    along = steps.view(1, 1, size, 1, samples) * boxes[:, 2].view(-1, 1, 1, 1, 1)
    over = steps.view(1, size, 1, samples, 1) * boxes[:, 3].view(-1, 1, 1, 1, 1)
    angle = torch.deg2rad(boxes[:, 4]).view(-1, 1, 1, 1, 1)
    x = along * torch.cos(angle) - over * torch.sin(angle) + boxes[:, 0].view(-1, 1, 1, 1, 1)
    y = along * torch.sin(angle) + over * torch.cos(angle) + boxes[:, 1].view(-1, 1, 1, 1, 1)
    return torch.stack([x, y], dim=-1).view(len(boxes), size * size, samples * samples, 2)
