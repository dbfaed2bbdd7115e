"""Trains the detector on its proxy: hearts of words by cross-entropy and Dice, their boxes by smooth-L1."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.data.pixels import normalised
from training.data.scene_feed import DrawsScenes, SceneBatch, SceneFeed
from training.data.scenes import Scene, read_scenes
from training.errors import DataError
from training.finding import Gather, best_threshold, detection_figures, find_words
from training.models.dense_detector import DenseDetector, DetectorShape, published_detector
from training.models.detectors import NETWORKS, AnyDetector, detector_from, save_detector
from training.models.picture_backbone import STAGES
from training.models.provenance import Provenance
from training.models.rrpn import Rrpn, RrpnShape
from training.prepare_scenes import ground_sources, scene_renderer
from training.run_folder import RunFolder
from training.schedule import warmed_cosine
from training.step_by_step import StepByStep
from training.weight_average import WeightAverage

CHECKPOINT_EVERY = 100  # steps
PUBLISHED = "published"


@dataclass(frozen=True)
class DetectorTraining:
    """A training config; `training/configs/` has examples."""

    network: str = "dense"  # or rrpn
    data: str = "photographs"  # what they are called in the model's card
    shape: DetectorShape = field(default_factory=DetectorShape)  # of the dense one
    rrpn: RrpnShape = field(default_factory=RrpnShape)
    start: str = PUBLISHED  # published weights (of the dense one), nothing, a checkpoint, or an exported detector
    steps: int = 4000
    batch: int = 8
    size: int = 512  # pixels of a view's side; a multiple of 32
    synthetic: float = 0.4  # share of drawn scenes in a batch
    frozen_stages: int = 1  # of the backbone, with its stem; −1: none, not even the stem
    optimizer: str = "adamw"  # or sgd, as in the thesis
    rate: float = 5e-4
    head_rate: float = 2e-3  # of the head, which starts from nearly nothing
    weight_decay: float = 1e-2
    warmup: float = 0.03  # share of all steps
    clip: float = 5.0  # the longest gradient
    box_weight: float = 1.0  # of the proxy beside the score's loss
    average: float = 0.998  # of weights over steps; what is validated and kept is the average
    validate_every: int = 500  # steps
    device: str = "cpu"  # or cuda
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("network", NETWORKS), ("optimizer", OPTIMIZERS)):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.network == "rrpn" and (self.start == PUBLISHED or self.frozen_stages >= 0):
            raise DataError("an rrpn starts from nothing or from a checkpoint, and has no stages to freeze: set -1")
        for name in ("steps", "batch", "size", "rate", "head_rate", "validate_every", "clip"):
            if getattr(self, name) <= 0:
                raise DataError(f"{name} must be above 0, not {getattr(self, name)}")
        if not -1 <= self.frozen_stages <= len(STAGES):
            raise DataError(f"frozen_stages must be -1 to {len(STAGES)}, not {self.frozen_stages}")
        if self.size % 32:
            raise DataError(f"size must be a multiple of 32, not {self.size}")
        for name in ("synthetic", "average", "warmup"):
            if not 0 <= getattr(self, name) <= 1:
                raise DataError(f"{name} must be between 0 and 1, not {getattr(self, name)}")


Groups = list[dict[str, Any]]
OPTIMIZERS: dict[str, Callable[[Groups, DetectorTraining], torch.optim.Optimizer]] = {
    "adamw": lambda groups, config: torch.optim.AdamW(groups, weight_decay=config.weight_decay),
    "sgd": lambda groups, config: torch.optim.SGD(groups, momentum=0.9, weight_decay=config.weight_decay),
}


def train_detector(
    config: DetectorTraining,
    folders: Sequence[Path],
    out: Path,
    gather: Gather,
    *,
    grounds: Sequence[Path] = (),
    resume: bool = False,
) -> Path:
    """Train on the proxy, and return the file of the best weights. What is done by a stop is kept.

    `grounds` are folders of photographs without words that scenes are drawn on, too.
    """
    run = RunFolder(out, config, resume=resume)
    scenes = [scene for folder in folders for scene in read_scenes(folder)]
    renderer = scene_renderer(scenes, grounds) if config.synthetic else None
    _Training(config, scenes, renderer, run, gather, ground_sources(grounds) if renderer else []).go()
    return run.best


class _Training(StepByStep[SceneBatch]):
    def __init__(
        self,
        config: DetectorTraining,
        scenes: Sequence[Scene],
        renderer: DrawsScenes | None,
        run: RunFolder,
        gather: Gather,
        grounds: Sequence[str],
    ) -> None:
        super().__init__(run, best=-math.inf)
        self.config, self.gather = config, gather
        torch.manual_seed(config.seed)
        self.model = start_model(config)
        self.model.to(config.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.feed = SceneFeed(
            scenes, renderer, batch=config.batch, size=config.size, synthetic=config.synthetic, seed=config.seed
        )
        self.validation = [scene for scene in scenes if scene.set_name == "val"]
        if not self.validation:
            raise DataError("no photograph of the set val in the data: no weights would be the best")
        self.model.provenance = _continued(self.model.provenance, self.feed, config.data, grounds)
        freeze(self.model, config.frozen_stages)
        self.optimizer = OPTIMIZERS[config.optimizer](_groups(self.model, config), config)
        self.average = WeightAverage(self.model, config.average)
        self.begin(
            {"model": self.model, "optimizer": self.optimizer, "average": self.average},
            steps=config.steps,
            validate_every=config.validate_every,
            checkpoint_every=CHECKPOINT_EVERY,
        )

    def load(self, step: int) -> SceneBatch:
        """Views of photographs and of drawn scenes."""
        return self.feed.draw(step)

    def learn(self, batch: SceneBatch) -> dict[str, float]:
        """One step; scores and boxes have losses of their own."""
        share = warmed_cosine(1.0, self.step / self.config.steps, self.config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["full"] * share
        self.model.train()
        images = normalised(torch.from_numpy(batch.pixels).to(self.config.device))
        learned = self.model.learn(images.contiguous(memory_format=torch.channels_last), batch.truths)
        self.optimizer.zero_grad()
        (learned.rest + self.config.box_weight * learned.proxy).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.average.update(self.model)
        return {"score": float(learned.rest.detach()), "box": float(learned.proxy.detach())}

    def validate(self) -> None:
        """Find the words of validation pictures with the averaged weights; keep those if they are the best so far."""
        averaged = self.average.of(self.model).cpu()
        found = find_words(averaged, self.validation, self.gather)
        threshold = best_threshold(self.validation, found)
        figures = detection_figures(self.validation, found, threshold)
        self.log({"threshold": threshold, **figures})
        if figures["detection/f1"] > self.best:
            self.best = figures["detection/f1"]
            save_detector(averaged, self.run.best)

    def note(self) -> str:
        """The best so far."""
        return f"best F1 {max(self.best, 0):.3f}"


def start_model(config: DetectorTraining) -> AnyDetector:
    """The network training starts from."""
    wanted = config.shape if config.network == "dense" else config.rrpn
    if config.start == PUBLISHED:
        return published_detector(config.shape)
    if config.start == "nothing":
        return DenseDetector(config.shape) if config.network == "dense" else Rrpn(config.rrpn)
    model = detector_from(config.start)
    if model.shape != wanted:
        raise DataError(f"{config.start} has the shape {model.shape}; the config asks for {wanted}")
    return model


def freeze(model: AnyDetector, stages: int) -> None:
    """Let the stem and the first stages of the dense detector's backbone stand still: it takes a third less time."""
    if stages >= 0 and isinstance(model, DenseDetector):
        for part in [model.backbone.stem, *list(model.backbone.stages)[:stages]]:
            part.requires_grad_(False)


def _groups(model: AnyDetector, config: DetectorTraining) -> Groups:
    """Learned weights with their rates: a new head learns faster than what was trained before."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not isinstance(model, DenseDetector) or config.start != PUBLISHED:
        return [{"params": learned, "lr": config.rate, "full": config.rate}]
    head = [*model.first.parameters(), *model.last.parameters()]
    body = [parameter for parameter in model.backbone.parameters() if parameter.requires_grad]
    return [
        {"params": part, "lr": rate, "full": rate} for part, rate in ((body, config.rate), (head, config.head_rate))
    ]


def _continued(before: Provenance, feed: SceneFeed, name: str, grounds: Sequence[str]) -> Provenance:
    """What the weights were learned from, with this training added; `grounds` are sources of what scenes stand on."""
    words = sum(int((~scene.ignored).sum()) for scene in feed.scenes)
    data = [f"{name}: {len(feed.scenes)} photographs with {words} words"]
    if feed.renderer is not None:
        data.append("drawn scenes: words of our own renderer")
        data += [f"{source}: photographs that words are drawn on" for source in grounds]
    return Provenance(
        (*before.data, *(entry for entry in data if entry not in before.data)), (*before.losses, "smooth-L1")
    )
