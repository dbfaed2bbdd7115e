"""What `readleaf read` and `readleaf classify` share: files to look at, and models in this process, with no service."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from serving.client import SUFFIXES
from serving.metrics import Metrics
from serving.repository import StoredModel, load_repository
from serving.runtime import Network
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings
from serving.store.database import FILE_NAME
from serving.store.tables import ModelInUse

log = structlog.get_logger()


def picture_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Files as they are given, and all that may be pictures in folders."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        else:
            yield path


@contextmanager
def opened(models: Mapping[str, StoredModel], settings: Settings) -> Iterator[tuple[Mapping[str, Network], Executor]]:
    """These models, loaded, and the threads to run them on."""
    runtime = InProcessRuntime(settings.device, Metrics())
    networks = {name: runtime.load(model) for name, model in models.items()}
    with ThreadPoolExecutor(settings.threads or os.cpu_count() or 1) as workers:
        yield networks, workers


def models_in_use(settings: Settings) -> dict[str, StoredModel]:
    """The version of each model that a service on this data folder answers with."""
    return load_repository(settings.models_dir, versions_in_use(settings))


def versions_in_use(settings: Settings) -> dict[str, int]:
    """What the data folder remembers; nothing if no service ever ran on it."""
    file = settings.data_dir / FILE_NAME
    if not file.is_file():
        return {}
    # A service may work with it, another Readleaf may have made it, and it may be somebody else's: only look.
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return dict(database.execute(f"SELECT name, version FROM {ModelInUse.__tablename__}"))
    except sqlite3.Error as error:
        log.warning(
            "which versions are in use cannot be read, so the newest are taken", file=str(file), reason=str(error)
        )
        return {}
