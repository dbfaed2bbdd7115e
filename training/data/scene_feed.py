"""Batches of views for the detector: parts of photographs, and scenes that are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from training.data.scene_views import View, view_of
from training.data.scenes import Scene
from training.data.words import Pixels
from training.errors import DataError
from training.models.detector import Truth


class DrawnScene(Protocol):
    """What a renderer of scenes draws."""

    @property
    def pixels(self) -> Pixels:
        """[H, W, 3]."""

    @property
    def quads(self) -> NDArray[np.float32]:
        """[M, 4, 2]."""

    @property
    def legible(self) -> NDArray[np.bool_]:
        """[M]."""


class DrawsScenes(Protocol):
    """A renderer of scenes."""

    def draw(self, random: np.random.Generator, height: int, width: int) -> DrawnScene:
        """A scene of this size."""


@dataclass(frozen=True)
class SceneBatch:
    """Views and their words."""

    pixels: Pixels  # [N, size, size, 3]
    truths: list[Truth]


class SceneFeed:
    """Draws batches; batch `step` is the same whenever it is asked for."""

    def __init__(
        self,
        scenes: Sequence[Scene],
        renderer: DrawsScenes | None,
        *,
        batch: int,
        size: int,
        synthetic: float,
        seed: int,
    ) -> None:
        self.scenes = [scene for scene in scenes if scene.set_name == "train"]
        if not self.scenes:
            raise DataError("no photograph of the set train in the data")
        if synthetic and renderer is None:
            raise DataError("drawn scenes are asked for, but nothing can draw them")
        self.renderer, self.batch, self.size, self.synthetic, self.seed = renderer, batch, size, synthetic, seed
        # Photographs with many words are shown more often: there are few words in all.
        counts = np.array([(~scene.ignored).sum() for scene in self.scenes], dtype=float)
        self.shares = (1 + counts) / (1 + counts).sum()
        self._load = cache(lambda number: self.scenes[number].load())

    def draw(self, step: int) -> SceneBatch:
        """One batch."""
        random = np.random.default_rng((self.seed, step))
        views = [self._view(random) for _ in range(self.batch)]
        pixels = np.stack([view.pixels for view in views])
        return SceneBatch(pixels, [Truth.of(view.quads, view.ignored) for view in views])

    def _view(self, random: np.random.Generator) -> View:
        if self.renderer is not None and random.uniform() < self.synthetic:
            drawn = self.renderer.draw(random, self.size, self.size)
            return View(drawn.pixels, drawn.quads.astype(np.float64), ~drawn.legible)
        number = int(random.choice(len(self.scenes), p=self.shares))
        scene = self.scenes[number]
        return view_of(self._load(number), scene.quads, scene.ignored, self.size, random)
