"""The picture backbone: the network of PP-OCRv6 small's detector up to its head, written out.

    [N, 3, H, W] in −1…1 → stem (÷ 4) → four stages (÷ 4, 8, 16, 32) → each narrowed to 96 channels → coarse ones added
    to finer ones → each looked at through a wide window → joined at a quarter of the size: [N, 96, H / 4, W / 4]

Height and width must be multiples of 32.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.models.text_blocks import Block, Stem, published_graph, weights_in_order

FEATURES = 96  # channels of the result
STRIDE = 4  # pixels a cell of the result
MULTIPLE = 32  # of which height and width must be multiples
# Blocks of each stage: does it weigh its channels (squeeze and excitation)?
STAGES = {48: (True, False), 96: (True, False), 192: (True, False) * 2, 384: (True, False)}


class PictureBackbone(nn.Module):
    """Features of each place of a picture: [N, 3, H, W] → [N, 96, H / 4, W / 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem(24)
        self.stages = nn.ModuleList()
        widths = [48, *STAGES]
        for (before, channels), weighed in zip(pairwise(widths), STAGES.values(), strict=True):
            first = [] if before == channels else [Block(before, channels, weighed=False, stride=2)]
            self.stages.append(nn.Sequential(*first, *(Block(channels, channels, weighed=own) for own in weighed)))
        # From the coarsest to the finest, as the published graph has them.
        coarse_first = list(STAGES)[::-1]
        self.narrowed = nn.ModuleList(
            [Weighed(nn.Conv2d(channels, FEATURES, 1, bias=False)) for channels in coarse_first]
        )
        self.looked_at = nn.ModuleList([Look() for _ in STAGES])

    def forward(self, images: Tensor) -> Tensor:
        """Features of normalised images."""
        return self.join(self.levels(images))

    def levels(self, images: Tensor) -> list[Tensor]:
        """What the stages see, from the finest to the coarsest."""
        features = self.stem(images)
        levels = []
        for stage in self.stages:
            features = stage(features)
            levels.append(features)
        return levels

    def join(self, levels: list[Tensor]) -> Tensor:
        """All levels together, at the size of the finest."""
        joined: list[Tensor] = []
        for level, narrow in zip(levels[::-1], self.narrowed, strict=True):
            features = narrow(level)
            joined.append(features + F.interpolate(joined[-1], scale_factor=2.0) if joined else features)
        looks = [look(features) for features, look in zip(joined, self.looked_at, strict=True)]
        scales = [2.0**power for power in range(len(looks) - 1, -1, -1)]
        return torch.cat(
            [
                F.interpolate(part, scale_factor=scale) if scale > 1 else part
                for part, scale in zip(looks, scales, strict=True)
            ],
            dim=1,
        )


class Weighed(nn.Module):
    """A convolution whose channels are weighed by what the whole picture shows, and added to themselves."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        channels = convolution.out_channels
        self.convolution = convolution
        self.first = nn.Conv2d(channels, channels // 4, 1)
        self.second = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H, W] → [N, out, H, W]."""
        features = self.convolution(features)
        mean = F.adaptive_avg_pool2d(features, 1)
        weights = (0.2 * self.second(F.relu(self.first(mean))) + 0.5).clamp(0, 1)
        return features + features * weights


class Look(nn.Module):
    """A wide window over each channel, then a quarter of the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.around = nn.Conv2d(FEATURES, FEATURES, 7, padding=3, groups=FEATURES)
        self.narrowed = Weighed(nn.Conv2d(FEATURES, FEATURES // len(STAGES), 1, bias=False))

    def forward(self, features: Tensor) -> Tensor:
        """[N, 96, H, W] → [N, 24, H, W]."""
        return self.narrowed(self.around(features))


@dataclass(frozen=True)
class PublishedPicture:
    """PP-OCRv6 small's detector as `rapidocr` carries it, under Apache-2.0."""

    backbone: PictureBackbone
    weight: Tensor  # [24, 96, 3, 3] and bias [24]: the first layer of its head
    bias: Tensor


@cache
def published_picture_backbone() -> PublishedPicture:
    """Read the published weights, once; the first layer is turned from BGR to RGB. Copy them to train on."""
    weights = list(map(torch.from_numpy, weights_in_order(published_graph("det"))))
    backbone = PictureBackbone()
    ours = backbone.state_dict()
    taken = {key: array.reshape(ours[key].shape) for key, array in zip(ours, weights, strict=False)}
    taken["stem.first.weight"] = taken["stem.first.weight"].flip(1)
    backbone.load_state_dict(taken)
    weight, bias = weights[len(ours) : len(ours) + 2]
    return PublishedPicture(backbone.eval(), weight, bias.flatten())
