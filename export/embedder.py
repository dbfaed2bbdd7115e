"""The embedder, from weights to `models/embedder/`."""

from pathlib import Path

from export.card import embedder_card
from export.graph import write_graph
from export.parity import check_parity
from export.repository import new_version, sha256_of
from export.wrapper import FromPixels
from serving.manifest import EmbedderManifest, Preprocessing, Similarity, Tensor
from training.evaluate_embedder import EmbedderFigures
from training.models.embedder import Embedder

BACKBONES = {"lite0": "EfficientNet-Lite0", "lite2": "EfficientNet-Lite2"}
LOSSES = {
    "recall_at_k": "RS@k",
    "recall_at_k_mixed": "RS@k + SiMix",
    "smooth_ap": "Smooth-AP",
    "cross_entropy": "cross-entropy",
}
MAX_BATCH = 64
TOLERANCE = 1e-5


def export_embedder(
    model: Embedder, size: int, figures: EmbedderFigures, repository: Path, *, comparison: str = "", notes: str = ""
) -> EmbedderManifest:
    """Export, compare with torch, describe; an export that fails leaves the repository as it was.

    `comparison` is a table of what other losses reach, `notes` what people found who looked at it: both for the card.
    """
    frame = (size, size, 3)
    wrapped = FromPixels(model).eval()
    with new_version(repository / "embedder") as version:
        write_graph(wrapped, frame, "images", ("embeddings",), version.graph)
        difference = check_parity(wrapped, version.graph, frame, max_batch=MAX_BATCH, tolerance=TOLERANCE)
        manifest = EmbedderManifest(
            name="embedder",
            version=version.number,
            title=_title(model),
            sha256=sha256_of(version.graph),
            inputs=[Tensor(name="images", dtype="uint8", shape=[-1, *frame])],
            outputs=[Tensor(name="embeddings", dtype="float32", shape=[-1, model.dim])],
            max_batch=MAX_BATCH,
            preprocessing=Preprocessing(width=size, height=size),
            dim=model.dim,
            similarity=Similarity(
                measured_on=figures.measured_on,
                different=figures.different,
                same=figures.same,
                reject_below=figures.reject_below,
            ),
            metrics=figures.metrics,
            training_data=list(model.provenance.data),
            licence="Apache-2.0",
        )
        return version.describe(manifest, embedder_card(manifest, difference, comparison, notes))


def _title(model: Embedder) -> str:
    shape = model.shape
    losses = ", then ".join(LOSSES.get(loss, loss) for loss in model.provenance.losses)
    learned = f"trained with {losses}" if losses else "ImageNet features"
    return f"{BACKBONES.get(shape.backbone, shape.backbone)}, {shape.pooling} pooling, {learned}"
