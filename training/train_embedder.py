"""Trains the embedder: class-balanced large batches, any of the losses, the best weights by unseen classes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.data.augment import random_view
from training.data.balanced import BalancedBatches
from training.data.labelled import LabelledFile, read_labels
from training.data.pixels import normalised
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
from training.schedule import warmed_cosine
from training.step_by_step import StepByStep

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


class _Training(StepByStep[tuple[Tensor, Tensor]]):
    def __init__(self, config: EmbedderTraining, files: Sequence[LabelledFile], run: RunFolder) -> None:
        super().__init__(run, best=-1.0)
        self.config, self.files = config, files
        torch.manual_seed(config.seed)
        train = [file for file in files if file.set_name == "train"]
        self.batches = BalancedBatches(train, batch=config.batch, per_class=config.per_class)
        fresh = self.state is None
        self.model = _start(config, train, fresh=fresh)
        self.model.provenance = _continued(self.model.provenance, self.batches, config.loss)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.early, self.late = split(self.model.train(), config.frozen_stages)
        self.classes = _class_weights(self.model, config, self.batches, fresh=fresh)
        learned = [parameter for parameter in self.late.parameters() if parameter.requires_grad]
        groups = [{"params": learned, "factor": 1.0}]
        if len(self.classes):
            groups.append({"params": list(self.classes), "factor": 10.0})  # a new layer may learn faster
        self.optimizer = torch.optim.AdamW(groups, lr=config.rate, weight_decay=config.weight_decay)
        self.readers = ThreadPoolExecutor(2)
        self.begin(
            {"model": self.model, "classes": self.classes, "optimizer": self.optimizer},
            steps=max(1, round(config.epochs * self.batches.pictures / config.batch)),
            validate_every=max(1, round(config.validate_every * self.batches.pictures / config.batch)),
            checkpoint_every=CHECKPOINT_EVERY,
        )

    def load(self, step: int) -> tuple[Tensor, Tensor]:
        """Random views of a step's batch: [N, size, size, 3] uint8, and its labels."""
        config = self.config
        random = np.random.default_rng([config.seed, step])
        batch = self.batches.draw(random)
        randoms = random.spawn(len(batch.files))

        def view(file: LabelledFile, random: np.random.Generator) -> np.ndarray:
            return random_view(file.path, config.size, random, config.smallest_part)

        views = list(self.readers.map(view, batch.files, randoms))
        return torch.from_numpy(np.stack(views)), torch.tensor(batch.labels)

    def learn(self, batch: tuple[Tensor, Tensor]) -> dict[str, float]:
        """One step on one batch."""
        config, (pixels, labels) = self.config, batch
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate_at(self.step / self.steps) * group["factor"]
        with torch.no_grad():
            features = torch.cat([self.early(normalised(part)) for part in pixels.split(config.chunk)])
        self.optimizer.zero_grad()
        loss = LOSSES[config.loss]
        if loss is not None:
            value = large_batch_step(self.late, features, labels, loss, chunk=config.chunk)
        else:
            value = self._classify(features, labels)
        self.optimizer.step()
        return {"loss": float(value)}

    def _classify(self, features: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy over all classes; a sum over pictures, so chunks need no second pass."""
        [classes] = self.classes  # made with the config
        total = torch.zeros(())
        for part, own in zip(features.split(self.config.chunk), labels.split(self.config.chunk), strict=True):
            logits = COSINE_SCALE * self.late(part) @ F.normalize(classes, dim=1).T
            loss = F.cross_entropy(logits, own, reduction="sum") / len(labels)
            loss.backward()
            total += loss.detach()
        return total

    def validate(self) -> None:
        """Nearest neighbours of unseen classes, or of val; keep the weights if they are the best so far."""
        self.model.eval()
        figures = validate_embedder(self.model, self.config.test_size, self.files)
        self.model.train()
        nearest = [value for name, value in figures.items() if name.endswith(("/r@1", "/1-nn"))]
        score = sum(nearest) / len(nearest)
        self.log({"r@1": score, **figures})
        if score > self.best:
            self.best = score
            save_embedder(self.model, self.run.best)

    def note(self) -> str:
        """The best so far."""
        return f"best r@1 {max(self.best, 0):.4f}"


def _continued(before: Provenance, batches: BalancedBatches, loss: str) -> Provenance:
    """What the weights were learned from, with this training added."""
    data = [
        f"{source}: {sum(len(batches.classes[name]) for name in names)} pictures of {len(names)} classes"
        for source, names in sorted(batches.sources.items())
    ]
    return Provenance((*before.data, *(entry for entry in data if entry not in before.data)), (*before.losses, loss))


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
) -> nn.ParameterList:
    """One direction a class for cross-entropy, at the start the mean of its pictures' embeddings; else nothing."""
    if config.loss != "cross_entropy":
        return nn.ParameterList()
    weights = torch.zeros(len(batches.classes), model.dim)
    if fresh:
        files = [file for members in batches.classes.values() for file in members]
        vectors = torch.from_numpy(embed_files(model.eval(), config.size, files))
        labels = torch.tensor([batches.numbers[file.source, file.class_name] for file in files])
        weights.index_add_(0, labels, vectors)
        model.train()
    return nn.ParameterList([F.normalize(weights, dim=1) if fresh else weights])
