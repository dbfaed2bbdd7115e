"""Batches with two random views of each picture, as what a frozen first half of a network makes of them."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from rich.progress import track
from torch import Tensor, nn

from training.data.augment import random_view
from training.data.labelled import LabelledFile, load_pixels
from training.data.pixels import normalised
from training.kept_files import kept_file

CHUNK = 64  # views that go through the first half at a time


@dataclass(frozen=True)
class ViewSize:
    """What a random view shows."""

    size: int  # pixels of a side
    smallest_part: float  # of a picture's area


class PairedViews(Protocol):
    """Training pictures, two views at a time."""

    def load(self, step: int) -> tuple[np.ndarray, Tensor]:
        """What a step's batch is made of, and its labels [2 N]: first views, then second ones.

        It depends on seed and step alone, and may be called in another thread: no network has a part in it.
        """

    def features(self, loaded: np.ndarray) -> Tensor:
        """What the first half of the network makes of it: [2 N, C, h, w]."""

    def passes(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Every picture `count` times, each time in another view, in chunks."""


class _Order:
    """Which pictures a step sees: all of them in a random order, then all in another."""

    def __init__(self, pictures: int, batch: int, seed: int) -> None:
        self.pictures, self.batch, self.seed = pictures, min(batch, pictures), seed

    def of(self, step: int) -> list[int]:
        places = range(step * self.batch, (step + 1) * self.batch)
        epochs = {place // self.pictures for place in places}
        orders = {epoch: np.random.default_rng([self.seed, 1, epoch]).permutation(self.pictures) for epoch in epochs}
        return [int(orders[place // self.pictures][place % self.pictures]) for place in places]


class FreshViews:
    """Views that are made anew for every step."""

    def __init__(
        self,
        files: Sequence[LabelledFile],
        labels: Sequence[int],
        early: nn.Module,
        view: ViewSize,
        batch: int,
        seed: int,
    ) -> None:
        self.files, self.labels, self.early, self.view, self.seed = list(files), list(labels), early, view, seed
        self.order = _Order(len(self.files), batch, seed)
        self.readers = ThreadPoolExecutor(2)

    def load(self, step: int) -> tuple[np.ndarray, Tensor]:
        """Two views of each picture of a batch, as pixels."""
        return self._load(self.order.of(step) * 2, np.random.default_rng([self.seed, 2, step]))

    def features(self, loaded: np.ndarray) -> Tensor:
        """Pixels through the first half."""
        return through(self.early, loaded)

    def passes(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Each time in views of their own."""
        for number in range(count):
            for start in range(0, len(self.files), CHUNK):
                chosen = list(range(start, min(start + CHUNK, len(self.files))))
                pixels, labels = self._load(chosen, np.random.default_rng([self.seed, 3, number, start]))
                yield through(self.early, pixels), labels

    def _load(self, chosen: Sequence[int], random: np.random.Generator) -> tuple[np.ndarray, Tensor]:
        paths, randoms = [self.files[place].path for place in chosen], random.spawn(len(chosen))
        views = list(self.readers.map(lambda path, own: _view(path, own, self.view), paths, randoms))
        return np.stack(views), torch.tensor([self.labels[place] for place in chosen])


class KeptViews:
    """A number of views of each picture that were made once: [pictures, views, C, h, w] in half precision."""

    def __init__(self, kept: np.ndarray, rows: Sequence[int], labels: Sequence[int], *, batch: int, seed: int) -> None:
        self.kept, self.seed = kept, seed
        self.rows, self.labels = np.asarray(rows), torch.tensor(labels)
        self.order = _Order(len(rows), batch, seed)

    def load(self, step: int) -> tuple[np.ndarray, Tensor]:
        """Two different ones of each picture of a batch."""
        chosen = self.order.of(step)
        random = np.random.default_rng([self.seed, 2, step])
        views = np.stack([random.choice(self.kept.shape[1], size=2, replace=False) for _ in chosen])
        first, second = (self.kept[self.rows[chosen], views[:, number]] for number in range(2))
        return np.concatenate([first, second]), self.labels[chosen].repeat(2)

    def features(self, loaded: np.ndarray) -> Tensor:
        """As they are, in single precision."""
        return torch.from_numpy(loaded).float()

    def passes(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The first `count` of those that are kept."""
        for number in range(min(count, self.kept.shape[1])):
            for start in range(0, len(self.rows), CHUNK):
                rows = self.rows[start : start + CHUNK]
                yield torch.from_numpy(self.kept[rows, number]).float(), self.labels[start : start + CHUNK]


def keep_views(files: Sequence[LabelledFile], early: nn.Module, view: ViewSize, count: int) -> np.ndarray:
    """`count` views of each picture through the first half, made once and mapped from disk: [files, count, C, h, w]."""
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in early.state_dict().values())).hexdigest()
    file = kept_file("views.npy", [digest, [_version(each.path) for each in files], *astuple(view), count])
    if not file.exists():
        partial = file.with_suffix(f".{os.getpid()}.part")
        shape = through(early, np.zeros((1, view.size, view.size, 3), dtype=np.uint8)).shape[1:]
        kept = np.lib.format.open_memmap(partial, "w+", np.float16, (len(files), count, *shape))
        with ThreadPoolExecutor(2) as readers:
            for place in track(range(len(files)), description="looking at pictures", transient=True):
                randoms = np.random.default_rng([4, place]).spawn(count)
                views = list(readers.map(lambda random, place=place: _view(files[place].path, random, view), randoms))
                kept[place] = through(early, np.stack(views)).numpy()
        kept.flush()
        partial.replace(file)
    return np.asarray(np.load(file, mmap_mode="r"))


def _version(path: Path) -> tuple[str, int, int]:
    """What tells a file from another, and from what it was before somebody changed it."""
    known = path.stat()
    return str(path), known.st_size, known.st_mtime_ns


def plain_views(files: Sequence[LabelledFile], early: nn.Module, size: int) -> Iterator[Tensor]:
    """Pictures as the service shows them to the network, through the first half, in chunks."""
    with ThreadPoolExecutor(2) as readers:
        for start in range(0, len(files), CHUNK):
            chunk = files[start : start + CHUNK]
            yield through(early, np.stack(list(readers.map(lambda file: load_pixels(file.path, size, size), chunk))))


def through(early: nn.Module, pixels: np.ndarray) -> Tensor:
    """uint8 [N, H, W, 3] → what the first half makes of it."""
    with torch.no_grad():
        images = normalised(torch.from_numpy(pixels)).contiguous(memory_format=torch.channels_last)
        return torch.cat([early(part) for part in images.split(CHUNK)])


def _view(path: Path, random: np.random.Generator, view: ViewSize) -> np.ndarray:
    return random_view(path, view.size, random, view.smallest_part)
