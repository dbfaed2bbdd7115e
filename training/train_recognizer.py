"""Trains the recogniser: first on its proxy (cross-entropy or CTC), then on a learned surrogate of edit distance."""

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

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
from training.reading import normalised, read_crops
from training.run_folder import RunFolder
from training.schedule import training_bar, warmed_cosine
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


class _Training:
    def __init__(self, config: RecognizerTraining, crops: Sequence[WordCrop], run: RunFolder) -> None:
        self.config, self.run = config, run
        torch.manual_seed(config.seed)
        self.model = start_model(config)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.feed = make_feed(self.model, crops, config)
        self.validation = [crop for crop in crops if crop.set_name == "val"]
        freeze(self.model, config.frozen_blocks)
        learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = OPTIMIZERS[config.optimizer](learned, config)
        self.average = WeightAverage(self.model, config.average)
        self.step, self.best, self.seconds = 0, math.inf, 0.0
        self.losses: list[float] = []  # since the last validation
        state = run.load()
        if state is None:
            self.model.provenance = _continued(self.model.provenance, self.feed, self.model.shape.prediction)
        else:
            self._restore(state)

    def go(self) -> None:
        """All steps that are left."""
        config = self.config
        with training_bar() as progress, ThreadPoolExecutor(1) as ahead:
            bar = progress.add_task("training", total=config.steps, completed=self.step, note="")
            if self.step == 0:
                self._validate()
            waiting: Future[Batch] = ahead.submit(self.feed.draw, self.step)
            while self.step < config.steps:
                started = time.process_time()
                batch = waiting.result()
                waiting = ahead.submit(self.feed.draw, self.step + 1)
                loss = self._learn(batch)
                self.step += 1
                self.seconds += time.process_time() - started
                self.losses.append(loss)
                self.run.board.add_scalar("loss", loss, self.step)
                progress.update(bar, completed=self.step, note=f"loss {loss:.4f}, best TED {self.best:.0f}")
                due = self.step % config.validate_every == 0 or self.step == config.steps
                if due:
                    self._validate()
                if due or self.step % CHECKPOINT_EVERY == 0:
                    self.run.save(self._state())

    def _learn(self, batch: Batch) -> float:
        """One step on one batch; returns the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate_at(self.step / self.config.steps)
        self.model.train()
        loss = self.model.loss(normalised(torch.from_numpy(batch.pixels)), batch.words)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.average.update(self.model)
        return float(loss.detach())

    def _validate(self) -> None:
        """Read the validation crops with the averaged weights; keep them if they are the best so far."""
        averaged = self.average.of(self.model)
        texts = [reading.text for reading in read_crops(averaged, [crop.load() for crop in self.validation])]
        figures = reading_figures(self.validation, texts)
        loss = sum(self.losses) / max(len(self.losses), 1)
        self.losses = []
        self.run.log(self.step, {"core minutes": round(self.seconds / 60, 2), "mean loss": loss, **figures})
        if figures["all/ted"] < self.best:
            self.best = figures["all/ted"]
            save_recognizer(averaged, self.run.best)

    def _state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "average": self.average.weights,
            "averaged": self.average.steps,
            "provenance": asdict(self.model.provenance),
            "optimizer": self.optimizer.state_dict(),
            "torch": torch.get_rng_state(),
            "step": self.step,
            "best": self.best,
            "seconds": self.seconds,
            "losses": self.losses,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.average.weights, self.average.steps = state["average"], state["averaged"]
        self.model.provenance = Provenance(**state["provenance"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch"])
        self.step, self.best, self.seconds = state["step"], state["best"], state["seconds"]
        self.losses = state["losses"]


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
