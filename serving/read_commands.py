"""`readleaf read`: reads pictures on this machine, without a running service."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from serving.answers import read_response
from serving.errors import OverlayUnusable, ReadleafError
from serving.images import ImageLimits
from serving.manifest import Manifest
from serving.on_this_machine import models_in_use, opened, picture_files
from serving.overlay import draw_overlay
from serving.pipelines.detect import Detector
from serving.pipelines.read import LEAST_SURE, PageText, Reader
from serving.pipelines.recognize import Reading, Recognizer
from serving.pipelines.upload import Upload
from serving.repository import StoredModel, model_of
from serving.settings import Settings
from serving.timing import Timings

Write = Callable[[str], None]
TOGETHER = 32  # crops that are read at once


@dataclass(frozen=True)
class Outcome:
    """What came of one file: a reading, or why there is none."""

    file: Path
    reading: Reading | None
    refusal: str = ""


def read_pictures(
    paths: Sequence[Path],
    settings: Settings,
    write: Write,
    *,
    as_json: bool,
    overlay: Path | None = None,
    least_sure: float = LEAST_SURE,
) -> int:
    """Read whole pictures and write their texts; folders are read whole. Returns how many files were refused.

    `overlay` is a PNG to write with the words' outlines, or a folder for many.
    """
    files = list(picture_files(paths))
    overlays = plan_overlays(overlay, files) if overlay is not None else {}
    refused = 0
    with _reader(settings) as (reader, manifests):
        progress = Console(stderr=True)
        for file in track(files, description="reading", console=progress, transient=True, disable=len(files) < 2):
            try:
                upload = Upload(str(file), file.read_bytes())
                page = asyncio.run(reader(upload, Timings(), least_sure=least_sure))
                if file in overlays:
                    draw_overlay(upload, ImageLimits.of(settings), page, overlays[file])
            except (ReadleafError, OSError) as error:
                refused += 1
                progress.print(f"{file}: {error}", markup=False, highlight=False, soft_wrap=True)
                continue
            if as_json:
                answer = read_response(page, manifests).model_dump(mode="json")
                write(json.dumps({"file": str(file), **answer}))
            else:
                write(_as_text(file, page, alone=len(files) == 1))
    return refused


def _as_text(file: Path, page: PageText, *, alone: bool) -> str:
    """The text; with several files, a heading over each."""
    return page.text if alone else f"== {file}\n{page.text}\n"


def plan_overlays(overlay: Path, files: Sequence[Path]) -> dict[Path, Path]:
    """Which PNG each picture is drawn into; raises OverlayUnusable before anything is read."""
    if len(files) == 1 and overlay.suffix:
        if overlay.suffix.lower() != ".png" or not overlay.parent.is_dir():
            raise OverlayUnusable(f"{overlay} cannot be written; name a .png in a folder that exists, or a folder")
        return {files[0]: overlay}
    try:
        overlay.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OverlayUnusable(f"{overlay} is no folder and cannot be made one ({error.strerror})") from error
    taken: dict[str, int] = {}  # two folders may hold files of one name
    planned = {}
    for file in files:
        number = taken[file.stem] = taken.get(file.stem, 0) + 1
        planned[file] = overlay / (f"{file.stem}.png" if number == 1 else f"{file.stem}-{number}.png")
    return planned


def read_crops(paths: Sequence[Path], settings: Settings, write: Write, *, as_json: bool) -> int:
    """Read the word on each crop and write a line; folders are read whole. Returns how many files were refused."""
    files = list(picture_files(paths))
    refused = 0
    with _recognizer(settings) as recognizer:
        chunks = [files[start : start + TOGETHER] for start in range(0, len(files), TOGETHER)]
        progress = Console(stderr=True)
        for chunk in track(chunks, description="reading", console=progress, transient=True, disable=len(chunks) < 2):
            for outcome in asyncio.run(_read(recognizer, chunk)):
                refused += outcome.reading is None
                if outcome.reading is not None:
                    write(_line(outcome.file, outcome.reading, as_json=as_json))
                else:
                    progress.print(f"{outcome.file}: {outcome.refusal}", markup=False, highlight=False, soft_wrap=True)
    return refused


async def _read(recognizer: Recognizer, files: Sequence[Path]) -> list[Outcome]:
    """All files together; if one cannot be read, one by one, so that the others are."""

    async def some(part: Sequence[Path]) -> list[Outcome]:
        uploads = [Upload(str(file), file.read_bytes()) for file in part]
        readings = await recognizer(uploads, Timings())
        return [Outcome(file, reading) for file, reading in zip(part, readings, strict=True)]

    try:
        return await some(files)
    except (ReadleafError, OSError) as error:
        if len(files) == 1:
            return [Outcome(files[0], None, str(error))]
        return [outcome for file in files for outcome in await _read(recognizer, [file])]


def _line(file: Path, reading: Reading, *, as_json: bool) -> str:
    if not as_json:
        return f"{file}\t{reading.text}\t{reading.confidence:.2f}"
    confidence = round(reading.confidence, 4)
    return json.dumps({"file": str(file), "text": reading.text, "confidence": confidence, "turned": reading.turned})


@contextmanager
def _recognizer(settings: Settings) -> Iterator[Recognizer]:
    models = _wanted(settings, "recognizer")
    with opened(models, settings) as (networks, workers):
        yield Recognizer(networks["recognizer"], models["recognizer"], ImageLimits.of(settings), workers)


@contextmanager
def _reader(settings: Settings) -> Iterator[tuple[Reader, list[Manifest]]]:
    limits = ImageLimits.of(settings)
    models = _wanted(settings, "detector", "recognizer")
    with opened(models, settings) as (networks, workers):
        recognizer = Recognizer(networks["recognizer"], models["recognizer"], limits, workers)
        reader = Reader(Detector(networks["detector"], models["detector"]), recognizer, limits, workers)
        yield reader, [model.manifest for model in models.values()]


def _wanted(settings: Settings, *names: str) -> dict[str, StoredModel]:
    known = models_in_use(settings)
    return {name: model_of(known, name) for name in names}
