"""`readleaf read`: reads pictures on this machine, without a running service."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from serving.client import SUFFIXES
from serving.errors import ReadleafError
from serving.images import ImageLimits
from serving.metrics import Metrics
from serving.pipelines.recognize import Reading, Recognizer
from serving.pipelines.upload import Upload
from serving.repository import load_repository, model_of
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings
from serving.timing import Timings

TOGETHER = 32  # crops that are read at once


@dataclass(frozen=True)
class Outcome:
    """What came of one file: a reading, or why there is none."""

    file: Path
    reading: Reading | None
    refusal: str = ""


def read_crops(paths: Sequence[Path], settings: Settings, write: Callable[[str], None], *, as_json: bool) -> int:
    """Read the word on each crop and write a line; folders are read whole. Returns how many files were refused."""
    files = list(_files(paths))
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


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        else:
            yield path


@contextmanager
def _recognizer(settings: Settings) -> Iterator[Recognizer]:
    model = model_of(load_repository(settings.models_dir), "recognizer")
    runtime = InProcessRuntime({"recognizer": model}, settings.device, Metrics())
    with ThreadPoolExecutor(settings.threads or os.cpu_count() or 1) as workers:
        yield Recognizer(runtime, model, ImageLimits.of(settings), workers)
