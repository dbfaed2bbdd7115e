"""Pictures to unit vectors."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from serving.images import ImageLimits, cut, decode, fit
from serving.manifest import EmbedderManifest
from serving.pipelines.upload import Upload
from serving.runtime import Network
from serving.timing import Timings

# Small batches fit the cores' caches and keep every core busy to the end of a request.
CHUNK = 2


class Embedder:
    """Decodes and embeds in small batches on the shared worker threads."""

    def __init__(self, network: Network, manifest: EmbedderManifest, limits: ImageLimits, workers: Executor) -> None:
        self.manifest = manifest
        self._network = network
        self._limits = limits
        self._workers = workers

    async def __call__(self, uploads: Sequence[Upload], timings: Timings) -> NDArray[np.float32]:
        """Embed all uploads, in order; returns [images, dim]. The first bad picture is the one reported."""
        loop = asyncio.get_running_loop()
        chunks = [uploads[start : start + CHUNK] for start in range(0, len(uploads), CHUNK)]
        parts = await asyncio.gather(
            *(loop.run_in_executor(self._workers, self._embed, chunk, timings, len(chunks) == 1) for chunk in chunks),
            return_exceptions=True,
        )
        rows: list[NDArray[np.float32]] = []
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            rows.append(part)
        return np.concatenate(rows)

    def embed_one(self, upload: Upload) -> NDArray[np.float32]:
        """Embed one picture in the calling thread; returns [dim]."""
        vector: NDArray[np.float32] = self._embed([upload], Timings())[0]
        return vector

    def _embed(self, uploads: Sequence[Upload], timings: Timings, alone: bool = False) -> NDArray[np.float32]:
        with timings.measure("decode"):
            pixels = np.stack([self._pixels(upload) for upload in uploads])  # [N, height, width, 3]
        with timings.measure("infer"):
            outputs = self._network.run({self.manifest.inputs[0].name: pixels}, timings, alone=alone)
        return outputs[self.manifest.outputs[0].name]

    def _pixels(self, upload: Upload) -> NDArray[np.uint8]:
        width, height = self.manifest.preprocessing.width, self.manifest.preprocessing.height
        if upload.region is None:
            picture = decode(upload.data, self._limits, name=upload.name, min_side=max(width, height))
        else:  # in full: a small part of a shrunken picture would have no detail left
            picture = cut(decode(upload.data, self._limits, name=upload.name), upload.region, name=upload.name)
        return fit(picture, width, height)
