"""Trains the embedder: class-balanced large batches, any of the losses, the best weights by unseen classes."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.data.augment import random_view
from training.data.balanced import BalancedBatches
from training.data.labelled import LabelledFile, read_labels
from training.errors import DataError
from training.evaluate_embedder import embed_files, validate_embedder
from training.large_batch import large_batch_step
from training.losses import mixed_recall_at_k, positive_pairs, recall_at_k, smooth_ap, supcon, triplet
from training.models.embedder import (
    Embedder,
    EmbedderShape,
    imagenet_embedder,
    load_embedder,
    save_embedder,
)
from training.models.halves import split
from training.models.provenance import Provenance
from training.models.whitening import whiten
from training.run_folder import RunFolder
from training.schedule import training_bar, warmed_cosine

Loss = Callable[[Tensor, Tensor], Tensor]


def randomly_mixed_recall_at_k(embeddings: Tensor, labels: Tensor) -> Tensor:
    """RS@k + SiMix with a virtual example of each pair of positives, at a random place between the two."""
    pairs = positive_pairs(labels)
    return mixed_recall_at_k(embeddings, labels, pairs, torch.rand(len(pairs), device=embeddings.device))


LOSSES: dict[str, Loss | None] = {
    "recall_at_k": recall_at_k,
    "recall_at_k_mixed": randomly_mixed_recall_at_k,
    "smooth_ap": smooth_ap,
    "supcon": supcon,
    "triplet": triplet,
    "cross_entropy": None,  # over classes, not over a batch: it has weights of its own
}
COSINE_SCALE = 20.0  # of the logits of cross-entropy
CHECKPOINT_EVERY = 20  # steps


@dataclass(frozen=True)
class EmbedderTraining:
    """A training config; `training/configs/` has examples."""

    loss: str = "recall_at_k"
    epochs: float = 10.0
    shape: EmbedderShape = field(default_factory=EmbedderShape)
    start: str = "imagenet"  # or a checkpoint of the same shape
    whitening_power: float = 0.25  # of the projection's start; used with imagenet alone
    frozen_stages: int = 3
    size: int = 160
    test_size: int = 224
    smallest_part: float = 0.4  # of a picture's area in a random view
    batch: int = 384
    per_class: int = 4
    chunk: int = 64
    rate: float = 1e-4
    weight_decay: float = 4e-4
    warmup: float = 0.05  # share of all steps
    milestones: tuple[float, ...] = ()  # shares of all steps at which the rate falls to 0.3; none: a cosine to 0
    validate_every: float = 1.0  # epochs
    seed: int = 0

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise DataError(f"loss is {self.loss!r}; it must be one of {', '.join(LOSSES)}")
        if self.batch < 2 * self.per_class:
            raise DataError(f"batch must hold two classes of {self.per_class} pictures, not {self.batch}")
        for name in ("epochs", "size", "test_size", "chunk", "rate", "validate_every"):
            if getattr(self, name) <= 0:
                raise DataError(f"{name} must be above 0, not {getattr(self, name)}")

    def rate_at(self, share: float) -> float:
        """The learning rate when this share of the steps is done."""
        if self.milestones and share >= self.warmup:
            return self.rate * 0.3 ** sum(share >= milestone for milestone in self.milestones)
        return warmed_cosine(self.rate, share, self.warmup)


def train_embedder(config: EmbedderTraining, folders: Sequence[Path], out: Path, *, resume: bool = False) -> Path:
    """Train, and return the file of the best weights. What is done by a stop is kept; `resume` goes on."""
    run = RunFolder(out, config, resume=resume)
    files = [file for folder in folders for file in read_labels(folder)]
    training = _Training(config, files, run)
    training.go()
    return run.best


class _Training:
    def __init__(self, config: EmbedderTraining, files: Sequence[LabelledFile], run: RunFolder) -> None:
        self.config, self.run = config, run
        torch.manual_seed(config.seed)
        train = [file for file in files if file.set_name == "train"]
        self.files = files
        self.batches = BalancedBatches(train, batch=config.batch, per_class=config.per_class)
        state = run.load()
        self.model = _start(config, train, fresh=state is None)
        if state is None:
            self.model.provenance = _continued(self.model.provenance, self.batches, config.loss)
        else:
            self.model.provenance = Provenance(**state["provenance"])
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.early, self.late = split(self.model.train(), config.frozen_stages)
        self.classes = _class_weights(self.model, config, self.batches, fresh=state is None)
        learned = [parameter for parameter in self.late.parameters() if parameter.requires_grad]
        groups = [{"params": learned, "factor": 1.0}]
        if self.classes is not None:
            groups.append({"params": [self.classes], "factor": 10.0})  # a new layer may learn faster
        self.optimizer = torch.optim.AdamW(groups, lr=config.rate, weight_decay=config.weight_decay)
        self.steps = max(1, round(config.epochs * self.batches.pictures / config.batch))
        self.step, self.best = 0, -1.0
        self.losses: list[float] = []  # since the last validation
        self.seconds = 0.0  # of all cores together: what else runs on the machine does not count
        if state is not None:
            self._restore(state)

    def go(self) -> None:
        """All steps that are left."""
        config = self.config
        every = max(1, round(config.validate_every * self.batches.pictures / config.batch))
        with training_bar() as progress, ThreadPoolExecutor(2) as readers, ThreadPoolExecutor(1) as ahead:
            bar = progress.add_task("training", total=self.steps, completed=self.step, note="")
            waiting = ahead.submit(self._load, self.step, readers)
            while self.step < self.steps:
                started = time.process_time()
                images, labels = waiting.result()
                waiting = ahead.submit(self._load, self.step + 1, readers)
                loss = self._learn(images, labels)
                self.step += 1
                self.seconds += time.process_time() - started
                self.losses.append(loss)
                self.run.board.add_scalar("loss", loss, self.step)
                progress.update(bar, completed=self.step, note=f"loss {loss:.4f}, best r@1 {max(self.best, 0):.4f}")
                due = self.step % every == 0 or self.step == self.steps
                if due:
                    self._validate()
                if due or self.step % CHECKPOINT_EVERY == 0:
                    self.run.save(self._state())

    def _load(self, step: int, readers: ThreadPoolExecutor) -> tuple[Tensor, Tensor]:
        """Random views of a step's batch: [N, size, size, 3] uint8. What is drawn depends on seed and step alone."""
        config = self.config
        random = np.random.default_rng([config.seed, step])
        batch = self.batches.draw(random)
        randoms = random.spawn(len(batch.files))

        def view(file: LabelledFile, random: np.random.Generator) -> np.ndarray:
            return random_view(file.path, config.size, random, config.smallest_part)

        views = list(readers.map(view, batch.files, randoms))
        return torch.from_numpy(np.stack(views)), torch.tensor(batch.labels)

    def _learn(self, pixels: Tensor, labels: Tensor) -> float:
        """One step on one batch; returns the loss."""
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate_at(self.step / self.steps) * group["factor"]
        with torch.no_grad():
            features = torch.cat([self.early(_normalised(part)) for part in pixels.split(config.chunk)])
        self.optimizer.zero_grad()
        loss = LOSSES[config.loss]
        if loss is not None:
            value = large_batch_step(self.late, features, labels, loss, chunk=config.chunk)
        else:
            value = self._classify(features, labels)
        self.optimizer.step()
        return float(value)

    def _classify(self, features: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy over all classes; a sum over pictures, so chunks need no second pass."""
        assert self.classes is not None  # made with the config
        total = torch.zeros(())
        for part, own in zip(features.split(self.config.chunk), labels.split(self.config.chunk), strict=True):
            logits = COSINE_SCALE * self.late(part) @ F.normalize(self.classes, dim=1).T
            loss = F.cross_entropy(logits, own, reduction="sum") / len(labels)
            loss.backward()
            total += loss.detach()
        return total

    def _validate(self) -> None:
        """Nearest neighbours of unseen classes, or of val; keep the weights if they are the best so far."""
        self.model.eval()
        figures = validate_embedder(self.model, self.config.test_size, self.files)
        self.model.train()
        nearest = [value for name, value in figures.items() if name.endswith(("/r@1", "/1-nn"))]
        score = sum(nearest) / len(nearest)
        loss = sum(self.losses) / len(self.losses)
        self.losses = []
        minutes = round(self.seconds / 60, 2)
        self.run.log(self.step, {"core minutes": minutes, "mean loss": loss, "r@1": score, **figures})
        if score > self.best:
            self.best = score
            save_embedder(self.model, self.run.best)

    def _state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "provenance": asdict(self.model.provenance),
            "classes": None if self.classes is None else self.classes.detach(),
            "optimizer": self.optimizer.state_dict(),
            "torch": torch.get_rng_state(),
            "step": self.step,
            "best": self.best,
            "seconds": self.seconds,
            "losses": self.losses,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        if self.classes is not None:
            self.classes.data.copy_(state["classes"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch"])
        self.step, self.best, self.seconds = state["step"], state["best"], state["seconds"]
        self.losses = state["losses"]


def _continued(before: Provenance, batches: BalancedBatches, loss: str) -> Provenance:
    """What the weights were learned from, with this training added."""
    data = [
        f"{source}: {sum(len(batches.classes[name]) for name in names)} pictures of {len(names)} classes"
        for source, names in sorted(batches.sources.items())
    ]
    return Provenance((*before.data, *(entry for entry in data if entry not in before.data)), (*before.losses, loss))


def _normalised(pixels: Tensor) -> Tensor:
    """uint8 [N, H, W, 3] → float [N, 3, H, W] in −1…1, channels last in memory."""
    return pixels.permute(0, 3, 1, 2).float().div_(127.5).sub_(1)


def _start(config: EmbedderTraining, train: Sequence[LabelledFile], *, fresh: bool) -> Embedder:
    """The network training starts from."""
    if config.start != "imagenet":
        model = load_embedder(config.start)
        if model.shape != config.shape:
            raise DataError(f"{config.start} has the shape {model.shape}; the config asks for {config.shape}")
        return model
    model = imagenet_embedder(config.shape)
    if fresh and isinstance(model.projection, nn.Linear):
        projection, model.projection = model.projection, nn.Identity()
        # Whatever the last layer, vectors are made unit; lengths before that are nearly equal after LayerNorm.
        features = torch.from_numpy(embed_files(model, config.size, train))
        model.projection = projection
        whiten(projection, features, config.whitening_power)
    return model


def _class_weights(
    model: Embedder, config: EmbedderTraining, batches: BalancedBatches, *, fresh: bool
) -> nn.Parameter | None:
    """One direction a class for cross-entropy, at the start the mean of its pictures' embeddings."""
    if config.loss != "cross_entropy":
        return None
    weights = torch.zeros(len(batches.classes), model.dim)
    if fresh:
        files = [file for members in batches.classes.values() for file in members]
        vectors = torch.from_numpy(embed_files(model.eval(), config.size, files))
        labels = torch.tensor([batches.numbers[file.source, file.class_name] for file in files])
        weights.index_add_(0, labels, vectors)
        model.train()
    return nn.Parameter(F.normalize(weights, dim=1) if fresh else weights)
