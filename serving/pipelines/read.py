"""Whole pictures to text: find words, cut each out upright, read them, and put them in reading order."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from serving.images import ImageLimits, decode
from serving.pipelines.detect import Detector
from serving.pipelines.layout import Line, arrange, polygon_of
from serving.pipelines.recognize import Reading, Recognizer
from serving.pipelines.upload import Upload
from serving.pipelines.word_boxes import Words
from serving.timing import Timings

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float64]
MARGIN = 0.16  # of a word's shorter side, left around it when it is cut out
FINEST = 48  # pixels: the least shorter side of what is cut out, so that small words are scaled once only
LONGEST = 4096  # pixels of what is cut out
LEAST_SURE = 0.4  # words less sure than this are mostly no words, or nobody could read them; callers may ask for them
DOUBTFUL = 0.8  # a word less sure than this is also read upside down: many are read nearly as well on their head
CLEARLY = 0.15  # how much surer that must be


@dataclass(frozen=True)
class Word:
    """A word in a picture."""

    text: str
    confidence: float  # that it is read right
    detection_confidence: float  # that it is a word
    polygon: Floats  # [4, 2] pixels, from its own top left, clockwise in reading direction

    @property
    def angle(self) -> float:
        """Its direction of reading, in degrees clockwise from the horizontal, −180…180."""
        along = self.polygon[1] - self.polygon[0] + self.polygon[2] - self.polygon[3]
        return float(np.degrees(np.arctan2(along[1], along[0])))


@dataclass(frozen=True)
class TextLine:
    """Words in a row."""

    text: str
    polygon: Floats  # [4, 2]
    words: tuple[int, ...]
    block: int


@dataclass(frozen=True)
class PageText:
    """All that stands in a picture."""

    width: int
    height: int
    words: list[Word]
    lines: list[TextLine]  # in reading order

    @property
    def text(self) -> str:
        """Line by line; an empty line between blocks."""
        parts: list[str] = []
        for number, line in enumerate(self.lines):
            if number and line.block != self.lines[number - 1].block:
                parts.append("")
            parts.append(line.text)
        return "\n".join(parts)


class Reader:
    """Reads one picture at a time."""

    def __init__(self, detector: Detector, recognizer: Recognizer, limits: ImageLimits, workers: Executor) -> None:
        self.detector, self.recognizer = detector, recognizer
        self._limits, self._workers = limits, workers

    async def __call__(self, upload: Upload, timings: Timings, *, least_sure: float = LEAST_SURE) -> PageText:
        """All words of a picture that are read this surely, in reading order."""
        loop = asyncio.get_running_loop()
        picture = await loop.run_in_executor(self._workers, self._decode, upload, timings)
        return await self.read(picture, timings, least_sure=least_sure)

    async def read(self, picture: Pixels, timings: Timings, *, least_sure: float = LEAST_SURE) -> PageText:
        """The same for pixels [H, W, 3]."""
        loop = asyncio.get_running_loop()
        found, crops = await loop.run_in_executor(self._workers, self._find, picture, timings)
        readings = await self._read_either_way(crops, timings)
        words = [
            Word(reading.text, reading.confidence, float(score), turned_corners(box, reading.turned))
            for reading, score, box in zip(readings, found.scores, found.boxes, strict=True)
            if reading.text and reading.confidence >= least_sure
        ]
        lines = await loop.run_in_executor(self._workers, _lines, words, timings)
        return PageText(picture.shape[1], picture.shape[0], words, lines)

    def _decode(self, upload: Upload, timings: Timings) -> Pixels:
        with timings.measure("decode"):
            return np.asarray(decode(upload.data, self._limits, name=upload.name))

    def _find(self, picture: Pixels, timings: Timings) -> tuple[Words, list[Pixels]]:
        with timings.measure("detect"):
            found = self.detector(picture, timings)
        with timings.measure("cut"):
            return found, [cut_out(picture, box) for box in found.boxes]

    async def _read_either_way(self, crops: Sequence[Pixels], timings: Timings) -> list[Reading]:
        """Read each crop; doubtful ones upside down, too, and what is clearly surer is taken."""
        readings = await self.recognizer.read(crops, timings)
        doubtful = [number for number, reading in enumerate(readings) if reading.confidence < DOUBTFUL]
        again = await self.recognizer.read([np.rot90(crops[number], 2) for number in doubtful], timings)
        for number, reading in zip(doubtful, again, strict=True):
            if reading.confidence > readings[number].confidence + CLEARLY:
                readings[number] = Reading(reading.spelling, (reading.turned + 180) % 360)
        return readings


def cut_out(picture: Pixels, box: NDArray[np.floating]) -> Pixels:
    """A word upright, with a little around it: box (cx, cy, w, h, cos, sin) → [height, width, 3]."""
    cx, cy, width, height, cosine, sine = (float(value) for value in box)
    margin = 2 * MARGIN * min(width, height)
    width, height = width + margin, height + margin
    scale = max(1.0, min(FINEST / max(min(width, height), 1.0), LONGEST / max(width, height)))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    # From pixels of the crop to pixels of the picture.
    along, down = np.array([cosine, sine]) / scale, np.array([-sine, cosine]) / scale
    # Boxes count from the corner of a pixel, OpenCV from its middle.
    start = np.array([cx - 0.5, cy - 0.5]) - along * (size[0] - 1) / 2 - down * (size[1] - 1) / 2
    matrix = np.stack([along, down, start], axis=1)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(picture, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), dtype=np.uint8
    )


def corners(box: NDArray[np.floating]) -> Floats:
    """The corners of a box, from its top left, clockwise: [4, 2]."""
    cx, cy, width, height, cosine, sine = (float(value) for value in box)
    along, down = np.array([cosine, sine]) * width / 2, np.array([-sine, cosine]) * height / 2
    centre = np.array([cx, cy])
    return np.stack([centre - along - down, centre + along - down, centre + along + down, centre - along + down])


def turned_corners(box: NDArray[np.floating], degrees: int) -> Floats:
    """The corners from the text's own top left, when a crop had to be turned clockwise by `degrees` to be read."""
    return np.roll(corners(box), degrees // 90, axis=0)


def _lines(words: Sequence[Word], timings: Timings) -> list[TextLine]:
    if not words:
        return []
    quads = np.stack([word.polygon for word in words])
    with timings.measure("layout"):
        lines: list[Line] = arrange(quads, [word.text for word in words])
    return [
        TextLine(
            " ".join(words[number].text for number in line.words),
            polygon_of(quads[list(line.words)]),
            line.words,
            line.block,
        )
        for line in lines
    ]
