"""The recogniser, from weights to `models/recognizer/`."""

import shutil
from pathlib import Path

import torch

from export.card import recognizer_card
from export.graph import write_graph
from export.parity import check_words
from export.repository import new_version, sha256_of
from export.words import ANSWERS, Words
from serving.manifest import LANGUAGE, Canvas, RecognizerManifest, Tensor
from training.data.canvas import TALL
from training.errors import DataError
from training.evaluate_recognizer import RecognizerFigures
from training.models.recognizer import Recognizer
from training.reading import CLEARLY

MAX_BATCH = 64
COLUMN = 8  # pixels of a canvas' width that become one column
LISTS = "lists of English words: Debian's wamerican, for the language"
LOSSES = {
    "ctc": "CTC",
    "attention": "cross-entropy",
    "ls_ed": "LS-ED",
    "feds": "FEDS",
    "proxy": "its proxy",
    "mixed": "a mixture with its start",
}


def export_recognizer(
    model: Recognizer,
    figures: RecognizerFigures,
    repository: Path,
    *,
    language: Path | None = None,
    comparison: str = "",
    notes: str = "",
) -> RecognizerManifest:
    """Export, compare with torch, describe; an export that fails leaves the repository as it was."""
    if figures.language != (sha256_of(language) if language else ""):
        wanted = f"with --language {language}" if language else "without a language"
        raise DataError(f"the figures are of another language; run `readleaf evaluate` {wanted}")
    canvas = model.shape.canvas
    if not canvas.step or canvas.channels != 3:
        raise DataError("what is served needs a canvas of 3 channels that grows in steps; this one is for comparison")
    wrapped = Words(model).eval()
    with new_version(repository / "recognizer") as version:
        columns = torch.export.Dim("columns", min=2, max=canvas.longest // COLUMN)
        frame = (canvas.height, canvas.width, canvas.channels)
        write_graph(wrapped, frame, "images", ("classes", "probabilities"), version.graph, {2: COLUMN * columns})
        widths = range(canvas.width, canvas.longest + 1, canvas.step)
        difference = check_words(wrapped, version.graph, canvas.height, widths, max_batch=MAX_BATCH)
        manifest = RecognizerManifest(
            name="recognizer",
            version=version.number,
            title=_title(model),
            sha256=sha256_of(version.graph),
            inputs=[Tensor(name="images", dtype="uint8", shape=[-1, canvas.height, -1, 3])],
            outputs=[
                Tensor(name="classes", dtype="int64", shape=[-1, -1, ANSWERS]),
                Tensor(name="probabilities", dtype="float32", shape=[-1, -1, ANSWERS]),
            ],
            max_batch=MAX_BATCH,
            canvas=Canvas(
                height=canvas.height,
                width=canvas.width,
                step=canvas.step,
                longest=canvas.longest,
                tall=TALL,
                surer_by=CLEARLY,
            ),
            symbols=model.shape.symbols,
            decoder=model.shape.prediction,
            temperature=figures.temperature,
            language=figures.language or None,
            metrics=figures.metrics,
            training_data=[*model.provenance.data, *([LISTS] if language else [])],
            licence="Apache-2.0",
        )
        if language:
            shutil.copyfile(language, version.folder / LANGUAGE)
        return version.describe(manifest, recognizer_card(manifest, difference, comparison, notes))


def _title(model: Recognizer) -> str:
    shape = model.shape
    stages = [stage for stage in (shape.transformation, shape.features, shape.sequence) if stage != "none"]
    losses = ", then ".join(LOSSES.get(loss, loss) for loss in model.provenance.losses)
    learned = f"trained with {losses}" if losses else "published weights"
    return f"{' + '.join((*stages, shape.prediction))}, {learned}"
