"""Which cells of a picture lie in the heart of a word, and which are not asked about."""

from dataclasses import dataclass

import torch
from torch import Tensor

from training.models.detector import Truth

SMALLEST = 4.0  # pixels: words lower than this cannot be seen, and are not asked for


@dataclass(frozen=True)
class Cells:
    """The cells of one picture."""

    kinds: Tensor  # [h, w]: 1 in the heart of a word, 0 elsewhere, −1 not asked for
    hearts: Tensor  # [h, w], True in hearts
    places: Tensor  # [P, 2] centres of the hearts' cells, in pixels, row by row
    boxes: Tensor  # [P, 6] the word of each
    weights: Tensor  # [P]: each word's cells together weigh 1

    def to(self, device: torch.device) -> "Cells":
        """The same on a device."""
        return Cells(*(part.to(device) for part in (self.kinds, self.hearts, self.places, self.boxes, self.weights)))


def assign(truth: Truth, size: tuple[int, int], stride: int, cut: float) -> Cells:
    """Hearts are words without `cut` of their height all around; where two meet, the smaller word has the cell.

    A word too small to have a cell's centre in its heart has the cell that is nearest to its middle.
    """
    height, width = size
    down, across = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = (torch.stack([across, down], dim=2).reshape(-1, 2) + 0.5) * stride  # [cells, 2]
    kinds = torch.zeros(len(places), dtype=torch.int64)
    owner = torch.full((len(places),), -1)
    if len(truth.boxes):
        boxes = truth.boxes
        ignored = truth.ignored | (boxes[:, 2:4].amin(dim=1) < SMALLEST)
        offset = places[None] - boxes[:, None, :2]  # [M, cells, 2]
        cosine, sine = boxes[:, None, 4], boxes[:, None, 5]
        along = (offset[..., 0] * cosine + offset[..., 1] * sine).abs()
        over = (offset[..., 1] * cosine - offset[..., 0] * sine).abs()
        half = boxes[:, 2:4] / 2
        within = (along <= half[:, None, 0]) & (over <= half[:, None, 1])
        kinds[within[ignored].any(dim=0)] = -1
        rim = cut * boxes[:, 2:4].amin(dim=1)
        heart = (along <= half[:, None, 0] - rim[:, None]) & (over <= half[:, None, 1] - rim[:, None])
        nearest = offset.square().sum(dim=2).argmin(dim=1)
        lies_inside = (offset[torch.arange(len(boxes)), nearest].abs() <= stride).all(dim=1)
        heart[torch.arange(len(boxes)), nearest] |= lies_inside
        for number in torch.argsort(boxes[:, 2] * boxes[:, 3], descending=True).tolist():
            if not ignored[number]:
                owner[heart[number]] = number
        kinds[owner >= 0] = 1
    hearts = owner >= 0
    owners = owner[hearts]
    counts = torch.bincount(owners, minlength=max(len(truth.boxes), 1)).clamp(min=1)
    boxes = truth.boxes[owners] if len(truth.boxes) else torch.zeros(0, 6)
    return Cells(kinds.view(size), hearts.view(size), places[hearts], boxes, 1.0 / counts[owners])
