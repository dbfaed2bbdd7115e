"""Crops of words to texts."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from serving.images import ImageLimits, decode
from serving.language import read_language
from serving.manifest import LANGUAGE, Canvas, RecognizerManifest
from serving.pipelines.spelling import Speller, Spelling, surest
from serving.pipelines.upload import Upload
from serving.repository import StoredModel, manifest_as
from serving.runtime import Network
from serving.timing import Timings

Pixels = NDArray[np.uint8]
GREY = 127  # what a canvas is filled up with
CHUNK = 4  # canvases a run: small batches keep every core busy to the end of a request
QUARTERS = {0: 0, 1: 270, 3: 90}  # numpy's quarter turns, counter-clockwise, as degrees clockwise


@dataclass(frozen=True)
class Reading:
    """What stands on a crop."""

    spelling: Spelling
    turned: int = 0  # degrees clockwise

    @property
    def text(self) -> str:
        """The whole word."""
        return self.spelling.text

    @property
    def confidence(self) -> float:
        """How probably its letters and digits are right; of nothing, 0."""
        return self.spelling.confidence


@dataclass(frozen=True)
class _Job:
    """One crop in one turn, on a canvas."""

    crop: int
    quarter: int
    pixels: Pixels


class Recognizer:
    """Decodes crops, puts them on canvases of few widths, and reads those of one width together."""

    def __init__(self, network: Network, model: StoredModel, limits: ImageLimits, workers: Executor) -> None:
        """Raises a SetupError if the model is no recogniser, or its language is damaged."""
        self.manifest = manifest_as(model, RecognizerManifest)
        language = read_language(model.folder / LANGUAGE) if self.manifest.language else None
        self._speller = Speller(self.manifest.symbols, self.manifest.decoder, language, self.manifest.temperature)
        self._network = network
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
            *(loop.run_in_executor(self._workers, self._read, chunk, len(chunks) == 1, timings) for chunk in chunks)
        )
        found: dict[int, dict[int, Spelling]] = {}
        for chunk, spellings in zip(chunks, answers, strict=True):
            for job, spelling in zip(chunk, spellings, strict=True):
                found.setdefault(job.crop, {})[job.quarter] = spelling
        quarters = [surest(found[number], self.manifest.canvas.surer_by) for number in range(len(crops))]
        return [Reading(found[number][quarter], QUARTERS[quarter]) for number, quarter in enumerate(quarters)]

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

    def _read(self, jobs: Sequence[_Job], alone: bool, timings: Timings) -> list[Spelling]:
        pixels = np.stack([job.pixels for job in jobs])
        with timings.measure("infer"):
            outputs = self._network.run({self.manifest.inputs[0].name: pixels}, timings, alone=alone)
        with timings.measure("spell"):
            return list(map(self._speller, outputs["classes"].tolist(), outputs["probabilities"].tolist()))


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
