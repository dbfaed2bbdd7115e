"""Trains the detector on its proxy: hearts of words by cross-entropy and Dice, their boxes by smooth-L1."""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.data.scene_feed import DrawsScenes, SceneBatch, SceneFeed
from training.data.scenes import Scene, read_scenes
from training.errors import DataError
from training.finding import Gather, best_threshold, detection_figures, find_words
from training.models.dense_detector import DenseDetector, DetectorShape, published_detector
from training.models.detectors import NETWORKS, AnyDetector, load_detector, save_detector
from training.models.picture_backbone import STAGES
from training.models.provenance import Provenance
from training.models.rrpn import Rrpn, RrpnShape
from training.prepare_scenes import ground_sources, scene_renderer
from training.reading import normalised
from training.run_folder import RunFolder
from training.schedule import training_bar, warmed_cosine
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
    start: str = PUBLISHED  # published weights (of the dense one), nothing, or a checkpoint
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


class _Training:
    def __init__(
        self,
        config: DetectorTraining,
        scenes: Sequence[Scene],
        renderer: DrawsScenes | None,
        run: RunFolder,
        gather: Gather,
        grounds: Sequence[str],
    ) -> None:
        self.config, self.run, self.gather = config, run, gather
        torch.manual_seed(config.seed)
        self.model = start_model(config)
        self.model.to(config.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.feed = SceneFeed(
            scenes, renderer, batch=config.batch, size=config.size, synthetic=config.synthetic, seed=config.seed
        )
        self.validation = [scene for scene in scenes if scene.set_name == "val"]
        if not self.validation:
            raise DataError("no photograph of the set val in the data: no weights would be the best")
        freeze(self.model, config.frozen_stages)
        self.optimizer = OPTIMIZERS[config.optimizer](_groups(self.model, config), config)
        self.average = WeightAverage(self.model, config.average)
        self.step, self.best, self.seconds = 0, -math.inf, 0.0
        self.losses: list[tuple[float, float]] = []  # since the last validation: of scores, of boxes
        state = run.load()
        if state is None:
            self.model.provenance = _continued(self.model.provenance, self.feed, config.data, grounds)
        else:
            self._restore(state)

    def go(self) -> None:
        """All steps that are left."""
        config = self.config
        with training_bar() as progress, ThreadPoolExecutor(1) as ahead:
            bar = progress.add_task("training", total=config.steps, completed=self.step, note="")
            waiting: Future[SceneBatch] = ahead.submit(self.feed.draw, self.step)
            while self.step < config.steps:
                started = time.process_time()
                batch = waiting.result()
                waiting = ahead.submit(self.feed.draw, self.step + 1)
                scores, boxes = self._learn(batch)
                self.step += 1
                self.seconds += time.process_time() - started
                self.losses.append((scores, boxes))
                self.run.board.add_scalar("loss", scores + boxes, self.step)
                progress.update(
                    bar, completed=self.step, note=f"score {scores:.3f}, box {boxes:.3f}, best F1 {self.best:.3f}"
                )
                due = self.step % config.validate_every == 0 or self.step == config.steps
                if due:
                    self._validate()
                if due or self.step % CHECKPOINT_EVERY == 0:
                    self.run.save(self._state())

    def _learn(self, batch: SceneBatch) -> tuple[float, float]:
        """One step on one batch; returns the losses of scores and of boxes."""
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
        return float(learned.rest.detach()), float(learned.proxy.detach())

    def _validate(self) -> None:
        """Find the words of validation pictures with the averaged weights; keep those if they are the best so far."""
        averaged = self.average.of(self.model).cpu()
        found = find_words(averaged, self.validation, self.gather)
        threshold = best_threshold(self.validation, found)
        figures = detection_figures(self.validation, found, threshold)
        scores, boxes = (sum(part) / max(len(part), 1) for part in zip(*self.losses, strict=True))
        self.losses = []
        known = {"core minutes": round(self.seconds / 60, 2), "mean loss": scores + boxes, "box loss": boxes}
        self.run.log(self.step, {**known, "threshold": threshold, **figures})
        if figures["detection/f1"] > self.best:
            self.best = figures["detection/f1"]
            save_detector(averaged, self.run.best)

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


def start_model(config: DetectorTraining) -> AnyDetector:
    """The network training starts from."""
    wanted = config.shape if config.network == "dense" else config.rrpn
    if config.start == PUBLISHED:
        return published_detector(config.shape)
    if config.start == "nothing":
        return DenseDetector(config.shape) if config.network == "dense" else Rrpn(config.rrpn)
    model = load_detector(config.start)
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
