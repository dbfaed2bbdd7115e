"""`readleaf models compare`: two versions of a model on the same labelled pictures, as the service would answer."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from export.judges import JUDGES, Judge, Workplace
from serving.metrics import Metrics
from serving.on_this_machine import models_in_use
from serving.repository import StoredModel, model_of, versions_of
from serving.runtime.choice import open_runtime
from serving.settings import Settings
from training.errors import DataError

Floats = NDArray[np.float64]
DRAWS = 1000
CERTAIN = 0.95
SEED = 0


@dataclass(frozen=True)
class Comparison:
    """Figures of both versions on the same pictures."""

    versions: tuple[int, int]
    pictures: int
    figures: tuple[dict[str, float], dict[str, float]]  # the first decides
    milliseconds: tuple[float, float]  # a picture, one at a time
    gain: float  # of the second over the first in the figure that decides
    between: tuple[float, float]  # where the gain is found in 95 of 100 draws of such pictures

    @property
    def verdict(self) -> str:
        """In one sentence."""
        name, (low, high) = next(iter(self.figures[0])), self.between
        if low <= 0 <= high:
            return f"no difference in {name} that {self.pictures} pictures could show"
        better, worse = self.versions[::-1] if self.gain > 0 else self.versions
        return f"version {better} is better than version {worse} in {name}"

    def table(self) -> Table:
        """For the screen."""
        first, second = self.figures
        low, high = self.between
        table = Table("", *(f"version {version}" for version in self.versions), "gain", box=None)
        for number, name in enumerate(first):
            gain = f"{second[name] - first[name]:+.4f}" + (f" ({low:+.4f} … {high:+.4f})" if number == 0 else "")
            table.add_row(name, f"{first[name]:.4f}", f"{second[name]:.4f}", gain)
        table.add_row("ms a picture", *(f"{each:.1f}" for each in self.milliseconds), "")
        table.caption = f"{self.pictures} pictures: {self.verdict}"
        table.caption_justify = "left"
        return table


def compare_versions(
    settings: Settings, name: str, versions: tuple[int, int], folders: Sequence[Path], limit: int | None = None
) -> Comparison:
    """Ask both about every picture, in turns; raises a SetupError or a DataError that says what is missing."""
    known = versions_of(settings.models_dir / name)
    stored = [known[version] for version in versions]
    tasks = {model.manifest.task for model in stored}
    if len(tasks) != 1:
        raise DataError(f"versions {versions[0]} and {versions[1]} of {name} are for different tasks")
    judge: Judge = JUDGES[tasks.pop()]()
    pictures = judge.pictures(folders)
    if limit is not None and limit < len(pictures):
        chosen = np.random.default_rng(SEED).choice(len(pictures), limit, replace=False)
        pictures = judge.comparable([pictures[place] for place in np.sort(chosen)])
    with closing(open_runtime(settings, Metrics())) as runtime, ThreadPoolExecutor(1) as workers:
        place = Workplace(runtime, workers, lambda other: model_of(models_in_use(settings), other))
        looks, seconds = _look(judge, place, stored, pictures)
    rows = [judge.rows(each, pictures) for each in looks]
    gain, between = _gain(judge.figures, rows)
    milliseconds = (1000 * float(np.median(seconds[0])), 1000 * float(np.median(seconds[1])))
    return Comparison(
        versions, len(rows[0]), (judge.figures(rows[0]), judge.figures(rows[1])), milliseconds, gain, between
    )


def _look(
    judge: Judge, place: Workplace, stored: Sequence[StoredModel], pictures: Sequence[object]
) -> tuple[list[list[object]], list[list[float]]]:
    """What each version makes of every picture, and the seconds it took."""
    ask = [judge.open(place, model) for model in stored]
    looks: list[list[object]] = [[], []]
    seconds: list[list[float]] = [[], []]
    for number, picture in enumerate(track(pictures, description="comparing", console=Console(stderr=True))):
        for which in (0, 1) if number % 2 else (1, 0):  # in turns, so that neither always finds a warm cache
            started = perf_counter()
            looks[which].append(ask[which](picture))
            seconds[which].append(perf_counter() - started)
    return looks, seconds


def _gain(figures: Callable[[Floats], dict[str, float]], rows: Sequence[Floats]) -> tuple[float, tuple[float, float]]:
    """By how much the second is better, and the interval by drawing the same pictures again for both."""

    def decides(each: Floats) -> float:
        return next(iter(figures(each).values()))

    generator = np.random.default_rng(SEED)
    draws = (generator.integers(0, len(rows[0]), len(rows[0])) for _ in range(DRAWS))
    gains = [decides(rows[1][drawn]) - decides(rows[0][drawn]) for drawn in draws]
    low, high = np.quantile(gains, [(1 - CERTAIN) / 2, (1 + CERTAIN) / 2])
    return decides(rows[1]) - decides(rows[0]), (float(low), float(high))
