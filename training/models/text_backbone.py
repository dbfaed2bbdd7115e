"""The text backbone: the network of PP-OCRv6 small, written out, so that its published weights can start a training.

    [N, 3, 48, W] in −1…1 → stem (÷ 4) → three stages that halve the height alone → mean over what is left of the height
    and two columns → two transformer blocks over the columns → [N, W / 8, 120]

Three layers keep BatchNorm, and it its statistics; elsewhere it lies folded in the published weights.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.models.text_blocks import Block, Stem, published_graph, weights_in_order

FEATURES = 120  # channels of the result
HEADS = 8
# Blocks of each stage: does it weigh its channels (squeeze and excitation)?
STAGES = {96: (True, False, False), 192: (True, False) * 3, 384: (True, False)}


class TextBackbone(nn.Module):
    """Columns of features of a line of text: [N, 3, 48, W] → [N, W // 8, 120]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem(48)
        stages: list[nn.Module] = []
        width = 96
        for channels, weighed in STAGES.items():
            if channels != width:
                stages.append(Block(width, channels, weighed=False, stride=(2, 1)))  # the height alone
            stages += [Block(channels, channels, weighed=own) for own in weighed]
            width = channels
        self.stages = nn.Sequential(*stages)
        self.neck = Neck(width)

    def forward(self, images: Tensor) -> Tensor:
        """Features of normalised images."""
        return self.neck(self.local(images))

    def local(self, images: Tensor) -> Tensor:
        """What a column and its surroundings look like: [N, 384, 1, W // 8]. The neck reads it."""
        return F.avg_pool2d(self.stages(self.stem(images)), (3, 2))

    def train(self, mode: bool = True) -> "TextBackbone":
        """As always, but BatchNorm stays in evaluation."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self


class Neck(nn.Module):
    """Lets columns see one another: [N, channels, 1, T] → [N, T, 120]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.short = Swished(nn.Conv2d(channels, FEATURES, 1, bias=False))
        self.long = Swished(nn.Conv2d(channels, FEATURES, 1, bias=False))
        self.around = Swished(nn.Conv2d(FEATURES, FEATURES, (1, 7), padding=(0, 3), groups=FEATURES, bias=False))
        self.blocks = nn.Sequential(TransformerBlock(), TransformerBlock())
        self.norm = nn.LayerNorm(FEATURES, eps=1e-6)

    def forward(self, features: Tensor) -> Tensor:
        """Columns that know their neighbours."""
        long = self.long(features)
        columns = (long + self.around(long)).squeeze(2).transpose(1, 2)  # [N, T, 120]
        return self.norm(self.blocks(columns)) + self.short(features).squeeze(2).transpose(1, 2)


class Swished(nn.Sequential):
    """A convolution, BatchNorm and x · sigmoid(x)."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__(convolution, nn.BatchNorm2d(convolution.out_channels), nn.SiLU())


class TransformerBlock(nn.Module):
    """Attention over columns, and a small network for each."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(FEATURES, eps=1e-5)
        self.parts = nn.Linear(FEATURES, 3 * FEATURES)
        self.attended = nn.Linear(FEATURES, FEATURES)
        self.norm2 = nn.LayerNorm(FEATURES, eps=1e-5)
        self.mix = nn.Sequential(nn.Linear(FEATURES, 2 * FEATURES), nn.SiLU(), nn.Linear(2 * FEATURES, FEATURES))

    def forward(self, columns: Tensor) -> Tensor:
        """[N, T, 120] → [N, T, 120]."""
        count, length, _ = columns.shape
        parts = self.parts(self.norm1(columns)).view(count, length, 3, HEADS, FEATURES // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)  # [N, heads, T, 15] each
        seen = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(count, length, FEATURES)
        columns = columns + self.attended(seen)
        return columns + self.mix(self.norm2(columns))


@dataclass(frozen=True)
class Published:
    """PP-OCRv6 small as `rapidocr` carries it, under Apache-2.0."""

    backbone: TextBackbone
    characters: list[str]  # of the head's rows; row 0, the blank, is not among them
    weight: Tensor  # [1 + characters, 120]
    bias: Tensor

    def rows(self, symbols: str) -> tuple[Tensor, Tensor]:
        """Weight and bias of a head for the blank and these symbols alone."""
        places = torch.tensor([0, *(1 + self.characters.index(symbol) for symbol in symbols)])
        return self.weight[places], self.bias[places]


@cache
def published_backbone() -> Published:
    """Read the published weights, once; the first layer is turned from BGR to RGB. Copy them to train on."""
    graph = published_graph("rec")
    backbone = TextBackbone()
    ours = {key: value for key, value in backbone.state_dict().items() if not key.endswith("num_batches_tracked")}
    *theirs, weight, bias = map(torch.from_numpy, weights_in_order(graph))
    taken = {key: array.reshape(ours[key].shape) for key, array in zip(ours, theirs, strict=True)}
    taken["stem.first.weight"] = taken["stem.first.weight"].flip(1)
    backbone.load_state_dict(taken, strict=False)
    [names] = [entry.value for entry in graph.metadata_props if entry.key == "character"]
    return Published(backbone.eval(), names.split("\n"), weight, bias)
