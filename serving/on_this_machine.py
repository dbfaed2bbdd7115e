"""What `readleaf read` and `readleaf classify` share: files to look at, and models in this process, with no service."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from serving.client import SUFFIXES
from serving.metrics import Metrics
from serving.repository import StoredModel
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings


def picture_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Files as they are given, and all that may be pictures in folders."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        else:
            yield path


@contextmanager
def opened(models: Mapping[str, StoredModel], settings: Settings) -> Iterator[tuple[InProcessRuntime, Executor]]:
    """What runs these models, and the threads to run them on."""
    runtime = InProcessRuntime(models, settings.device, Metrics())
    with ThreadPoolExecutor(settings.threads or os.cpu_count() or 1) as workers:
        yield runtime, workers
