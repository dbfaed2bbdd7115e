"""Crops of words to texts."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from serving.images import ImageLimits, decode
from serving.manifest import Canvas, RecognizerManifest
from serving.pipelines.upload import Upload
from serving.runtime import Runtime
from serving.timing import Timings

Pixels = NDArray[np.uint8]
GREY = 127  # what a canvas is filled up with
CHUNK = 4  # canvases a run: small batches keep every core busy to the end of a request
QUARTERS = {0: 0, 1: 270, 3: 90}  # numpy's quarter turns, counter-clockwise, as degrees clockwise


@dataclass(frozen=True)
class Character:
    """One character, how sure it is, and what else it may be."""

    text: str
    confidence: float
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Reading:
    """What stands on a crop."""

    characters: tuple[Character, ...]
    turned: int = 0  # degrees clockwise

    @property
    def text(self) -> str:
        """The whole word."""
        return "".join(character.text for character in self.characters)

    @property
    def confidence(self) -> float:
        """How probably all of it is right; of nothing, 0."""
        return math.prod(character.confidence for character in self.characters) if self.characters else 0.0

    @property
    def sureness(self) -> float:
        """The mean over characters, which a long word does not lower."""
        return sum(character.confidence for character in self.characters) / max(1, len(self.characters))


@dataclass(frozen=True)
class _Job:
    """One crop in one turn, on a canvas."""

    crop: int
    quarter: int
    pixels: Pixels


class Recognizer:
    """Decodes crops, puts them on canvases of few widths, and reads those of one width together."""

    def __init__(self, runtime: Runtime, manifest: RecognizerManifest, limits: ImageLimits, workers: Executor) -> None:
        self.manifest = manifest
        self._runtime = runtime
        self._limits = limits
        self._workers = workers

    async def __call__(self, uploads: Sequence[Upload], timings: Timings) -> list[Reading]:
        """Read all crops, in order. The first bad one is the one reported."""
        loop = asyncio.get_running_loop()
        prepared = await asyncio.gather(
            *(loop.run_in_executor(self._workers, self._decode, upload, timings) for upload in uploads),
            return_exceptions=True,
        )
        crops: list[Pixels] = []
        for part in prepared:
            if isinstance(part, BaseException):
                raise part
            crops.append(part)
        return await self.read(crops, timings)

    async def read(self, crops: Sequence[Pixels], timings: Timings) -> list[Reading]:
        """Read crops that are pixels already, [H, W, 3] in RGB, in order."""
        loop = asyncio.get_running_loop()
        chunks = list(self._chunks(crops))
        answers = await asyncio.gather(
            *(loop.run_in_executor(self._workers, self._read, chunk, timings) for chunk in chunks)
        )
        found: dict[int, dict[int, Reading]] = {}
        for chunk, readings in zip(chunks, answers, strict=True):
            for job, reading in zip(chunk, readings, strict=True):
                found.setdefault(job.crop, {})[job.quarter] = reading
        return [self._surest(found[number]) for number in range(len(crops))]

    def _decode(self, upload: Upload, timings: Timings) -> Pixels:
        with timings.measure("decode"):
            smallest = 2 * self.manifest.canvas.height  # a little finer than the canvas, to be scaled well
            return np.asarray(decode(upload.data, self._limits, name=upload.name, min_side=smallest))

    def _chunks(self, crops: Sequence[Pixels]) -> Iterator[list[_Job]]:
        """Canvases of one width, a few at a time; tall crops come in three turns."""
        by_width: dict[int, list[_Job]] = {}
        for number, crop in enumerate(crops):
            for quarter in _quarters(crop, self.manifest.canvas):
                pixels = place(np.rot90(crop, quarter), self.manifest.canvas)
                by_width.setdefault(pixels.shape[1], []).append(_Job(number, quarter, pixels))
        for jobs in by_width.values():
            for start in range(0, len(jobs), CHUNK):
                yield jobs[start : start + CHUNK]

    def _read(self, jobs: Sequence[_Job], timings: Timings) -> list[Reading]:
        pixels = np.stack([job.pixels for job in jobs])
        with timings.measure("infer"):
            outputs = self._runtime.run(self.manifest.name, {self.manifest.inputs[0].name: pixels})
        rows = zip(outputs["classes"].tolist(), outputs["probabilities"].tolist(), jobs, strict=True)
        return [Reading(self._characters(*row), QUARTERS[job.quarter]) for *row, job in rows]

    def _characters(self, classes: list[list[int]], probabilities: list[list[float]]) -> tuple[Character, ...]:
        symbols = (*self.manifest.symbols, "")  # the last class is no character
        return tuple(
            Character(
                symbols[best],
                confidence,
                tuple((symbols[number], value) for number, value in zip(others, values, strict=True)),
            )
            for (best, *others), (confidence, *values) in zip(classes, probabilities, strict=True)
            if best >= 0
        )

    def _surest(self, readings: dict[int, Reading]) -> Reading:
        """The crop as it is, unless it is read clearly surer on a side."""
        upright = readings[0]
        best = max(readings.values(), key=lambda reading: reading.sureness)
        return best if best.sureness > upright.sureness + self.manifest.canvas.surer_by else upright


def place(crop: NDArray[np.uint8], canvas: Canvas) -> Pixels:
    """A crop [H, W, 3] on its canvas: [canvas height, width, 3]."""
    height, width = crop.shape[:2]
    wanted = max(1, round(canvas.height * width / height))
    steps = -(-max(0, wanted - canvas.width) // canvas.step)
    room = min(canvas.width + steps * canvas.step, canvas.longest)
    taken = min(room, wanted)
    shrinks = height > canvas.height or width > taken
    scaled = cv2.resize(crop, (taken, canvas.height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    filled = np.full((canvas.height, room, 3), GREY, dtype=np.uint8)
    filled[:, :taken] = scaled
    return filled


def _quarters(crop: Pixels, canvas: Canvas) -> tuple[int, ...]:
    height, width = crop.shape[:2]
    return (0, 1, 3) if height > canvas.tall * width else (0,)
