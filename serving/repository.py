"""The model repository on disk: finds the models, and refuses any file that is not what its manifest says."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from serving.errors import ManifestInvalid, ModelCorrupt, ModelsMissing
from serving.manifest import Manifest, read_manifest

Kind = TypeVar("Kind", bound=Manifest)


@dataclass(frozen=True)
class StoredModel:
    """A checked model: its manifest and where it lies."""

    manifest: Manifest
    folder: Path

    @property
    def file(self) -> Path:
        """Its graph."""
        return self.folder / self.manifest.model_file


def load_repository(folder: Path) -> dict[str, StoredModel]:
    """Read every model below `folder`, by name; checks the sha256 of its files."""
    if not folder.is_dir():
        raise ModelsMissing(f"there is no model folder at {folder}; set READLEAF_MODELS_DIR to a model repository")
    found = sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not found:
        raise ModelsMissing(f"the model folder {folder} holds no model; put an exported model there")
    return {model.manifest.name: model for model in map(_load, found)}


def model_of(models: Mapping[str, StoredModel], name: str) -> StoredModel:
    """A model that the service cannot do without; raises a SetupError if it is not there."""
    if name not in models:
        raise ModelsMissing(f"the model folder has no model named {name}; export one into it")
    return models[name]


def manifest_as(model: StoredModel, kind: type[Kind]) -> Kind:
    """The manifest of a model of this kind; raises a SetupError if it is of another."""
    if not isinstance(model.manifest, kind):
        raise ManifestInvalid(f"{model.folder}: its task is {model.manifest.task}; export the model again")
    return model.manifest


def _check_file(file: Path, sha256: str, model: str) -> None:
    """Raise a SetupError if a model's file is missing or not the one that its manifest names."""
    if not file.is_file():
        raise ModelsMissing(f"{model}: {file} is missing; export the model again")
    with file.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != sha256:
        raise ModelCorrupt(
            f"{model}: {file} has sha256 {actual[:12]}…, its manifest says {sha256[:12]}…; "
            "the file is damaged or was replaced: export the model again"
        )


def _load(folder: Path) -> StoredModel:
    manifest = read_manifest(folder)
    for name, sha256 in manifest.files.items():
        _check_file(folder / name, sha256, manifest.name)
    return StoredModel(manifest, folder)
