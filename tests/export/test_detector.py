import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import readleaf
from export.detector import export_detector
from export.maps import Maps
from export.parity import ParityError, check_maps
from serving.manifest import DetectorManifest, read_manifest
from serving.metrics import Metrics
from serving.pipelines.detect import Detector
from serving.repository import load_repository
from serving.runtime.in_process import InProcessRuntime
from training.errors import DataError
from training.evaluate_detector import DetectorFigures
from training.finding import maps_of
from training.models.detector import quads_of
from training.models.detectors import load_dense_detector, save_detector

MODELS = Path(__file__).parents[2] / "models"
GRAPH = "detector/1/model.onnx"


@pytest.fixture(scope="module")
def exported(by_heart, tmp_path_factory):
    """The commands, one after the other: figures beside the checkpoint, then a model to serve."""
    run, folder = CliRunner(), tmp_path_factory.mktemp("models")
    (folder / "table.md").write_text("| loss |\n")
    (folder / "notes.md").write_text("## Found\n")
    weights = ["--weights", by_heart.weights]
    answer = run.invoke(
        readleaf.app,
        ["evaluate", "detector", *weights, "--data", str(by_heart.folder), "--models", str(MODELS), "--upright"],
    )
    assert answer.exit_code == 0, answer.output
    assert "reading/end to end f1" in answer.output
    assert "turned by" not in answer.output
    added = ["--comparison", str(folder / "table.md"), "--notes", str(folder / "notes.md")]
    answer = run.invoke(readleaf.app, ["export", "detector", *weights, "--to", str(folder / "models"), *added])
    assert answer.exit_code == 0, answer.output
    assert f"wrote {folder / 'models/detector'}, version 1" in answer.output
    return folder / "models"


def test_what_is_written(by_heart, exported):
    manifest = read_manifest(exported / "detector/1")
    assert isinstance(manifest, DetectorManifest)
    figures = DetectorFigures.of(by_heart.weights)
    assert (manifest.thresholds.heart, manifest.thresholds.word) == (figures.heart, figures.word)
    assert manifest.metrics == figures.metrics
    assert manifest.metrics["detection/f1"] == 1
    assert (manifest.stride, manifest.multiple) == (4, 32)
    assert manifest.title.endswith("boxes trained with smooth-L1, then LS-IoU")
    card = (exported / "detector/1/CARD.md").read_text()
    for part in (
        "| detection/f1 | 1 |",
        "| reading/end to end f1 | 1 |",
        f"gathers cells of {figures.heart:g} and more",
        f"{figures.word:g} and more.",
        "## Losses side by side\n\n| loss |",
        "## Found",
        "- PP-OCRv6 small",
        "- icdar15: 1 photograph (CC BY 4.0",
    ):
        assert part in card
    assert "licence not known" not in card
    config = (exported / "detector/config.pbtxt").read_text()
    assert "dims: [ -1, -1, 3 ]" in config
    assert "dims: [ -1, -1, 7 ]" in config


