"""Adds a version of a model to a repository: graph, manifest and card, all or nothing, beside those before it."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import onnxruntime as ort

from serving.manifest import MODEL_FILE, Manifest, read_manifest
from serving.repository import versions_of
from serving.runtime import Arrays
from serving.runtime.probe import make_probe
from serving.triton_config import CONFIG_FILE, triton_config

Kind = TypeVar("Kind", bound=Manifest)


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill; it takes `folder`'s place when the block ends well, and vanishes when it fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    new, old = scratch / "new", scratch / "old"
    try:
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(scratch)


@dataclass(frozen=True)
class NewVersion:
    """A folder to be filled with a version of a model."""

    number: int
    folder: Path

    @property
    def graph(self) -> Path:
        """Where its graph goes."""
        return self.folder / MODEL_FILE

    def describe(self, manifest: Kind, card: str) -> Kind:
        """Write what stands beside the graph; returns the manifest with what the graph answers to a known picture."""
        session = ort.InferenceSession(self.graph, providers=["CPUExecutionProvider"])
        names = [tensor.name for tensor in manifest.outputs]

        def run(inputs: Arrays) -> dict[str, Any]:
            return dict(zip(names, session.run(names, dict(inputs)), strict=True))

        probed = manifest.model_copy(update={"probe": make_probe(manifest, run)})
        probed.write(self.folder)
        (self.folder / "CARD.md").write_text(card)
        return probed


@contextmanager
def new_version(model: Path) -> Iterator[NewVersion]:
    """The version after the newest of a model; it appears when the block ends well, and vanishes when it fails."""
    model.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{model.name}-", dir=model.parent))
    try:
        number = 1 + max((int(child.name) for child in model.glob("*") if child.name.isdecimal()), default=0)
        version = NewVersion(number, scratch / model.name / str(number))
        version.folder.mkdir(parents=True)
        yield version
        before = versions_of(model).good if number > 1 else {}
        manifests = {each: stored.manifest for each, stored in before.items()}
        config = version.folder.parent / CONFIG_FILE
        config.write_text(triton_config({**manifests, number: read_manifest(version.folder)}))
        if model.exists():
            version.folder.rename(model / str(number))
            config.replace(model / CONFIG_FILE)
        else:
            version.folder.parent.rename(model)
    finally:
        shutil.rmtree(scratch)


def sha256_of(file: Path) -> str:
    """The checksum that the manifest names."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
