"""The detector, from weights to `models/detector/`."""

from pathlib import Path

import torch

from export.detector_card import detector_card
from export.graph import write_graph
from export.maps import Maps
from export.parity import check_maps
from export.reading import INPUT, OUTPUT
from export.repository import new_version, sha256_of
from serving.manifest import DetectorManifest, Thresholds
from training.evaluate_detector import DetectorFigures
from training.models.dense_detector import DenseDetector
from training.models.picture_backbone import MULTIPLE, STRIDE

MAX_BATCH = 4
LONGEST = 4096  # pixels of a side; the service's tiles are far smaller
LOSSES = {"smooth-L1": "smooth-L1", "ls_iou": "LS-IoU", "proxy": "smooth-L1", "kfiou": "KFIoU", "gwd": "GWD"}


def export_detector(
    model: DenseDetector, figures: DetectorFigures, repository: Path, *, comparison: str = "", notes: str = ""
) -> DetectorManifest:
    """Export, compare with torch, describe; an export that fails leaves the repository as it was."""
    wrapped = Maps(model).eval()
    with new_version(repository / "detector") as version:
        rows, columns = (torch.export.Dim(name, min=1, max=LONGEST // MULTIPLE) for name in ("rows", "columns"))
        frame = (2 * MULTIPLE, 3 * MULTIPLE, 3)
        write_graph(
            wrapped, frame, INPUT.name, (OUTPUT.name,), version.graph, {1: MULTIPLE * rows, 2: MULTIPLE * columns}
        )
        difference = check_maps(wrapped, version.graph, MULTIPLE, max_batch=MAX_BATCH)
        manifest = DetectorManifest(
            name="detector",
            version=version.number,
            title=_title(model),
            sha256=sha256_of(version.graph),
            inputs=[INPUT],
            outputs=[OUTPUT],
            max_batch=MAX_BATCH,
            stride=STRIDE,
            multiple=MULTIPLE,
            thresholds=Thresholds(heart=figures.heart, word=figures.word),
            metrics=figures.metrics,
            training_data=list(model.provenance.data),
            licence="Apache-2.0",
        )
        return version.describe(manifest, detector_card(manifest, difference, comparison, notes))


def _title(model: DenseDetector) -> str:
    losses = ", then ".join(LOSSES.get(loss, loss) for loss in model.provenance.losses)
    return f"Rotated word boxes on the backbone of PP-OCRv6 small, boxes trained with {losses or 'nothing'}"
