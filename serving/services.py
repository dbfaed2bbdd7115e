"""What one running app holds: built once when it starts, closed when it stops."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cv2
import structlog
from fastapi import Depends, Request

from serving.admission import Admission
from serving.images import ImageLimits
from serving.jobs import Jobs
from serving.keys import KeyRing
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.metrics import Metrics
from serving.pipelines.classify import Classifiers, open_classifiers
from serving.pipelines.detect import Detector
from serving.pipelines.embed import Embedder
from serving.pipelines.observe import Identifier
from serving.pipelines.read import Reader
from serving.pipelines.recognize import Recognizer
from serving.repository import StoredModel, load_repository, manifest_as, model_of
from serving.review.desk import ReviewDesk
from serving.runtime import Runtime
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings
from serving.starter import read_starter
from serving.store.database import FILE_NAME, open_database, prepare_data_folder
from serving.timing import Timings

log = structlog.get_logger()


@dataclass(frozen=True)
class Services:
    """The parts that routes call."""

    settings: Settings
    keys: KeyRing
    models: Mapping[str, StoredModel]
    runtime: Runtime
    admission: Admission
    embedder: Embedder
    recognizer: Recognizer
    reader: Reader
    classifiers: Classifiers
    library: Library
    identifier: Identifier
    desk: ReviewDesk
    jobs: Jobs


@contextmanager
def open_services(settings: Settings, metrics: Metrics) -> Iterator[Services]:
    """Check the folders, load and warm up every model; raises SetupError with one clear sentence."""
    prepare_data_folder(settings.data_dir)
    models = load_repository(settings.models_dir)
    manifest = manifest_as(model_of(models, "embedder"), EmbedderManifest)
    finds, reads = model_of(models, "detector"), model_of(models, "recognizer")
    cv2.setNumThreads(1)  # the workers below are the parallelism
    runtime = InProcessRuntime(models, settings.device, metrics)
    threads = settings.threads or os.cpu_count() or 1
    limits = ImageLimits.of(settings)
    with (
        ThreadPoolExecutor(threads, thread_name_prefix="worker") as workers,
        open_database(settings.data_dir / FILE_NAME) as database,
        closing(Library(database, settings.data_dir, model=manifest.sha256, dim=manifest.dim)) as library,
    ):
        if settings.starter:
            _offer_starter(library, models["embedder"].folder / "starter.npz", manifest)
        embedder = Embedder(runtime, manifest, limits, workers)
        recognizer = Recognizer(runtime, reads, limits, workers)
        classifiers = open_classifiers(models, runtime, limits, workers)
        jobs = Jobs(database, library, embedder.embed_one, settings.data_dir / "jobs", settings.max_image_bytes)
        with closing(jobs):
            yield Services(
                settings=settings,
                keys=KeyRing(database),
                models=models,
                runtime=runtime,
                admission=Admission(settings.max_running, settings.max_waiting, metrics),
                embedder=embedder,
                recognizer=recognizer,
                reader=Reader(Detector(runtime, finds), recognizer, limits, workers),
                classifiers=classifiers,
                library=library,
                identifier=Identifier(embedder, classifiers.default(), library, workers),
                desk=ReviewDesk(library),
                jobs=jobs,
            )


def _offer_starter(library: Library, file: Path, embedder: EmbedderManifest) -> None:
    """A new data folder gets the starter collection, where there is one; a service can do without."""
    if not file.exists():
        return
    try:
        starter = read_starter(file, embedder.sha256, embedder.dim)
    except ValueError as error:
        log.warning("no starter collection", reason=str(error))
        return
    if count := library.add_starter(starter):
        log.info("starter collection made", collection=starter.name, items=count)


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _timings(request: Request) -> Timings:
    timings: Timings = request.scope["timings"]
    return timings


CurrentServices = Annotated[Services, Depends(_services)]
CurrentTimings = Annotated[Timings, Depends(_timings)]
