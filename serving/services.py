"""What one running app holds: built once when it starts, closed when it stops."""

import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, TypeVar

import cv2
import structlog
from fastapi import Depends, Request

from serving.admission import Admission
from serving.answering import EMBEDDER, Answering, Surroundings
from serving.errors import VectorOutdated
from serving.images import ImageLimits
from serving.index.on_gpu import choose_copy
from serving.jobs import Jobs
from serving.keys import KeyRing
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.metrics import Metrics
from serving.repository import load_repository, manifest_as, model_of
from serving.review.desk import ReviewDesk
from serving.runtime import Runtime
from serving.runtime.choice import open_runtime
from serving.settings import Settings
from serving.store.data_folder import hold_data_folder
from serving.store.database import FILE_NAME, open_database
from serving.store.models_in_use import chosen_versions, note_versions
from serving.switchboard import Switchboard, starter_of
from serving.timing import Timings

log = structlog.get_logger()

Answer = TypeVar("Answer")
WAITING_THREADS = 16  # enough to keep a Triton's batches filled
SWITCHES = 2  # of the embedder that may happen while one request is worked on


@dataclass(frozen=True)
class Services:
    """The parts that routes call."""

    settings: Settings
    keys: KeyRing
    runtime: Runtime
    admission: Admission
    library: Library
    desk: ReviewDesk
    jobs: Jobs
    switchboard: Switchboard

    @cached_property
    def answering(self) -> Answering:
        """What answers a request, from its first question to the models to its end."""
        return self.switchboard.current

    def renewed(self) -> "Services":
        """For another request, or for the same once more: with the models that are in use then."""
        return replace(self)


@contextmanager
def open_services(settings: Settings, metrics: Metrics) -> Iterator[Services]:
    """Check the folders, load and check every model; raises SetupError with one clear sentence."""
    threads = settings.threads or (WAITING_THREADS if settings.runtime == "triton" else os.cpu_count() or 1)
    cv2.setNumThreads(1)  # the workers below are the parallelism
    with (
        hold_data_folder(settings.data_dir, "readleaf serve"),
        ThreadPoolExecutor(threads, thread_name_prefix="worker") as workers,
        open_database(settings.data_dir / FILE_NAME) as database,
        closing(open_runtime(settings, metrics)) as runtime,
    ):
        with database.reading() as session:
            chosen = chosen_versions(session)
        models = load_repository(settings.models_dir, chosen)
        manifest = manifest_as(model_of(models, EMBEDDER), EmbedderManifest)
        copy = choose_copy(settings.device)
        with closing(
            Library(database, settings.data_dir, model=manifest.sha256, dim=manifest.dim, copy=copy)
        ) as library:
            if settings.starter and (starter := starter_of(models[EMBEDDER])) is not None:
                count = library.add_starter(starter)
                if count:
                    log.info("starter collection made", collection=starter.name, items=count)
            around = Surroundings(library, ImageLimits.of(settings), workers)
            switchboard = Switchboard(models, runtime, around, settings.models_dir)
            with library.write() as session:
                note_versions(session, {name: model.manifest.version for name, model in models.items()})
            with closing(Jobs(database, library, switchboard, settings.data_dir / "jobs", around.limits)) as jobs:
                jobs.renew_vectors()
                yield Services(
                    settings=settings,
                    keys=KeyRing(database),
                    runtime=runtime,
                    admission=Admission(settings.max_running, settings.max_waiting, metrics),
                    library=library,
                    desk=ReviewDesk(library),
                    jobs=jobs,
                    switchboard=switchboard,
                )


async def with_current_vectors(services: Services, work: Callable[[Services], Awaitable[Answer]]) -> Answer:
    """Do work that keeps vectors; once more with the embedder in use if it was switched meanwhile."""
    for _ in range(SWITCHES):
        with suppress(VectorOutdated):
            return await work(services)
        services = services.renewed()
    return await work(services)


# Both are coroutines, though they wait for nothing: a plain function would be run in another thread.
async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services.renewed()


async def _timings(request: Request) -> Timings:
    timings: Timings = request.scope["timings"]
    return timings


CurrentServices = Annotated[Services, Depends(_services)]
CurrentTimings = Annotated[Timings, Depends(_timings)]
