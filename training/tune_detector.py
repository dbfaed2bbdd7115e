"""Tunes a trained detector on a learned surrogate of 1 − IoU (LS-IoU); its proxy and KFIoU are there to compare with.

The dense detector's stages stand still; what they see in many views is computed once, so that one arm of a comparison
takes minutes and all arms see the same data. What joins the stages and the head are tuned. An RRPN is tuned whole.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from training.data.pixels import normalised
from training.data.scene_feed import SceneFeed
from training.data.scenes import Scene, read_scenes
from training.errors import DataError
from training.finding import Gather, best_threshold, detection_figures, find_words
from training.losses.kfiou import kfiou
from training.models.dense_detector import DenseDetector
from training.models.detector import Learned, boxes_of
from training.models.detectors import AnyDetector, load_detector, save_detector
from training.models.provenance import Provenance
from training.prepare_scenes import scene_renderer
from training.run_folder import RunFolder
from training.seen_views import look
from training.surrogates.learning import Schedule, Surrogate, alternate
from training.surrogates.pairs import ModelBatch, Pair, RecentPairs, Sources
from training.surrogates.quality import OVERLAP_EDGES, draw_band, draw_learning, measure
from training.surrogates.rotated_iou import BoxDistorter, BoxNetwork, decode_boxes, in_frame_of_truth, one_minus_iou
from training.weight_average import WeightAverage

LOSSES = ("proxy", "kfiou", "ls_iou")
PAIRS = ("global", "local", "local_global")
RECENT = 50_000  # of the model's own pairs
POOL = 200_000  # of the generator's
BOXES = 512  # of a batch's cells that the surrogate sees
VIEWS_SEED = 1 << 20
MOST_WORDLESS = 200  # batches in a row


@dataclass(frozen=True)
class DetectorTuning:
    """A tuning config; `training/configs/` has examples."""

    start: str
    loss: str = "ls_iou"
    pairs: str = "local_global"  # what LS-IoU's surrogate learns from
    views: int = 1200
    batch: int = 8
    size: int = 512
    synthetic: float = 0.3
    first_steps: int = 3000  # of the surrogate, before the first round
    rounds: int = 30
    surrogate_steps: int = 20
    model_steps: int = 20
    rate: float = 1e-4
    surrogate_rate: float = 1e-3
    gradient_weight: float = 0.01
    box_weight: float = 1.0  # of the boxes' loss beside the score's
    average: float = 0.99
    validate_every: int = 10  # rounds
    validate_start: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("loss", LOSSES), ("pairs", PAIRS)):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.box_weight <= 0:
            raise DataError(f"box_weight must be above 0, not {self.box_weight}")
        if self.rounds < 1 or self.views < self.batch:
            raise DataError(f"a tuning needs a round and views for a batch, not {self.rounds} and {self.views}")


def tune_detector(
    config: DetectorTuning, folders: Sequence[Path], out: Path, gather: Gather, *, grounds: Sequence[Path] = ()
) -> Path:
    """Tune, and return the file of the weights: the average of the last steps."""
    run = RunFolder(out, config, resume=False)
    scenes = [scene for folder in folders for scene in read_scenes(folder)]
    torch.manual_seed(config.seed)
    model = load_detector(config.start)
    learn = _learn_from_kept(config, model, scenes, grounds) if isinstance(model, DenseDetector) else None
    _Tuning(config, model, scenes, learn or _learn_whole(config, model, scenes, grounds), run, gather).go()
    return run.best


Learn = Callable[[], Learned]  # what the model makes of the next batch


def _learn_from_kept(
    config: DetectorTuning, model: DenseDetector, scenes: Sequence[Scene], grounds: Sequence[Path]
) -> Learn:
    """Views go through the stages once; the rest of the network is tuned."""
    settings = [config.views, config.batch, config.size, config.synthetic]
    known = [settings, [str(scene.file) for scene in scenes], [str(folder) for folder in grounds]]
    views = look(config.start, lambda: _feed(config, scenes, grounds), config.views // config.batch, known)
    random = torch.Generator().manual_seed(config.seed)
    model.backbone.stem.requires_grad_(False)
    model.backbone.stages.requires_grad_(False)

    def learn() -> Learned:
        levels, truths = views.draw(random, config.batch)
        return model.judge(model.head(model.backbone.join(levels)), truths)

    return learn


def _learn_whole(config: DetectorTuning, model: AnyDetector, scenes: Sequence[Scene], grounds: Sequence[Path]) -> Learn:
    """New views in each batch, through the whole network."""
    feed, steps = _feed(config, scenes, grounds), count()

    def learn() -> Learned:
        batch = feed.draw(next(steps))
        return model.learn(normalised(torch.from_numpy(batch.pixels)), batch.truths)

    return learn


def _feed(config: DetectorTuning, scenes: Sequence[Scene], grounds: Sequence[Path]) -> SceneFeed:
    """The same views for every arm, whatever its seed; others than the start was trained on."""
    renderer = scene_renderer(scenes, grounds) if config.synthetic else None
    return SceneFeed(
        scenes, renderer, batch=config.batch, size=config.size, synthetic=config.synthetic, seed=VIEWS_SEED
    )


class _Tuning:
    def __init__(
        self,
        config: DetectorTuning,
        model: AnyDetector,
        scenes: Sequence[Scene],
        learn: Learn,
        run: RunFolder,
        gather: Gather,
    ) -> None:
        self.config, self.model, self.learn, self.run, self.gather = config, model, learn, run, gather
        torch.manual_seed(config.seed)
        self.random = torch.Generator().manual_seed(config.seed)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.validation = [scene for scene in scenes if scene.set_name == "val"]
        words = [boxes_of(scene.quads[~scene.ignored]) for scene in scenes if scene.set_name == "train"]
        boxes = np.concatenate(words)
        self.true_boxes = torch.from_numpy(boxes[boxes[:, 2:4].min(axis=1) > 0]).float()  # some labels have no area
        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.average = WeightAverage(model, config.average)
        self.optimizer = torch.optim.AdamW(learned, config.rate, weight_decay=0.0)
        self.optimizer.register_step_post_hook(lambda *_: self.average.update(model))
        model.provenance = Provenance(model.provenance.data, (*model.provenance.losses, config.loss))

    def go(self) -> None:
        """All rounds."""
        if self.config.validate_start:
            self._validate(0, {})
        if self.config.loss == "ls_iou":
            self._tune()
        else:
            self._continue()

    def _next(self) -> Learned:
        """What the model makes of the next batch that shows a word: others say nothing of boxes."""
        for _ in range(MOST_WORDLESS):
            learned = self.learn()
            if len(learned.truth):
                return learned
        raise DataError(f"{MOST_WORDLESS} batches in a row show no word to be found; are all of them marked ###?")

    def _continue(self) -> None:
        """As many steps of the proxy, or of KFIoU, as the others take of the surrogate."""
        for number in track(range(1, self.config.rounds + 1), description=self.config.loss):
            losses = []
            for _ in range(self.config.model_steps):
                learned = self._next()
                boxes = learned.proxy
                if self.config.loss == "kfiou":
                    boxes = (kfiou(learned.prediction, learned.truth) * learned.weights).sum()
                self.optimizer.zero_grad()
                (learned.rest + self.config.box_weight * boxes).backward()
                self.optimizer.step()
                losses.append(float(boxes.detach()))
            self._after(number, {"mean loss": sum(losses) / len(losses)})

    def _tune(self) -> None:
        config = self.config
        surrogate = Surrogate(BoxNetwork(), one_minus_iou, in_frame_of_truth)
        recent = RecentPairs(
            RECENT, one_minus_iou, batch=256, edges=OVERLAP_EDGES, dtype=torch.float32, seed=config.seed
        )
        for _ in range(RECENT // BOXES // 2):
            with torch.no_grad():
                recent.add(*self._pairs(self._next()))
        sources = self._sources(recent)
        optimizer = torch.optim.Adam(surrogate.embed.parameters(), config.surrogate_rate)
        first = Schedule(20, config.first_steps // 20, gradient_weight=config.gradient_weight)
        rounds = list(alternate(surrogate, sources, first, optimizer))
        draw_learning(rounds, self.run.folder / "learning.png")
        self._look_at(surrogate, recent, "start")
        for group in optimizer.param_groups:
            group["lr"] = config.surrogate_rate / 3
        schedule = Schedule(
            config.rounds, config.surrogate_steps, config.model_steps, gradient_weight=config.gradient_weight
        )
        for entry in alternate(surrogate, sources, schedule, optimizer, self.optimizer):
            self._after(entry.number, {"error of the surrogate": entry.error, "mean loss": entry.model_loss or 0.0})
        self._look_at(surrogate, recent, "end")

    def _pairs(self, learned: Learned) -> Pair:
        """Some of a batch's boxes and their truths, each word as likely as any other, in parts of the view's size."""
        chosen = torch.multinomial(learned.weights, BOXES, replacement=True, generator=self.random)
        unit = torch.tensor([self.config.size] * 4 + [1, 1], dtype=torch.float32)
        return learned.prediction[chosen] / unit, learned.truth[chosen] / unit

    def _sources(self, recent: RecentPairs) -> Sources:
        config = self.config

        def model() -> ModelBatch:
            learned = self._next()
            prediction, truth = self._pairs(learned)
            recent.add(prediction, truth)
            # `alternate` adds ê with weight 1: the rest is scaled instead.
            return ModelBatch(prediction, truth, learned.rest / config.box_weight)

        generator = None
        if config.pairs != "local":
            generator = BoxDistorter(decode_boxes(self.true_boxes), batch=256, pool=POOL, seed=config.seed)
        return Sources(generator, model, recent, local=config.pairs != "global")

    def _after(self, number: int, figures: dict[str, float]) -> None:
        if number % self.config.validate_every == 0 or number == self.config.rounds:
            self._validate(number, figures)

    def _validate(self, number: int, figures: dict[str, float]) -> None:
        """Find words of validation pictures with the averaged weights, and keep those."""
        averaged = self.average.of(self.model)
        found = find_words(averaged, self.validation, self.gather)
        threshold = best_threshold(self.validation, found)
        found_figures = detection_figures(self.validation, found, threshold)
        self.run.log(number, figures | {"threshold": threshold} | found_figures)
        save_detector(averaged, self.run.best)

    def _look_at(self, surrogate: Surrogate, recent: RecentPairs, when: str) -> None:
        """How far ê is from e on the model's own boxes."""
        count = len(recent)
        quality = measure(surrogate, recent.prediction[:count], recent.truth[:count], OVERLAP_EDGES)
        draw_band(quality, self.run.folder / f"band_{when}.png", 0.1)
        known = {"by overlap": quality.by_bin, "mean": quality.mean, "pairs": count}
        (self.run.folder / f"quality_{when}.json").write_text(json.dumps(known, indent=1) + "\n")
