"""Batches for the recogniser: real crops, distorted, and rendered words, on canvases of one width."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.data.canvas import Canvas, place
from training.data.crop_augment import distort
from training.data.rendering import Renderer
from training.data.words import Pixels, WordCrop
from training.errors import DataError

WIDEST = 320  # of canvases to train on: wider words are few
TRIES = 4


@dataclass(frozen=True)
class Example:
    """A crop to learn from, turned upright."""

    crop: WordCrop
    turn: int = 0  # quarter turns that make it readable

    def load(self) -> Pixels:
        """Its pixels: [H, W, 3]."""
        return np.ascontiguousarray(np.rot90(self.crop.load(), self.turn))


@dataclass(frozen=True)
class Batch:
    """Canvases [N, H, W, C] and what they say."""

    pixels: Pixels
    words: list[str]


class WordFeed:
    """Draws batches. What is drawn depends on seed and step alone."""

    def __init__(
        self,
        examples: Sequence[Example],
        canvas: Canvas,
        renderer: Renderer | None,
        *,
        batch: int,
        synthetic: float,
        strength: float = 1.0,
        longest: int = 25,
        seed: int = 0,
    ) -> None:
        """`synthetic` is the share of rendered words; `longest` the longest word that is learned from."""
        if renderer is None and synthetic:
            raise DataError("a share of synthetic words needs a renderer")
        self.canvas, self.renderer, self.batch = canvas, renderer, batch
        self.synthetic, self.strength, self.seed = synthetic, strength, seed
        self.longest = longest
        self.by_width: dict[int, list[Example]] = {}
        for example in examples:
            height, width = example.load().shape[:2]
            own = canvas.width_of(height, width)
            if own <= max(WIDEST, canvas.width) and len(example.crop.text) <= longest:
                self.by_width.setdefault(own, []).append(example)
        if not self.by_width:
            raise DataError("there is no crop to train on")

    def __len__(self) -> int:
        return sum(map(len, self.by_width.values()))

    def draw(self, step: int) -> Batch:
        """The batch of a step: all of one width, which comes up as often as crops have it."""
        random = np.random.default_rng([self.seed, step])
        widths = sorted(self.by_width)
        shares = np.array([len(self.by_width[width]) for width in widths], dtype=float)
        width = widths[random.choice(len(widths), p=shares / shares.sum())]
        rendered = round(self.batch * self.synthetic)
        pixels, words = [], []
        for place_in_batch in range(self.batch):
            if place_in_batch < rendered:
                crop, word = self._render(width, random)
            else:
                example = self.by_width[width][random.integers(len(self.by_width[width]))]
                crop, word = distort(example.load(), random, self.strength), example.crop.text
            pixels.append(place(crop, self.canvas, width))
            words.append(word)
        return Batch(np.stack(pixels), words)

    def _render(self, width: int, random: np.random.Generator) -> tuple[Pixels, str]:
        """A rendered word that fits; of a few, the first that fills the canvas."""
        assert self.renderer is not None  # checked above
        found = None
        while found is None:
            for _ in range(TRIES):
                crop, word = self.renderer.draw(random)
                own = self.canvas.width_of(*crop.shape[:2])
                if own <= width and len(word) <= self.longest:
                    found = crop, word
                    if own == width:
                        break
        return found