@pytest.mark.parametrize(("batch", "height", "width"), [(1, 32, 32), (3, 64, 160), (1, 288, 96)])
def test_the_graph_takes_pictures_of_any_size(by_heart, exported, batch, height, width):
    model, session = load_dense_detector(by_heart.weights), ort.InferenceSession(exported / GRAPH)
    random = np.random.default_rng(height)
    pixels = random.integers(0, 256, (batch, height, width, 3), dtype=np.uint8)
    pixels[0, : min(height, 128), : min(width, 192)] = by_heart.pixels[:height, :width]
    [maps] = session.run(None, {"images": pixels})
    assert maps.shape == (batch, height // 4, width // 4, 7)
    assert maps.dtype == np.float32
    with torch.inference_mode():
        expected = Maps(model).eval()(torch.from_numpy(pixels)).numpy()
    np.testing.assert_allclose(maps[..., 0], expected[..., 0], atol=1e-4)
    words = expected[..., 0] > 0.3
    np.testing.assert_allclose(maps[words], expected[words], rtol=1e-3, atol=1e-2)


def test_the_service_finds_what_the_network_finds(by_heart, exported):
    models = load_repository(exported)
    detector = Detector(InProcessRuntime("cpu", Metrics()).load(models["detector"]), models["detector"])
    words = detector(by_heart.pixels)
    assert len(words.boxes) == len(by_heart.texts)
    for quad in by_heart.quads:
        assert np.abs(quads_of(words.boxes) - quad).max(axis=(1, 2)).min() < 4


def answers_of(by_heart, change):
    """The network, with its answers changed."""

    class Changed(nn.Module):
        def __init__(self):
            super().__init__()
            self.maps = Maps(load_dense_detector(by_heart.weights)).eval()

        def forward(self, images):
            return change(self.maps(images).clone())

    return Changed()


def test_a_true_export_passes(by_heart, exported):
    assert check_maps(answers_of(by_heart, lambda maps: maps), exported / GRAPH, 32, max_batch=4) < 1e-3


def shifted(channel, step):
    def change(maps):
        maps[..., channel] += step
        return maps

    return change


def scaled(channel):
    def change(maps):
        maps[..., channel] *= 1.05
        return maps

    return change


@pytest.mark.parametrize(
    "change",
    [shifted(0, 0.01), shifted(1, 3.0), shifted(2, 3.0), scaled(3), scaled(4), shifted(1, np.nan), shifted(0, np.nan)],
    ids=["score", "x", "y", "width", "height", "box that is no number", "score that is no number"],
)
def test_a_graph_that_differs_is_refused(by_heart, exported, change):
    with pytest.raises(ParityError, match=r"model\.onnx at batch 1, 32×32 pixels: .*the graph was not kept"):
        check_maps(answers_of(by_heart, change), exported / GRAPH, 32, max_batch=4)


def test_a_graph_that_turns_boxes_is_refused(by_heart, exported):
    def turned(maps):
        maps[..., 5:] = maps[..., 5:].flip(-1)
        return maps

    with pytest.raises(ParityError, match="the graph was not kept"):
        check_maps(answers_of(by_heart, turned), exported / GRAPH, 32, max_batch=4)


def test_a_graph_of_another_size_is_refused(by_heart, exported):
    with pytest.raises(ParityError, match=r"shape \(1, 8, 8, 7\), torch has \(1, 4, 8, 7\)"):
        check_maps(answers_of(by_heart, lambda maps: maps[:, ::2]), exported / GRAPH, 32, max_batch=4)


def test_an_export_that_fails_leaves_the_folder_as_it_was(by_heart, exported, tmp_path, monkeypatch):
    repository = tmp_path / "models"
    shutil.copytree(exported, repository)
    before = {file: file.read_bytes() for file in repository.rglob("*") if file.is_file()}

    def other_weights(module, frame, input_name, output_names, file, varying):
        shutil.copy(exported / GRAPH, file)

    monkeypatch.setattr("export.detector.write_graph", other_weights)
    model = load_dense_detector(by_heart.weights)
    model.last.bias.data[0] += 1
    with pytest.raises(ParityError, match="the graph was not kept"):
        export_detector(model, DetectorFigures({}), repository)
    assert {file: file.read_bytes() for file in repository.rglob("*") if file.is_file()} == before
    with pytest.raises(ParityError):
        export_detector(model, DetectorFigures({}), tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


def test_figures_of_other_weights_are_refused(by_heart, exported, tmp_path):
    model = load_dense_detector(by_heart.weights)
    save_detector(model, tmp_path / "run/best.pt")
    run, words = CliRunner(), ["export", "detector", "--weights", str(tmp_path / "run/best.pt")]
    answer = run.invoke(readleaf.app, [*words, "--to", str(tmp_path / "models")])
    assert isinstance(answer.exception, DataError)
    assert "`readleaf evaluate` writes them" in str(answer.exception)
    replace(DetectorFigures({"detection/f1": 1.0}), weights="0" * 64).write(tmp_path / "run/metrics.json")
    answer = run.invoke(readleaf.app, [*words, "--to", str(tmp_path / "models")])
    assert "holds the figures of other weights" in str(answer.exception)
    assert not (tmp_path / "models").exists()


def test_a_manifest_that_does_not_fit_is_named(exported, tmp_path):
    from serving.errors import ManifestInvalid

    content = json.loads((exported / "detector/1/manifest.json").read_text())
    (tmp_path / "detector/1").mkdir(parents=True)
    [shown], [answered] = content["inputs"], content["outputs"]
    for changes, message in (
        ({"inputs": [shown | {"shape": [-1, 32, 32, 3]}]}, r"a detector takes \[-1, -1, -1, 3\]"),
        ({"outputs": [answered | {"shape": [-1, -1, -1, 6]}]}, r"a detector answers \[-1, -1, -1, 7\]"),
        ({"multiple": 30}, "multiple is 30, which is no multiple of the stride 4"),
        ({"thresholds": {"heart": 0.5, "word": 1.5}}, r"thresholds\.word"),
    ):
        (tmp_path / "detector/1/manifest.json").write_text(json.dumps(content | changes))
        with pytest.raises(ManifestInvalid, match=message):
            read_manifest(tmp_path / "detector/1")


def test_maps_of_the_checkpoint_show_the_words(by_heart):
    """What all of this rests on: cells in the words are sure, and no others."""
    maps = maps_of(load_dense_detector(by_heart.weights), by_heart.pixels)
    for quad in by_heart.quads:
        x, y = (quad.mean(axis=0) // 4).astype(int)
        assert maps[y, x, 0] > 0.9
    assert (maps[..., 0] > 0.5).mean() < 0.15
