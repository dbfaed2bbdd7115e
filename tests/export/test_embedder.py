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
from training.evaluate_embedder import EmbedderFigures
from training.models.embedder import load_embedder
from training.models.provenance import Provenance

SHIPPED = Settings.model_fields["models_dir"].default
FIGURES = EmbedderFigures(
    {"r@1": 0.5}, "", "nothing", np.linspace(0, 0.5, 101).tolist(), np.linspace(0.5, 1, 101).tolist()
)


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_export_is_served_as_it_is(tmp_path):
    manifest = export_embedder(load_embedder("imagenet"), 64, FIGURES, tmp_path)
    stored = load_repository(tmp_path)["embedder"]
    assert stored.manifest == manifest
    assert (manifest.preprocessing.width, manifest.dim) == (64, 1280)
    assert set(contents(tmp_path)) == {
        "embedder/1/model.onnx",
        "embedder/1/manifest.json",
        "embedder/1/CARD.md",
        "embedder/config.pbtxt",
    }
    assert "| r@1 | 0.500 |" in (tmp_path / "embedder/1/CARD.md").read_text()


def test_the_same_weights_give_the_same_graph(tmp_path):
    model = load_embedder("imagenet")
    first, second = (export_embedder(model, 64, FIGURES, tmp_path / name) for name in ("first", "second"))
    assert first == second
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_the_card_says_where_it_comes_from(tmp_path):
    model = load_embedder("imagenet")
    model.provenance = Provenance(
        ("plantdoc: 3 pictures of 2 classes", "mine: 9 pictures of 1 classes"), ("recall_at_k",)
    )
    manifest = export_embedder(model, 64, FIGURES, tmp_path, comparison="| model | r@1 |\n", notes="## Seen\n")
    assert manifest.title == "EfficientNet-Lite0, average pooling, trained with RS@k"
    assert manifest.training_data == list(model.provenance.data)
    card = (tmp_path / "embedder/1/CARD.md").read_text()
    assert "- plantdoc: 3 pictures of 2 classes (CC BY 4.0)\n- mine: 9 pictures of 1 classes (licence not known" in card
    assert "\n## Beside other losses\n\n| model | r@1 |\n" in card
    assert card.endswith("\n\n## Seen\n")


def test_the_shipped_model_does_what_was_asked_of_it():
    metrics = load_repository(SHIPPED)["embedder"].manifest.metrics
    wanted = {
        "flowers102/val_unseen_class/r@1": 0.95,
        "cub200/val_unseen_class/r@1": 0.78,
        "flowers102/val/1-nn": 0.93,
        "plantdoc/val/1-nn": 0.46,
        "grocery/val/1-nn": 0.97,
    }
    assert {name for name, least in wanted.items() if metrics[name] < least} == set()


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
