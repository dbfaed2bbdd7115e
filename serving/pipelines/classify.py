"""Pictures to calibrated probabilities, and where in a picture the best answer comes from."""

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serving.errors import ModelMissing
from serving.images import ImageLimits, Region, decode, describe, fit, middle
from serving.manifest import ClassifierManifest
from serving.pipelines.priors import reweigh
from serving.pipelines.upload import Upload
from serving.repository import StoredModel
from serving.runtime import Network
from serving.timing import Timings

DEFAULT = "classifier"  # the model that answers where none is named


@dataclass(frozen=True)
class Heat:
    """What speaks for a label, and where: 0…1 on a grid over a part of the picture."""

    label: str
    region: Region
    values: NDArray[np.float32]  # [h, w]


@dataclass(frozen=True)
class Classified:
    """What a picture shows, as far as one can tell."""

    ranking: list[tuple[str, float]]  # most probable first, all labels
    unsure: bool
    width: int
    height: int
    heat: Heat | None = None


class Classifier:
    """Decodes and classifies on the shared worker threads."""

    def __init__(self, network: Network, manifest: ClassifierManifest, limits: ImageLimits, workers: Executor) -> None:
        self.manifest = manifest
        self._network = network
        self._limits = limits
        self._workers = workers

    async def __call__(
        self, upload: Upload, timings: Timings, *, prior: Mapping[str, float] | None = None, explain: bool = False
    ) -> Classified:
        """One picture; `prior` are weights of labels, `explain` adds the heat map of the best."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, self.classify, upload, timings, prior, explain)

    def classify(
        self, upload: Upload, timings: Timings, prior: Mapping[str, float] | None = None, explain: bool = False
    ) -> Classified:
        """The same in the calling thread."""
        probabilities, evidence = self._run(upload, timings, alone=True)
        expected = reweigh(probabilities, self._weights(prior or {}))
        order = np.argsort(-expected, kind="stable")
        ranking = [(self.manifest.labels[place], float(expected[place])) for place in order]
        _, width, height = describe(upload.data)
        heat = None
        if explain:
            shape = self.manifest.preprocessing
            region = middle((width, height), shape.width, shape.height)
            heat = Heat(ranking[0][0], region, _heat(evidence[..., order[0]]))
        return Classified(ranking, ranking[0][1] < self.manifest.unsure_below, width, height, heat)

    def posterior(self, upload: Upload, timings: Timings) -> NDArray[np.float64]:
        """Probabilities as the model gives them, in the calling thread: [K]."""
        return self._run(upload, timings)[0]

    def _weights(self, prior: Mapping[str, float]) -> NDArray[np.float64]:
        """Weights of all labels [K], where some are given; the others keep the share they had in training."""
        return np.array([prior.get(label, 1.0) for label in self.manifest.labels])

    def _run(
        self, upload: Upload, timings: Timings, alone: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Probabilities [K] and evidence [h, w, K]."""
        shape = self.manifest.preprocessing
        with timings.measure("decode"):
            picture = decode(upload.data, self._limits, name=upload.name, min_side=max(shape.width, shape.height))
            pixels = fit(picture, shape.width, shape.height)[None]
        with timings.measure("infer"):
            outputs = self._network.run({self.manifest.inputs[0].name: pixels}, timings, alone=alone)
        return outputs["probabilities"][0].astype(np.float64), outputs["evidence"][0]


def _heat(evidence: NDArray[np.float32]) -> NDArray[np.float32]:
    """What speaks for a label as shares of the strongest place; what speaks against it is nothing."""
    positive = np.maximum(evidence, 0)
    return np.asarray(positive / max(float(positive.max()), 1e-12), dtype=np.float32)


class Classifiers:
    """All models that classify, by name."""

    def __init__(self, known: Mapping[str, Classifier]) -> None:
        self._known = dict(known)

    def named(self, name: str | None) -> Classifier:
        """One of them; without a name the one that ships, or the only one. Raises ModelMissing."""
        return self._known[name_of(self._known, name)]

    def default(self) -> Classifier | None:
        """The one that ships, if it is there."""
        return self._known.get(DEFAULT)


def name_of(known: Iterable[str], name: str | None) -> str:
    """Which of the known models is meant; raises ModelMissing."""
    names = list(known)
    if not names:
        raise ModelMissing("there is no model that classifies; `readleaf train classify` makes one")
    if name is None and (DEFAULT in names or len(names) == 1):
        return DEFAULT if DEFAULT in names else names[0]
    if name is None:
        raise ModelMissing(f"several models classify; name one of {', '.join(names)}")
    if name not in names:
        raise ModelMissing(f"no model named {name!r:.60} classifies; there are {', '.join(names)}")
    return name


def open_classifiers(
    models: Mapping[str, StoredModel], networks: Mapping[str, Network], limits: ImageLimits, workers: Executor
) -> Classifiers:
    """Every model of the repository that classifies."""
    return Classifiers(
        {
            name: Classifier(networks[name], model.manifest, limits, workers)
            for name, model in models.items()
            if isinstance(model.manifest, ClassifierManifest)
        }
    )
