"""Trains a classifier: two views of each picture, any of the seven methods, good data or hard ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.classifier_data import ClassifierData, classifier_data
from training.classifier_methods import METHODS, class_means, learn_on_finished, new_projection
from training.data.hard_settings import HardSetting
from training.data.paired_views import FreshViews, KeptViews, PairedViews, ViewSize, keep_views, plain_views
from training.errors import DataError
from training.metrics.classification import macro_f1, top_k_accuracy
from training.models.classifier import (
    Classifier,
    ClassifierShape,
    classifier_from,
    imagenet_classifier,
    save_classifier,
)
from training.models.halves import split
from training.models.provenance import Provenance
from training.run_folder import RunFolder
from training.schedule import warmed_cosine
from training.step_by_step import StepByStep

CHECKPOINT_EVERY = 20  # steps


@dataclass(frozen=True)
class ClassifierTraining:
    """A training config; `training/configs/` has examples."""

    method: str = "esupcon"
    shape: ClassifierShape = field(default_factory=ClassifierShape)
    start: str = "imagenet"  # or a checkpoint, or an exported embedder: its backbone is taken
    sources: tuple[str, ...] = ()  # of the data; none: all
    setting: HardSetting = field(default_factory=HardSetting)
    epochs: float = 10.0  # 0: the backbone stays as it is, and only what comes afterwards is learned
    least_steps: int = 0  # a small set is gone through more often
    frozen_stages: int = 3  # of an EfficientNet, with its stem
    kept_views: int = 0  # views of each picture that go through the frozen stages once and are kept; 0: always new ones
    size: int = 160
    test_size: int = 160
    smallest_part: float = 0.4  # of a picture's area in a random view
    batch: int = 64  # pictures, each in two views
    temperature: float = 0.1
    rate: float = 3e-4
    head_rate: float = 3e-3  # of prototypes, classifier and projection, which start from little
    weight_decay: float = 1e-2
    warmup: float = 0.05  # share of all steps
    validate_every: float = 1.0  # epochs
    patience: int = 0  # validations without a gain after which it stops; 0: it never does
    keep: Literal["best", "last"] = "best"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DataError(f"method is {self.method!r}; it must be one of {', '.join(METHODS)}")
        if self.epochs == 0 and METHODS[self.method].afterwards == "nothing":
            raise DataError(f"{self.method} learns nothing in 0 epochs")
        if self.kept_views == 1 or (self.kept_views and not self.frozen_stages):
            raise DataError("kept_views must be 2 or more, or 0, and needs frozen_stages")
        for name in ("size", "test_size", "batch", "temperature", "rate", "head_rate", "validate_every"):
            if getattr(self, name) <= 0:
                raise DataError(f"{name} must be above 0, not {getattr(self, name)}")
        for name, most in (("smallest_part", 1), ("warmup", 0.9)):
            if not 0 < getattr(self, name) <= most:
                raise DataError(f"{name} must be above 0 and at most {most}, not {getattr(self, name)}")
        for name in ("epochs", "least_steps", "kept_views", "frozen_stages", "patience", "seed"):
            if getattr(self, name) < 0:
                raise DataError(f"{name} must be 0 or more, not {getattr(self, name)}")


def train_classifier(
    config: ClassifierTraining,
    folders: Sequence[Path],
    out: Path,
    *,
    resume: bool = False,
    skip_unreadable: bool = False,
) -> Path:
    """Train, and return the file of the weights that are kept; `resume` goes on from the last checkpoint of a stop."""
    data = classifier_data(folders, config.sources, config.setting, config.seed, skip_unreadable=skip_unreadable)
    run = RunFolder(out, config, resume=resume)
    _Training(config, data, run).go()
    return run.best


class _Training(StepByStep[tuple[np.ndarray, Tensor]]):
    def __init__(self, config: ClassifierTraining, data: ClassifierData, run: RunFolder) -> None:
        super().__init__(run, best=-1.0)
        self.config, self.data, self.method = config, data, METHODS[config.method]
        torch.manual_seed(config.seed)
        self.model = _start(config, data.classes, cosine=self.method.cosine)
        self.model.counts = tuple(np.bincount(data.train_labels, minlength=len(data.classes)).tolist())
        self.model.provenance = _continued(self.model.provenance, data, config.method)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.early, self.late = split(self.model.train().body, config.frozen_stages)
        self.projection = new_projection(self.method, self.model.body.dim)
        self.feed = _feed(config, data, self.early)
        # What validation looks at; where nothing is frozen, nothing is gained by keeping it.
        self.asked = list(self._asked()) if config.frozen_stages else []
        if self.method.cosine and self.state is None:
            self.model.weights.data = class_means(*self._embedded(1, unit=True), len(data.classes))
        body = [value for value in self.late.parameters() if value.requires_grad]
        head = [self.model.weights, self.model.bias, *self.projection.parameters()]
        groups = [
            {"params": body, "full": config.rate},
            {"params": [value for value in head if value.requires_grad], "full": config.head_rate},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=config.rate, weight_decay=config.weight_decay)
        self.since_best, self.finished = 0, False  # validations; is the classifier there?
        each = len(data.train) / min(config.batch, len(data.train))  # steps of an epoch
        self.begin(
            {"model": self.model, "projection": self.projection, "optimizer": self.optimizer},
            steps=max(config.least_steps, math.ceil(config.epochs * each)) if config.epochs else 0,
            validate_every=max(1, round(config.validate_every * each)),
            checkpoint_every=CHECKPOINT_EVERY,
            data=[(str(file.path), file.class_name) for file in (*data.train, *data.val)],
        )

    def go(self) -> None:
        """All steps that are left, then what the method does afterwards."""
        super().go()
        if self.method.afterwards != "nothing":
            learn_on_finished(self.model, self.method, *self._embedded(2))
            self.step += 1
            self.finished = True
            self.validate()
            save_classifier(self.model, self.run.best)  # whatever was kept before had another classifier

    def is_enough(self) -> bool:
        """Nothing is left, or nothing was gained for long; a small set is gone through often enough in any case."""
        if super().is_enough():
            return True
        just_validated = self.step >= self.config.least_steps and self.step % self.validate_every == 0
        return just_validated and 0 < self.config.patience <= self.since_best

    def progress(self) -> dict[str, Any]:
        """With the validations since the best."""
        return {**super().progress(), "since_best": self.since_best}

    def load(self, step: int) -> tuple[np.ndarray, Tensor]:
        """Two views of each picture of a batch."""
        return self.feed.load(step)

    def learn(self, batch: tuple[np.ndarray, Tensor]) -> dict[str, float]:
        """One step on one batch."""
        loaded, labels = batch
        for group in self.optimizer.param_groups:
            group["lr"] = warmed_cosine(group["full"], self.step / self.steps, self.config.warmup)
        features = self.feed.features(loaded).contiguous(memory_format=torch.channels_last)
        rows = self.late.pooled(features)  # [2 N, d]
        loss = self.method.loss(self.model, self.projection, rows, labels, self.config.temperature)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": float(loss.detach())}

    def validate(self) -> None:
        """Accuracy on validation pictures; keep the weights if they are the best, or as the config says the last."""
        if self.method.afterwards == "cross-entropy" and not self.finished:
            self.log({})  # there is no classifier yet
            return
        self.model.eval()
        with torch.no_grad():
            asked = self.asked or self._asked()
            scores = torch.cat([self.model.scores(self.late.pooled(part)) for part in asked]).numpy()
        self.model.train()
        truth = self.data.val_labels
        accuracy = top_k_accuracy(scores, truth)
        self.log({"val/accuracy": accuracy, "val/macro f1": macro_f1(scores.argmax(axis=1), truth)})
        if accuracy >= self.best or self.config.keep == "last":  # of two that are as good, the one that learned longer
            save_classifier(self.model, self.run.best)
        self.since_best = 0 if accuracy > self.best else self.since_best + 1
        self.best = max(self.best, accuracy)

    def note(self) -> str:
        """The best so far."""
        return f"best accuracy {max(self.best, 0):.3f}"

    def _asked(self) -> Iterator[Tensor]:
        return plain_views(self.data.val, self.early, self.config.test_size)

    def _embedded(self, count: int, *, unit: bool = False) -> tuple[Tensor, Tensor]:
        """Every training picture in `count` views as it is embedded now, and its label."""
        self.model.eval()
        with torch.no_grad():
            parts = [(self.late.pooled(features), labels) for features, labels in self.feed.passes(count)]
        self.model.train()
        rows, labels = (torch.cat(part) for part in zip(*parts, strict=True))
        return (F.normalize(rows, dim=1) if unit else rows), labels


def _start(config: ClassifierTraining, classes: tuple[str, ...], *, cosine: bool) -> Classifier:
    """The network training starts from: a known backbone, and a classifier that knows nothing."""
    scale = 1 / config.temperature
    if config.start == "imagenet":
        return imagenet_classifier(config.shape, classes, cosine=cosine, scale=scale)
    return classifier_from(config.start, config.shape, classes, cosine=cosine, scale=scale)


def _feed(config: ClassifierTraining, data: ClassifierData, early: nn.Module) -> PairedViews:
    view = ViewSize(config.size, config.smallest_part)
    if not config.kept_views:
        return FreshViews(data.train, data.train_labels.tolist(), early, view, config.batch, config.seed)
    kept = keep_views(data.all_train, early, view, config.kept_views)
    places = {file.path: place for place, file in enumerate(data.all_train)}
    rows = [places[file.path] for file in data.train]
    return KeptViews(kept, rows, data.train_labels.tolist(), batch=config.batch, seed=config.seed)


def _continued(before: Provenance, data: ClassifierData, method: str) -> Provenance:
    """What the weights were learned from, with this training added."""
    entries = []
    for source in sorted({file.source for file in data.train}):
        own = [file for file in data.train if file.source == source]
        entries.append(f"{source}: {len(own)} pictures of {len({file.class_name for file in own})} classes")
    known = (*before.data, *(entry for entry in entries if entry not in before.data))
    return Provenance(known, (*before.losses, method))
