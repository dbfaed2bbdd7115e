"""Trains the recogniser: first on its proxy (cross-entropy or CTC), then on a learned surrogate of edit distance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from training.data.pixels import normalised
from training.data.rendering import Renderer
from training.data.vocabulary import Vocabulary
from training.data.word_feed import Batch, WordFeed
from training.data.words import WordCrop, read_words
from training.errors import DataError
from training.evaluate_recognizer import reading_figures
from training.models.provenance import Provenance
from training.models.recognizer import (
    Recognizer,
    RecognizerShape,
    load_recognizer,
    published_recognizer,
    save_recognizer,
)
from training.models.text_backbone import TextBackbone
from training.prepare_words import legible_on_this_machine, prepare
from training.reading import read_crops
from training.run_folder import RunFolder
from training.schedule import warmed_cosine
from training.step_by_step import StepByStep
from training.weight_average import WeightAverage

CHECKPOINT_EVERY = 50  # steps


@dataclass(frozen=True)
class RecognizerTraining:
    """A training config; `training/configs/` has examples."""

    shape: RecognizerShape = field(default_factory=RecognizerShape)
    start: str = "published"  # published weights, nothing, or a checkpoint
    steps: int = 1000
    batch: int = 64
    synthetic: float = 0.4  # share of rendered words in a batch
    strength: float = 1.0  # of the distortions of real crops
    frozen_blocks: int = -1  # of the text backbone, with its stem; -1: none, not even the stem
    optimizer: str = "adamw"  # or adadelta, as in the thesis
    rate: float = 2e-4
    weight_decay: float = 1e-2
    warmup: float = 0.05  # share of all steps
    clip: float = 5.0  # the longest gradient
    average: float = 0.99  # of weights over steps; what is validated and kept is the average. 0: the last weights
    validate_every: int = 250  # steps
    seed: int = 0

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise DataError(f"optimizer is {self.optimizer!r}; it must be one of {', '.join(OPTIMIZERS)}")
        for name in ("steps", "batch", "rate", "validate_every", "clip"):
            if getattr(self, name) <= 0:
                raise DataError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("synthetic", "average", "warmup"):
            if not 0 <= getattr(self, name) <= 1:
                raise DataError(f"{name} must be between 0 and 1, not {getattr(self, name)}")

    def rate_at(self, share: float) -> float:
        """The learning rate when this share of the steps is done: up, and down to nothing along a cosine."""
        return warmed_cosine(self.rate, share, self.warmup)


OPTIMIZERS = {
    "adamw": lambda parameters, config: torch.optim.AdamW(parameters, config.rate, weight_decay=config.weight_decay),
    "adadelta": lambda parameters, config: torch.optim.Adadelta(parameters, config.rate, rho=0.95, eps=1e-8),
}


def train_recognizer(config: RecognizerTraining, folders: Sequence[Path], out: Path, *, resume: bool = False) -> Path:
    """Train on the proxy, and return the file of the best weights. What is done by a stop is kept."""
    run = RunFolder(out, config, resume=resume)
    crops = [crop for folder in folders for crop in read_words(folder)]
    training = _Training(config, crops, run)
    training.go()
    return run.best


class _Training(StepByStep[Batch]):
    def __init__(self, config: RecognizerTraining, crops: Sequence[WordCrop], run: RunFolder) -> None:
        super().__init__(run, best=math.inf)
        self.config = config
        torch.manual_seed(config.seed)
        self.model = start_model(config)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.feed = make_feed(self.model, crops, config)
        self.validation = [crop for crop in crops if crop.set_name == "val"]
        self.model.provenance = _continued(self.model.provenance, self.feed, self.model.shape.prediction)
        freeze(self.model, config.frozen_blocks)
        learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = OPTIMIZERS[config.optimizer](learned, config)
        self.average = WeightAverage(self.model, config.average)
        self.begin(
            {"model": self.model, "optimizer": self.optimizer, "average": self.average},
            steps=config.steps,
            validate_every=config.validate_every,
            checkpoint_every=CHECKPOINT_EVERY,
        )

    def go(self) -> None:
        """What the start can do, then all steps that are left."""
        if self.step == 0:
            self.validate()
        super().go()

    def load(self, step: int) -> Batch:
        """Crops and rendered words."""
        return self.feed.draw(step)

    def learn(self, batch: Batch) -> dict[str, float]:
        """One step on one batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate_at(self.step / self.config.steps)
        self.model.train()
        loss = self.model.loss(normalised(torch.from_numpy(batch.pixels)), batch.words)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.average.update(self.model)
        return {"loss": float(loss.detach())}

    def validate(self) -> None:
        """Read the validation crops with the averaged weights; keep them if they are the best so far."""
        averaged = self.average.of(self.model)
        texts = [reading.text for reading in read_crops(averaged, [crop.load() for crop in self.validation])]
        figures = reading_figures(self.validation, texts)
        self.log(figures)
        if figures["all/ted"] < self.best:
            self.best = figures["all/ted"]
            save_recognizer(averaged, self.run.best)

    def note(self) -> str:
        """The best so far."""
        return f"best TED {self.best:.0f}"


def start_model(config: RecognizerTraining) -> Recognizer:
    """The network training starts from."""
    if config.start == "published":
        return published_recognizer(config.shape)
    if config.start == "nothing":
        return Recognizer(config.shape)
    model = load_recognizer(config.start)
    if model.shape != config.shape:
        raise DataError(f"{config.start} has the shape {model.shape}; the config asks for {config.shape}")
    return model


def freeze(model: Recognizer, blocks: int) -> None:
    """Let the stem and the first blocks of a text backbone stand still."""
    if blocks < 0:
        return
    if not isinstance(model.features, TextBackbone):
        raise DataError("frozen_blocks is for features text")
    for part in [model.features.stem, *list(model.features.stages)[:blocks]]:
        part.requires_grad_(False)


def make_feed(model: Recognizer, crops: Sequence[WordCrop], config: RecognizerTraining) -> WordFeed:
    """Batches of the crops of the set train whose words the model can write, and of rendered words."""
    alphabet = set(model.shape.symbols)
    if not any(symbol.isupper() for symbol in alphabet):  # the thesis' 36 characters know no capitals
        crops = [replace(crop, text=crop.text.lower()) for crop in crops]
    usable = [crop for crop in crops if crop.set_name == "train" and crop.text and set(crop.text) <= alphabet]
    if not usable:
        raise DataError("no crop of the set train with a word that the alphabet can write")
    reader = load_recognizer("published")
    renderer = Renderer(legible_on_this_machine(reader), Vocabulary()) if config.synthetic else None
    return WordFeed(
        prepare(reader, usable),
        model.shape.canvas,
        renderer,
        batch=config.batch,
        synthetic=config.synthetic,
        strength=config.strength,
        longest=model.shape.steps - 1,
        seed=config.seed,
    )


def _continued(before: Provenance, feed: WordFeed, loss: str) -> Provenance:
    """What the weights were learned from, with this training added."""
    counts: dict[str, int] = {}
    for examples in feed.by_width.values():
        for example in examples:
            counts[example.crop.source] = counts.get(example.crop.source, 0) + 1
    data = [f"{source}: {count} crops" for source, count in sorted(counts.items())]
    if feed.renderer is not None:
        data.append(f"rendered words: {len(feed.renderer.fonts)} fonts, {len(feed.renderer.vocabulary.words)} words")
    return Provenance((*before.data, *(entry for entry in data if entry not in before.data)), (*before.losses, loss))
