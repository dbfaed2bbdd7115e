"""The starter collection: what the exported embedder makes of training pictures, without the pictures."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
from rich.progress import track

from serving.manifest import MODEL_FILE, EmbedderManifest, read_manifest
from serving.starter import Starter
from training.data.labelled import LabelledFile, load_pixels, read_labels
from training.errors import DataError

BATCH = 32


def export_starter(folders: Sequence[Path], name: str, description: str, model: Path) -> int:
    """Write `starter.npz` beside a version of the embedder, with the pictures of the set `train`; returns how many."""
    files = [file for folder in folders for file in read_labels(folder) if file.set_name == "train"]
    if not files:
        raise DataError("no picture of the set train in the data")
    manifest = read_manifest(model)
    if not isinstance(manifest, EmbedderManifest):
        raise DataError(f"{model} holds no embedder")
    session = ort.InferenceSession(model / MODEL_FILE, providers=["CPUExecutionProvider"])
    width, height = manifest.preprocessing.width, manifest.preprocessing.height

    def pixels(file: LabelledFile) -> np.ndarray:
        return load_pixels(file.path, width, height)

    rows = []
    with ThreadPoolExecutor() as readers:
        for start in track(range(0, len(files), BATCH), description="embedding"):
            images = np.stack(list(readers.map(pixels, files[start : start + BATCH])))
            rows.append(session.run([manifest.outputs[0].name], {manifest.inputs[0].name: images})[0])
    labels, sources = [file.class_name for file in files], [file.source for file in files]
    Starter(name, description, np.concatenate(rows), labels, sources).write(model / "starter.npz", manifest.sha256)
    return len(files)
