"""A classifier, from weights to its folder in `models/`."""

from pathlib import Path

from export.classifier_card import classifier_card
from export.embedder import BACKBONES
from export.evaluate_classifier import ClassifierFigures
from export.evidence import Probabilities
from export.graph import write_graph
from export.parity import check_parity
from export.repository import new_version, sha256_of
from export.wrapper import FromPixels
from serving.manifest import ClassifierManifest, Preprocessing, Tensor
from training.classifier_methods import METHODS
from training.models.classifier import Classifier

NAME = "classifier"  # of the one that ships
MAX_BATCH = 64
TOLERANCE = 1e-4
STRIDE = 32  # pixels of a place of the heat map


def export_classifier(
    model: Classifier,
    figures: ClassifierFigures,
    repository: Path,
    name: str = NAME,
    *,
    comparison: str = "",
    notes: str = "",
) -> ClassifierManifest:
    """Export, compare with torch, describe; an export that fails leaves the repository as it was."""
    size, count = figures.size, len(model.classes)
    wrapped = FromPixels(Probabilities(model, figures.temperature)).eval()
    places = -(-size // STRIDE)
    with new_version(repository / name) as version:
        write_graph(wrapped, (size, size, 3), "images", ("probabilities", "evidence"), version.graph)
        difference = check_parity(wrapped, version.graph, (size, size, 3), max_batch=MAX_BATCH, tolerance=TOLERANCE)
        manifest = ClassifierManifest(
            name=name,
            version=version.number,
            title=_title(model),
            sha256=sha256_of(version.graph),
            inputs=[Tensor(name="images", dtype="uint8", shape=[-1, size, size, 3])],
            outputs=[
                Tensor(name="probabilities", dtype="float32", shape=[-1, count]),
                Tensor(name="evidence", dtype="float32", shape=[-1, places, places, count]),
            ],
            max_batch=MAX_BATCH,
            preprocessing=Preprocessing(width=size, height=size),
            labels=list(model.classes),
            prior=figures.prior,
            unsure_below=figures.unsure_below,
            metrics=figures.metrics,
            training_data=list(model.provenance.data),
            licence="Apache-2.0",
        )
        return version.describe(manifest, classifier_card(manifest, difference, figures, comparison, notes))


def _title(model: Classifier) -> str:
    learned = ", then ".join(METHODS[loss].title if loss in METHODS else loss for loss in model.provenance.losses)
    backbone = BACKBONES.get(model.shape.backbone, model.shape.backbone)
    return f"{len(model.classes)} classes, calibrated, on {backbone} trained with {learned}"
