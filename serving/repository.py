"""The model repository on disk: finds all versions, and refuses any file that is not what its manifest says.

models/embedder/config.pbtxt       how Triton serves it, all versions alike
models/embedder/1/                 a version: model.onnx, manifest.json, CARD.md and what else belongs to it
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from serving.errors import ManifestInvalid, ModelCorrupt, ModelsMissing, SetupError
from serving.manifest import MODEL_FILE, Manifest, read_manifest

log = structlog.get_logger()
Kind = TypeVar("Kind", bound=Manifest)


@dataclass(frozen=True)
class StoredModel:
    """A checked version of a model: its manifest and where it lies."""

    manifest: Manifest
    folder: Path

    @property
    def file(self) -> Path:
        """Its graph."""
        return self.folder / MODEL_FILE


@dataclass(frozen=True)
class Versions:
    """All versions of one model, and those that cannot be used with the reason."""

    name: str
    good: Mapping[int, StoredModel]
    broken: Mapping[int, SetupError]

    def __getitem__(self, version: int) -> StoredModel:
        """One of them; raises a SetupError if it is not there or is broken."""
        if version in self.broken:
            raise self.broken[version]
        if version not in self.good:
            there = ", ".join(map(str, sorted(self.good))) or "none that is whole"
            raise ModelsMissing(f"{self.name} has no version {version}; there is {there}")
        return self.good[version]

    @property
    def newest(self) -> int:
        """The highest number, whole or broken."""
        return max({*self.good, *self.broken})


def find_versions(folder: Path) -> dict[str, Versions]:
    """Every version of every model below `folder`; checks the sha256 of all files. Raises only if there is none."""
    if not folder.is_dir():
        raise ModelsMissing(f"there is no model folder at {folder}; set READLEAF_MODELS_DIR to a model repository")
    found = sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not found:
        raise ModelsMissing(f"the model folder {folder} holds no model; put an exported model there")
    return {child.name: versions_of(child) for child in found}


def versions_of(folder: Path) -> Versions:
    """All versions of one model; raises a SetupError if there is none."""
    good: dict[int, StoredModel] = {}
    broken: dict[int, SetupError] = {}
    for child in folder.iterdir():
        if not child.name.isdecimal() or not child.is_dir():
            continue
        try:
            good[int(child.name)] = _load(child)
        except SetupError as error:
            broken[int(child.name)] = error
    if not good and not broken:
        raise ManifestInvalid(
            f"{folder} holds no version of a model; each lies in a folder of its own, such as {folder.name}/1"
        )
    return Versions(folder.name, good, broken)


def version_numbers(folder: Path) -> list[int]:
    """The versions of one model, none of them checked."""
    try:
        return sorted(
            int(child.parent.name) for child in folder.glob("*/manifest.json") if child.parent.name.isdecimal()
        )
    except OSError:
        return []


def load_repository(folder: Path, chosen: Mapping[str, int] | None = None) -> dict[str, StoredModel]:
    """The version of each model that is to be used, by name: the one that was chosen, else the newest."""
    models = {}
    for name, versions in find_versions(folder).items():
        version = (chosen or {}).get(name, versions.newest)
        if version not in versions.good and version not in versions.broken:
            log.warning("the version in use is gone", model=name, version=version, instead=versions.newest)
            version = versions.newest
        models[name] = versions[version]
        for other, error in versions.broken.items():
            log.warning("a version that cannot be used", model=name, version=other, reason=error.message)
    return models


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


def check_files(model: StoredModel) -> None:
    """Raise a SetupError unless all files are those that the manifest names."""
    manifest = model.manifest
    try:
        for name, sha256 in manifest.files.items():
            _check_file(model.folder / name, sha256, manifest.name)
    except OSError as error:
        raise ModelCorrupt(f"{manifest.name}: {error.filename} cannot be read ({error.strerror})") from error


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
    model = StoredModel(manifest, folder)
    check_files(model)
    return model
