"""What the service will read with a detector before it is exported: for `readleaf evaluate` and for training."""

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from export.maps import Maps
from serving.images import ImageLimits
from serving.manifest import DetectorManifest, Tensor, Thresholds
from serving.metrics import Metrics
from serving.pipelines.detect import Detector
from serving.pipelines.read import Reader
from serving.pipelines.recognize import Recognizer
from serving.pipelines.word_boxes import gather
from serving.repository import StoredModel, load_repository, model_of
from serving.runtime.in_process import InProcessRuntime
from serving.timing import Timings
from training.evaluate_detector import ReadsPictures, ReadWords
from training.finding import Floats
from training.models.dense_detector import DenseDetector
from training.models.picture_backbone import MULTIPLE, STRIDE

INPUT = Tensor(name="images", dtype="uint8", shape=[-1, -1, -1, 3])
WHILE_TRAINING = Thresholds(heart=0.5, word=0.2)
OUTPUT = Tensor(name="maps", dtype="float32", shape=[-1, -1, -1, 7])


def gather_as_served(thresholds: Thresholds, maps: Floats) -> tuple[Floats, Floats]:
    """Boxes and scores of one picture's maps, as the service finds them."""
    words = gather(maps, stride=STRIDE, heart=thresholds.heart, word=thresholds.word)
    return words.boxes, words.scores


class _BeforeExport:
    """A detector that is still a torch network."""

    place = "torch"

    def __init__(self, detector: DenseDetector) -> None:
        self._maps = Maps(detector).eval()

    def run(
        self, inputs: Mapping[str, NDArray[np.uint8]], _timings: Timings | None = None, *, alone: bool = False
    ) -> dict[str, Floats]:
        with torch.inference_mode():
            return {OUTPUT.name: self._maps(torch.from_numpy(inputs[INPUT.name])).numpy()}

    def trouble(self) -> str | None:
        return None


@contextmanager
def reads_as_served(detector: DenseDetector, thresholds: Thresholds, models: Path) -> Iterator[ReadsPictures]:
    """The service's pipeline with this detector, and the recogniser of a model repository."""
    words = model_of(load_repository(models), "recognizer")
    recognizer = InProcessRuntime("cpu", Metrics()).load(words)
    unlimited = ImageLimits(max_bytes=1 << 40, max_pixels=1 << 40)
    with ThreadPoolExecutor(torch.get_num_threads()) as workers:
        finds = Detector(_BeforeExport(detector), StoredModel(_described(thresholds), models / "detector"))
        reader = Reader(finds, Recognizer(recognizer, words, unlimited, workers), unlimited, workers)

        def read(picture: NDArray[np.uint8]) -> ReadWords:
            page = asyncio.run(reader.read(picture, Timings()))
            quads = np.stack([word.polygon for word in page.words]) if page.words else np.zeros((0, 4, 2))
            scores = np.array([word.detection_confidence for word in page.words])
            return ReadWords(quads, [word.text for word in page.words], scores)

        yield read


def _described(thresholds: Thresholds) -> DetectorManifest:
    return DetectorManifest(
        name="detector",
        version=1,
        title="before its export",
        sha256="0" * 64,
        inputs=[INPUT],
        outputs=[OUTPUT],
        max_batch=1,
        metrics={},
        training_data=[],
        licence="none yet",
        stride=STRIDE,
        multiple=MULTIPLE,
        thresholds=thresholds,
    )
