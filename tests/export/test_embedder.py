import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import export.embedder
from export.embedder import export_embedder
from export.parity import ParityError
from serving.repository import load_repository
from serving.settings import Settings
from training.evaluate import EmbedderFigures
from training.models.embedder import load_embedder

SHIPPED = Settings.model_fields["models_dir"].default
FIGURES = EmbedderFigures({"r@1": 0.5}, "nothing", np.linspace(0, 0.5, 101).tolist(), np.linspace(0.5, 1, 101).tolist())


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_export_is_served_as_it_is(tmp_path):
    manifest = export_embedder(load_embedder("imagenet"), 64, FIGURES, tmp_path)
    stored = load_repository(tmp_path)["embedder"]
    assert stored.manifest == manifest
    assert (manifest.preprocessing.width, manifest.dim) == (64, 1280)
    assert set(contents(tmp_path)) == {
        "embedder/1/model.onnx",
        "embedder/manifest.json",
        "embedder/config.pbtxt",
        "embedder/CARD.md",
    }
    assert "| r@1 | 0.500 |" in (tmp_path / "embedder/CARD.md").read_text()


def test_the_shipped_graph_is_the_networks(tmp_path):
    """Whoever runs the export again gets the graph that is committed, byte for byte."""
    shipped = load_repository(SHIPPED)["embedder"].manifest
    assert shipped.similarity is not None
    figures = EmbedderFigures(
        shipped.metrics, shipped.similarity.measured_on, shipped.similarity.different, shipped.similarity.same
    )
    again = export_embedder(load_embedder("imagenet"), shipped.preprocessing.width, figures, tmp_path)
    assert again == shipped


def test_a_failing_export_leaves_the_old_model(tmp_path, monkeypatch):
    shutil.copytree(SHIPPED, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    monkeypatch.setattr(export.embedder, "TOLERANCE", -1.0)
    with pytest.raises(ParityError, match="the graph was not kept"):
        export_embedder(load_embedder("imagenet"), 64, FIGURES, tmp_path)
    assert contents(tmp_path) == before


def test_no_path_of_the_exporting_machine_is_in_the_graph():
    data = (SHIPPED / "embedder/1/model.onnx").read_bytes()
    for word in (b"site-packages", str(Path.home()).encode(), torch.__file__.encode()):
        assert word not in data
