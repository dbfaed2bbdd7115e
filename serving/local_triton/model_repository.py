"""The model repository as Triton's python backend takes it, made from ours: graphs stay where they are."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from serving.repository import Versions
from serving.triton_config import triton_config

MODEL_CODE = Path(__file__).with_name("python_model.py")


def write_python_repository(models: Mapping[str, Versions], folder: Path, instances: int) -> None:
    """Bring `folder` to what our repository holds now; a running Triton sees each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    models = {name: versions for name, versions in models.items() if versions.good}
    for gone in {child.name for child in folder.iterdir()} - models.keys():
        shutil.rmtree(folder / gone)
    for name, versions in models.items():
        place = folder / name
        for version, model in versions.good.items():
            (place / str(version)).mkdir(parents=True, exist_ok=True)
            link = place / str(version) / "model.onnx"
            link.unlink(missing_ok=True)
            link.symlink_to(model.file.resolve())
            _write(place / str(version) / "model.py", MODEL_CODE.read_text())
        for child in place.iterdir():
            if child.name.isdecimal() and int(child.name) not in versions.good:
                shutil.rmtree(child)
        manifests = {version: model.manifest for version, model in versions.good.items()}
        _write(place / "config.pbtxt", triton_config(manifests, "python", instances=instances))


def _write(file: Path, text: str) -> None:
    if file.exists() and file.read_text() == text:
        return
    descriptor, scratch = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    Path(scratch).replace(file)
