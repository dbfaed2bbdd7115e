"""Looks at the pictures of one organism with every model that has a say."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serving.index.keeper import IndexKeeper
from serving.library import Library, Neighbour
from serving.manifest import ClassifierManifest, EmbedderManifest
from serving.pipelines.classify import Classifier
from serving.pipelines.embed import Embedder
from serving.pipelines.identify import CROWD, FIFTH, NEIGHBOURS, Identification, Look, identify
from serving.pipelines.upload import Upload
from serving.timing import Timings


@dataclass(frozen=True)
class Looked:
    """What the models make of an organism, and who they are."""

    found: Identification
    vectors: NDArray[np.float32]  # [pictures, dim]
    embedder: EmbedderManifest
    classifier: ClassifierManifest | None  # if it had a say


class Identifier:
    """Embeds, searches, and asks the classifier where it knows a label of the collection."""

    def __init__(
        self,
        embedder: Embedder,
        classifier: Classifier | None,
        library: Library,
        indexes: IndexKeeper,
        workers: Executor,
    ) -> None:
        self._embedder, self._classifier, self._library, self._workers = embedder, classifier, library, workers
        self._indexes = indexes  # of this embedder's vectors, whatever the library works with by now

    async def __call__(
        self,
        collection: str,
        uploads: Sequence[Upload],
        labels: Mapping[str, int],
        timings: Timings,
        *,
        prior: Mapping[str, float] | None = None,
    ) -> Looked:
        """Pictures of one organism against a collection with these labels, each with its items."""
        loop = asyncio.get_running_loop()
        vectors = await self._embedder(uploads, timings)
        with timings.measure("search"):
            near = await asyncio.gather(
                *(loop.run_in_executor(self._workers, self._near, collection, vector) for vector in vectors)
            )
        classifier = self._classifier
        if classifier is not None and not set(classifier.manifest.labels) & set(labels):
            classifier = None
        posteriors: list[dict[str, float] | None] = [None] * len(uploads)
        if classifier is not None:
            names = classifier.manifest.labels
            with timings.measure("classify"):
                rows = await asyncio.gather(
                    *(loop.run_in_executor(self._workers, classifier.posterior, upload, timings) for upload in uploads)
                )
            posteriors = [dict(zip(names, row.tolist(), strict=True)) for row in rows]
        similarity = self._embedder.manifest.similarity
        found = identify(
            [Look(*each, posterior) for each, posterior in zip(near, posteriors, strict=True)],
            labels,
            prior=prior,
            reject_below=similarity.reject_below if similarity else None,
            familiar_from=similarity.familiar_from if similarity else None,
        )
        return Looked(found, vectors, self._embedder.manifest, classifier.manifest if classifier else None)

    def _near(self, collection: str, vector: NDArray[np.float32]) -> tuple[list[Neighbour], list[float]]:
        """The neighbours of a picture, and how crowded it is around the nearest of them."""
        indexes = self._indexes
        neighbours = self._library.search(collection, vector, NEIGHBOURS, indexes=indexes)
        crowd = [each.item.id for each in neighbours[:CROWD]]
        return neighbours, self._library.crowding(collection, crowd, FIFTH, indexes=indexes)
