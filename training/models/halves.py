"""An embedder in two halves: early stages that stand still, and the rest, which learns.

What the first half makes of a picture need not be computed twice when a large batch is embedded twice, and no
gradient goes through it.
"""

from collections.abc import Callable

from torch import Tensor, nn

from training.errors import DataError
from training.models.embedder import Embedder


class EarlyHalf(nn.Module):
    """The stem and the first `stages` stages of an EfficientNet."""

    def __init__(self, model: Embedder, stages: int) -> None:
        super().__init__()
        blocks = getattr(model.backbone, "blocks", None)
        if not hasattr(model.backbone, "conv_stem") or blocks is None:
            raise DataError(
                f"only an EfficientNet can be frozen in part, not {model.shape.backbone}: frozen_stages = 0"
            )
        if not 0 < stages < len(blocks):
            raise DataError(f"frozen_stages must be 0 to {len(blocks) - 1}, not {stages}")
        self.layers = nn.Sequential(model.backbone.conv_stem, model.backbone.bn1, *list(blocks)[:stages])
        self.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """[N, 3, H, W] → [N, C, H/s, W/s]."""
        features: Tensor = self.layers(images)
        return features


class LateHalf(nn.Module):
    """Everything after `EarlyHalf`: its features to unit vectors; after no stage at all, images to unit vectors."""

    layers: Callable[[Tensor], Tensor]

    def __init__(self, model: Embedder, stages: int) -> None:
        super().__init__()
        backbone = model.backbone
        self.model = model
        if stages == 0:
            self.layers = backbone.forward_features
        else:
            self.layers = nn.Sequential(*list(backbone.blocks)[stages:], backbone.conv_head, backbone.bn2)

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H/s, W/s] → [N, dim]."""
        return self.model.embed(self.layers(features))

    def pooled(self, features: Tensor) -> Tensor:
        """[N, C, H/s, W/s] → what the projection would see."""
        return self.model.pooled(self.layers(features))


def split(model: Embedder, stages: int) -> tuple[nn.Module, LateHalf]:
    """(early, late), with late(early(images)) = model(images); with 0 stages the first half does nothing."""
    return EarlyHalf(model, stages) if stages else nn.Identity(), LateHalf(model, stages)
