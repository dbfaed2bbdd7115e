"""The models in use and the pipelines that ask them, as one value: a request keeps the one it began with."""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from serving.images import ImageLimits
from serving.index.keeper import IndexKeeper
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.pipelines.classify import Classifiers, open_classifiers
from serving.pipelines.detect import Detector
from serving.pipelines.embed import Embedder
from serving.pipelines.observe import Identifier
from serving.pipelines.read import Reader
from serving.pipelines.recognize import Recognizer
from serving.repository import StoredModel, manifest_as, model_of
from serving.runtime import Network

EMBEDDER, DETECTOR, RECOGNIZER = "embedder", "detector", "recognizer"


@dataclass(frozen=True)
class Answering:
    """What answers questions about pictures."""

    models: Mapping[str, StoredModel]
    networks: Mapping[str, Network]
    indexes: IndexKeeper  # of the embedder's vectors
    embedder: Embedder
    recognizer: Recognizer
    reader: Reader
    classifiers: Classifiers
    identifier: Identifier


@dataclass(frozen=True)
class Surroundings:
    """What pipelines need beside their models."""

    library: Library
    limits: ImageLimits
    workers: Executor


def answer_with(
    models: Mapping[str, StoredModel], networks: Mapping[str, Network], around: Surroundings, indexes: IndexKeeper
) -> Answering:
    """Pipelines for these models; raises a SetupError if one is missing or does something else."""
    manifest = manifest_as(model_of(models, EMBEDDER), EmbedderManifest)
    finds, reads = model_of(models, DETECTOR), model_of(models, RECOGNIZER)
    limits, workers = around.limits, around.workers
    embedder = Embedder(networks[EMBEDDER], manifest, limits, workers)
    recognizer = Recognizer(networks[RECOGNIZER], reads, limits, workers)
    classifiers = open_classifiers(models, networks, limits, workers)
    return Answering(
        models=models,
        networks=networks,
        indexes=indexes,
        embedder=embedder,
        recognizer=recognizer,
        reader=Reader(Detector(networks[DETECTOR], finds), recognizer, limits, workers),
        classifiers=classifiers,
        identifier=Identifier(embedder, classifiers.default(), around.library, indexes, workers),
    )
