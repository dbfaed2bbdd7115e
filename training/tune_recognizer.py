"""Tunes a trained recogniser on a learned surrogate of edit distance: LS-ED, FEDS, and the proxy as their control.

What comes before the columns can see one another (stem and stages of a text backbone) stands still; its output for
many distorted crops is computed once, so that one arm of a comparison takes minutes and all arms see the same data.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from training.data.canvas import place
from training.data.pixels import normalised
from training.data.word_feed import WIDEST, WordFeed
from training.data.words import WordCrop, read_words
from training.errors import DataError
from training.evaluate_recognizer import reading_figures
from training.figures import sha256_of
from training.kept_files import kept_file
from training.losses.filtered import Target
from training.models.prediction import Ctc
from training.models.provenance import Provenance
from training.models.recognizer import Recognizer, load_recognizer, save_recognizer
from training.reading import read_crops
from training.run_folder import RunFolder
from training.surrogates.ctc_paths import (
    CHANNELS,
    PathDistance,
    PathDistorter,
    by_column,
)
from training.surrogates.edit_distance import CharacterNetwork, EditDistance, WordDistorter, by_offset
from training.surrogates.learning import Round, Schedule, Surrogate, alternate
from training.surrogates.pairs import ModelBatch, Pair, RecentPairs, Sources
from training.surrogates.quality import draw_band, measure
from training.train_recognizer import RecognizerTraining, make_feed
from training.tuned_part import Tuned, Views
from training.weight_average import WeightAverage

LOSSES = ("proxy", "ls_ed", "feds")
PAIRS = ("global", "local", "local_global")
EDGES = (1, 2, 3)  # of edit distances: 0, 1, 2 and 3 or more
RECENT = 20_000


@dataclass(frozen=True)
class RecognizerTuning:
    """A tuning config; `training/configs/` has examples."""

    start: str
    loss: str = "feds"
    pairs: str = "local_global"  # what LS-ED's surrogate learns from; FEDS' learns from the model alone
    views: int = 12_000  # distorted crops
    synthetic: float = 0.35
    strength: float = 1.0
    batch: int = 64
    first_steps: int = 2000  # of the surrogate, before the first round
    rounds: int = 30
    surrogate_steps: int = 20
    model_steps: int = 20
    rate: float = 3e-5
    surrogate_rate: float = 1e-3
    gradient_weight: float = 0.1
    threshold: float = 0.25  # FEDS' λ
    target: Target = "zero"
    proxy_weight: float = 0.0  # of the proxy beside the surrogate
    average: float = 0.99
    validate_every: int = 10  # rounds
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("loss", LOSSES), ("pairs", PAIRS)):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        if self.rounds < 1 or self.views < self.batch:
            raise DataError(f"a tuning needs a round and views for a batch, not {self.rounds} and {self.views}")


def tune_recognizer(config: RecognizerTuning, folders: Sequence[Path], out: Path) -> Path:
    """Tune, and return the file of the weights: the average of the last steps."""
    run = RunFolder(out, config, resume=False)
    crops = [crop for folder in folders for crop in read_words(folder)]
    torch.manual_seed(config.seed)
    model = load_recognizer(config.start)
    tuning = _Tuning(config, model, crops, run)
    tuning.go()
    return run.best


class _Tuning:
    def __init__(self, config: RecognizerTuning, model: Recognizer, crops: Sequence[WordCrop], run: RunFolder) -> None:
        self.config, self.run, self.model = config, run, model
        self.validation = [crop for crop in crops if crop.set_name == "val"]
        self.tuned = Tuned(model)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        for parameter in self.tuned.tuned_parameters():
            parameter.requires_grad_(True)
        self.views = self._look(crops)
        torch.manual_seed(config.seed)  # whether views were kept or made now must not matter
        self.random = np.random.default_rng(config.seed)
        self.average = WeightAverage(model, config.average)
        self.optimizer = torch.optim.AdamW(self.tuned.tuned_parameters(), config.rate, weight_decay=0.0)
        self.optimizer.register_step_post_hook(lambda *_: self.average.update(model))
        model.provenance = Provenance(model.provenance.data, (*model.provenance.losses, config.loss))

    def _look(self, crops: Sequence[WordCrop]) -> Views:
        """The fixed part's output for all views; arms that differ in nothing that matters here share it."""
        config = self.config
        feed_config = RecognizerTraining(
            shape=self.model.shape,
            batch=config.batch,
            synthetic=config.synthetic,
            strength=config.strength,
            seed=config.seed,
        )
        known = [[str(crop.file), crop.number, crop.text, crop.set_name] for crop in crops]
        question = [sha256_of(config.start), config.views, asdict(feed_config), known]
        file = kept_file("views.pt", question)
        if not file.exists():
            views = self._views(make_feed(self.model, crops, feed_config))
            torch.save(vars(views), file.with_suffix(".part"))
            file.with_suffix(".part").replace(file)
        return Views(**torch.load(file, weights_only=True))

    def _views(self, feed: WordFeed) -> Views:
        by_width: dict[int, tuple[list[Tensor], list[str]]] = {}
        steps = range(-(-self.config.views // self.config.batch))
        with torch.inference_mode():
            for step in track(steps, description="looking at views", transient=True):
                batch = feed.draw(step)
                inputs = self.tuned.fixed(normalised(torch.from_numpy(batch.pixels)))
                parts = by_width.setdefault(batch.pixels.shape[2], ([], []))
                parts[0].append(inputs.half())
                parts[1].extend(batch.words)
        return Views(
            [torch.cat(parts[0]).clone() for parts in by_width.values()], [parts[1] for parts in by_width.values()]
        )

    def go(self) -> None:
        """All rounds."""
        self._validate(0, {})
        if self.config.loss == "proxy":
            self._continue_proxy()
        else:
            self._tune()

    def _continue_proxy(self) -> None:
        """The control: as many steps of the proxy as the others take of the surrogate."""
        for number in track(range(1, self.config.rounds + 1), description="proxy"):
            losses = []
            for _ in range(self.config.model_steps):
                loss = self.tuned.proxy(*self.views.draw(self.random, self.config.batch))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(float(loss.detach()))
            self._after(number, {"mean loss": sum(losses) / len(losses)})

    def _tune(self) -> None:
        config = self.config
        surrogate = self._surrogate()
        recent = RecentPairs(RECENT, surrogate.metric, batch=config.batch, seed=config.seed)
        self._fill(recent)
        tuning = self._sources(recent)
        optimizer = torch.optim.Adam(surrogate.embed.parameters(), config.surrogate_rate)
        first = Schedule(10, config.first_steps // 10, gradient_weight=config.gradient_weight)
        for entry in alternate(surrogate, tuning, first, optimizer):
            if entry.number in (1, first.rounds):
                self._look_at(surrogate, "early" if entry.number == 1 else "late")
        for group in optimizer.param_groups:
            group["lr"] = config.surrogate_rate / 3
        schedule = Schedule(
            config.rounds,
            config.surrogate_steps,
            config.model_steps,
            gradient_weight=config.gradient_weight,
            filter_threshold=config.threshold if config.loss == "feds" else None,
            filter_target=config.target,
        )
        for entry in alternate(surrogate, tuning, schedule, optimizer, self.optimizer):
            self._after(entry.number, _figures(entry))
        self._look_at(surrogate, "end")

    def _surrogate(self) -> Surrogate:
        alphabet, length = self.model.shape.alphabet, self.tuned.length
        if isinstance(self.model.prediction, Ctc):
            return Surrogate(CharacterNetwork(length, CHANNELS), PathDistance(alphabet), by_column)
        return Surrogate(CharacterNetwork(length), EditDistance(alphabet), by_offset)

    def _sources(self, recent: RecentPairs) -> Sources:
        config, alphabet = self.config, self.model.shape.alphabet

        def model() -> ModelBatch:
            inputs, words = self.views.draw(self.random, config.batch)
            prediction, truth = self.tuned.pair(inputs, words)
            recent.add(prediction, truth)
            rest = config.proxy_weight * self.tuned.proxy(inputs, words) if config.proxy_weight else 0.0
            return ModelBatch(prediction, truth, rest)

        kinds = {"ls_ed": config.pairs, "feds": "local"}[config.loss]
        generator = None
        if kinds != "local":
            distorter = PathDistorter if isinstance(self.model.prediction, Ctc) else WordDistorter
            words = [word for part in self.views.words for word in part]
            generator = distorter(words, alphabet, length=self.tuned.length, batch=config.batch, seed=config.seed)
        return Sources(generator, model, recent, local=kinds != "global")

    def _fill(self, recent: RecentPairs) -> None:
        """What the model answers before it is tuned."""
        with torch.no_grad():
            for _ in range(max(1, min(RECENT, self.config.views) // self.config.batch)):
                recent.add(*self.tuned.pair(*self.views.draw(self.random, self.config.batch)))

    def _after(self, number: int, figures: dict[str, float]) -> None:
        if number % self.config.validate_every == 0 or number == self.config.rounds:
            self._validate(number, figures)

    def _validate(self, number: int, figures: dict[str, float]) -> None:
        """Read the validation crops with the averaged weights, and keep those."""
        averaged = self.average.of(self.model)
        texts = [reading.text for reading in read_crops(averaged, [crop.load() for crop in self.validation])]
        self.run.log(number, figures | reading_figures(self.validation, texts))
        save_recognizer(averaged, self.run.best)

    def _look_at(self, surrogate: Surrogate, when: str) -> None:
        """How far ê is from e on the model's own answers to validation crops."""
        prediction, truth = self._answers()
        quality = measure(surrogate, prediction, truth, EDGES)
        draw_band(quality, self.run.folder / f"band_{when}.png", self.config.threshold)
        known = {"by distance": quality.by_bin, "mean": quality.mean, "pairs": len(quality.exact)}
        (self.run.folder / f"quality_{when}.json").write_text(json.dumps(known, indent=1) + "\n")

    def _answers(self) -> Pair:
        """The model's answers to validation crops that it can write, and truths."""
        canvas, alphabet = self.model.shape.canvas, set(self.model.shape.symbols)
        parts: dict[int, tuple[list[np.ndarray], list[str]]] = {}
        for crop in self.validation:
            pixels = crop.load()
            width = canvas.width_of(*pixels.shape[:2])
            if crop.text and set(crop.text) <= alphabet and width <= max(WIDEST, canvas.width):
                own = parts.setdefault(width, ([], []))
                own[0].append(place(pixels, canvas, width))
                own[1].append(crop.text)
        found = []
        with torch.inference_mode():
            for images, words in parts.values():
                for start in range(0, len(words), self.config.batch):
                    chunk = slice(start, start + self.config.batch)
                    inputs = self.tuned.fixed(normalised(torch.from_numpy(np.stack(images[chunk]))))
                    found.append(self.tuned.pair(inputs, words[chunk]))
        return torch.cat([pair[0] for pair in found]).clone(), torch.cat([pair[1] for pair in found]).clone()


def _figures(entry: Round) -> dict[str, float]:
    described = asdict(entry)
    return {
        "error of the surrogate": described["error"],
        "surrogate loss": described["surrogate_loss"],
        "mean loss": described["model_loss"],
    }
