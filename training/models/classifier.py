"""The classifier: a picture to one score a class, and where in the picture each score comes from.

    backbone → a map of features → their average, the embedding z → scores

A *cosine* classifier (ESupCon and its like) compares directions: s · z θ_k / (|z| |θ_k|), where θ_k is the class's
prototype. A *linear* one (cross-entropy) has a bias: z w_k + b_k. Either way a score is a sum over places of the map,
so each place's part of it is known exactly: that is the heat map.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.errors import DataError
from training.models.embedder import BACKBONES, Embedder, EmbedderShape, imagenet_embedder
from training.models.provenance import Provenance
from training.models.shipped import is_shipped, load_folded_backbone


@dataclass(frozen=True)
class ClassifierShape:
    """What a classifier is made of."""

    backbone: str = "lite0"

    def __post_init__(self) -> None:
        known = [name for name in BACKBONES if not name.startswith("vit")]  # a heat map needs places
        if self.backbone not in known:
            raise DataError(f"backbone is {self.backbone!r}; it must be one of {', '.join(known)}")

    @property
    def body(self) -> EmbedderShape:
        """The backbone with averaged features."""
        return EmbedderShape(backbone=self.backbone, pooling="average", layer_norm=False, dim=0)


class Classifier(nn.Module):
    """[N, 3, H, W] in −1…1 → scores [N, K]; soft-max makes probabilities of them."""

    def __init__(self, shape: ClassifierShape, classes: tuple[str, ...], *, cosine: bool, scale: float = 10.0) -> None:
        """`scale` is 1 / τ of the losses that a cosine classifier is learned with."""
        super().__init__()
        self.shape, self.classes, self.cosine, self.scale = shape, classes, cosine, scale
        self.counts = (1,) * len(classes)  # of training pictures, class by class
        self.provenance = Provenance()
        self.body = Embedder(shape.body)
        self.weights = nn.Parameter(torch.zeros(len(classes), self.body.dim))
        self.bias = nn.Parameter(torch.zeros(len(classes)))  # of a linear one
        if cosine:
            nn.init.normal_(self.weights)
            self.bias.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of normalised images."""
        return self.scores(self.body.pooled(self.body.backbone.forward_features(images)))

    def scores(self, embeddings: Tensor) -> Tensor:
        """Scores of embeddings as they come from the backbone: [N, d] → [N, K]."""
        if not self.cosine:
            return F.linear(embeddings, self.weights, self.bias)
        return self.scale * F.normalize(embeddings, dim=1) @ F.normalize(self.weights, dim=1).T

    def explained(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Scores [N, K], and each place's part of them [N, h, w, K]: their sum over places is the score."""
        places = self.body.backbone.forward_features(images).permute(0, 2, 3, 1)  # [N, h, w, d]
        embeddings = places.mean(dim=(1, 2))
        count = places.shape[1] * places.shape[2]
        if self.cosine:
            lengths = embeddings.norm(dim=1).clamp(min=1e-12)[:, None, None, None]
            parts = self.scale * (places / lengths) @ F.normalize(self.weights, dim=1).T / count
        else:
            parts = (places @ self.weights.T + self.bias) / count
        return self.scores(embeddings), parts


def imagenet_classifier(
    shape: ClassifierShape, classes: tuple[str, ...], *, cosine: bool, scale: float = 10.0
) -> Classifier:
    """A classifier whose backbone has ImageNet weights, and which knows none of its classes yet."""
    model = Classifier(shape, classes, cosine=cosine, scale=scale)
    start = imagenet_embedder(shape.body)
    model.body, model.provenance = start, start.provenance
    return model.eval()


def classifier_from(
    place: str, shape: ClassifierShape, classes: tuple[str, ...], *, cosine: bool, scale: float = 10.0
) -> Classifier:
    """A classifier that knows none of its classes yet, on the backbone of an exported embedder or of a checkpoint."""
    model = Classifier(shape, classes, cosine=cosine, scale=scale)
    if is_shipped(place):
        model.provenance = load_folded_backbone(model.body.backbone, place)
        return model.eval()
    known = load_classifier(place)
    if known.shape != shape:
        raise DataError(f"{place} has the shape {known.shape}; the config asks for {shape}")
    model.body, model.provenance = known.body, known.provenance
    return model.eval()


def load_classifier(weights: str) -> Classifier:
    """The classifier of a checkpoint that `save_classifier` wrote."""
    if not Path(weights).is_file():
        raise DataError(f"there is no checkpoint at {weights}")
    try:
        stored = torch.load(weights, map_location="cpu", weights_only=True)
        kind = {"cosine": stored["cosine"], "scale": stored["scale"]}
        model = Classifier(ClassifierShape(**stored["shape"]), tuple(stored["classes"]), **kind)
        model.counts = tuple(stored["counts"])
        model.load_state_dict({name: value.float() for name, value in stored["weights"].items()})
        model.provenance = Provenance(**{key: tuple(value) for key, value in stored["provenance"].items()})
    except Exception as error:  # torch.load raises whatever a foreign file provokes
        raise DataError(f"{weights} is not a checkpoint of a classifier: {str(error).partition(chr(10))[0]}") from error
    return model.eval()


def save_classifier(model: Classifier, file: Path) -> None:
    """Write a checkpoint; `load_classifier` reads it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    described = {"shape": asdict(model.shape), "provenance": asdict(model.provenance)}
    known = {"classes": list(model.classes), "counts": list(model.counts)}
    kind = {"cosine": model.cosine, "scale": model.scale}
    torch.save({**described, **known, **kind, "weights": model.state_dict()}, file)
