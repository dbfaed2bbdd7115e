"""The recogniser: a picture of one word to its characters, in four stages that can each be switched.

transformation (none, tps) → features (vgg, resnet, text) → sequence (none, bilstm) → prediction (attention, ctc)
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from training.alphabet import ALPHANUMERIC, PRINTABLE, Alphabet
from training.data.canvas import Canvas
from training.errors import DataError
from training.models.prediction import Attention, Ctc, Prediction, Reading
from training.models.provenance import Provenance
from training.models.rectifier import GentleRectifier, Rectifier
from training.models.sequence import BiLstm
from training.models.text_backbone import FEATURES, TextBackbone, published_backbone
from training.models.text_features import ResNetColumns, VggColumns

TRANSFORMATIONS = ("none", "tps")
FEATURE_STAGES: dict[str, Callable[[int, int], nn.Module]] = {
    "vgg": VggColumns,
    "resnet": ResNetColumns,
    "text": lambda *_: TextBackbone(),
}
SEQUENCES = ("none", "bilstm")
PREDICTIONS = ("attention", "ctc")


@dataclass(frozen=True)
class RecognizerShape:
    """What a recogniser is made of."""

    transformation: str = "none"
    features: str = "text"
    sequence: str = "none"
    prediction: Literal["attention", "ctc"] = "ctc"
    symbols: str = PRINTABLE
    feature_channels: int = 512  # of vgg and resnet; text has its own
    steps: int = 26  # of attention: the longest word and its end sign
    canvas: Canvas = field(default_factory=Canvas)

    def __post_init__(self) -> None:
        for name, known in (
            ("transformation", TRANSFORMATIONS),
            ("features", FEATURE_STAGES),
            ("sequence", SEQUENCES),
            ("prediction", PREDICTIONS),
        ):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.transformation == "tps" and self.canvas.step:
            raise DataError("tps needs a canvas of one width: set its step to 0")
        if self.features == "text" and (self.canvas.channels, self.canvas.height) != (3, 48):
            raise DataError("features text needs a canvas of 3 channels and height 48")

    @property
    def alphabet(self) -> Alphabet:
        """Its characters."""
        return Alphabet(self.symbols)


THESIS = RecognizerShape("tps", "resnet", "bilstm", "attention", ALPHANUMERIC, canvas=Canvas(32, 100, channels=1))


class Recognizer(nn.Module):
    """[N, C, H, W] in −1…1 → logits [N, steps or columns, symbols + 1]."""

    prediction: Prediction

    def __init__(self, shape: RecognizerShape) -> None:
        super().__init__()
        self.shape = shape
        self.provenance = Provenance()
        canvas = shape.canvas
        rectifier = GentleRectifier if shape.features == "text" else Rectifier
        tps = shape.transformation == "tps"
        self.transformation = rectifier(canvas.channels, canvas.height, canvas.width) if tps else nn.Identity()
        self.features = FEATURE_STAGES[shape.features](canvas.channels, shape.feature_channels)
        channels = FEATURES if shape.features == "text" else shape.feature_channels
        self.sequence = BiLstm(channels) if shape.sequence == "bilstm" else nn.Identity()
        if shape.sequence == "bilstm":
            channels = BiLstm.channels
        self.prediction = (
            Ctc(channels, shape.alphabet)
            if shape.prediction == "ctc"
            else Attention(channels, shape.alphabet, shape.steps)
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits of normalised images."""
        return self.prediction(self.columns(images))

    def columns(self, images: Tensor) -> Tensor:
        """What the prediction sees: [N, T, channels]."""
        return self.sequence(self.features(self.transformation(images)))

    def loss(self, images: Tensor, words: Sequence[str]) -> Tensor:
        """The proxy loss: cross-entropy of the characters, or CTC."""
        return self.prediction.loss(self.columns(images), words)

    def read(self, logits: Tensor) -> list[Reading]:
        """Words of logits."""
        return self.prediction.read(logits)


def load_recognizer(weights: str) -> Recognizer:
    """`published` (PP-OCRv6 small with its printable ASCII alone), or a checkpoint of `save_recognizer`."""
    if weights == "published":
        return published_recognizer(RecognizerShape(canvas=Canvas(step=80)))
    if not Path(weights).is_file():
        raise DataError(f"there is no checkpoint at {weights}; give a file, or published")
    try:
        stored = torch.load(weights, map_location="cpu", weights_only=True)
        model = Recognizer(RecognizerShape(**stored["shape"] | {"canvas": Canvas(**stored["shape"]["canvas"])}))
        model.load_state_dict({name: value.float() for name, value in stored["weights"].items()})
        model.provenance = Provenance(**{key: tuple(value) for key, value in stored["provenance"].items()})
    except Exception as error:  # torch.load raises whatever a foreign file provokes
        raise DataError(
            f"{weights} is not a checkpoint of the recogniser: {str(error).partition(chr(10))[0]}"
        ) from error
    return model.eval()


def save_recognizer(model: Recognizer, file: Path) -> None:
    """Write a checkpoint; `load_recognizer` reads it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    described = {"shape": asdict(model.shape), "provenance": asdict(model.provenance)}
    torch.save({**described, "weights": model.state_dict()}, file)


def published_recognizer(shape: RecognizerShape) -> Recognizer:
    """A recogniser whose text features have the published weights; so has a CTC head that sits right on them."""
    if shape.features != "text":
        raise DataError(f"published weights are for features text, not {shape.features}")
    model = Recognizer(shape)
    published = published_backbone()
    model.features.load_state_dict(published.backbone.state_dict())
    if isinstance(model.prediction, Ctc) and shape.sequence == "none":
        weight, bias = published.rows(shape.symbols)
        for own, theirs in ((model.prediction.generator.weight, weight), (model.prediction.generator.bias, bias)):
            own.data = torch.cat([theirs[1:], theirs[:1]])  # their blank comes first, ours last
    model.provenance = Provenance(("PP-OCRv6 small: the start, rapidocr 3.10.0, Apache-2.0",))
    return model.eval()
