import json

import numpy as np
import onnxruntime as ort
import pytest
import torch

from export.parity import ParityError, check_words
from export.recognizer import export_recognizer
from export.words import Words
from serving.manifest import RecognizerManifest, read_manifest
from serving.repository import load_repository
from training.alphabet import PRINTABLE
from training.data.canvas import Canvas, place
from training.data.fonts import OWN, Font, plainly_written
from training.errors import DataError
from training.evaluate_recognizer import RecognizerFigures
from training.models.recognizer import Recognizer, RecognizerShape, load_recognizer

FIGURES = RecognizerFigures({"all/accuracy": 0.9, "all/ted": 200.0}, temperature=1.5)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The published weights, exported."""
    folder = tmp_path_factory.mktemp("models")
    model = load_recognizer("published")
    return model, export_recognizer(model, FIGURES, folder, comparison="| a |\n", notes="## Found\n"), folder


def test_what_is_written(exported):
    _, manifest, folder = exported
    assert read_manifest(folder / "recognizer") == manifest
    assert isinstance(load_repository(folder)["recognizer"].manifest, RecognizerManifest)
    assert manifest.symbols == PRINTABLE
    assert (manifest.canvas.width, manifest.canvas.step, manifest.canvas.longest) == (160, 80, 640)
    card = (folder / "recognizer/CARD.md").read_text()
    for part in (
        "| all/accuracy | 0.9 |",
        "| all/ted | 200 |",
        "## Step by step\n\n| a |",
        "## Found",
        "PP-OCRv6 small",
    ):
        assert part in card
    config = (folder / "recognizer/config.pbtxt").read_text()
    assert "dims: [ 48, -1, 3 ]" in config
    assert "TYPE_INT64" in config


def test_the_graph_reads_what_the_network_reads(exported):
    model, manifest, folder = exported
    session = ort.InferenceSession(folder / "recognizer/1/model.onnx")
    font = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)
    words = ["Readleaf", "N17-4GU", "aa", "llama", "$4.50!", "MISSISSIPPI", "i"]
    for word in words:
        pixels = place(plainly_written(word, font), model.shape.canvas)[None]
        classes, probabilities = session.run(None, {"images": pixels})
        best = classes[0, :, 0]
        assert "".join(manifest.symbols[number] for number in best[best >= 0]) == word
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1
        with torch.inference_mode():
            [reading] = model.read(model(images) / FIGURES.temperature)
        np.testing.assert_allclose(probabilities[0, best >= 0, 0], reading.confidences, atol=1e-4)


def test_attention_stops_in_the_graph_too():
    shape = RecognizerShape(prediction="attention", steps=6, canvas=Canvas(step=80))
    torch.manual_seed(0)
    model = Recognizer(shape).eval()
    model.prediction.generator.bias.data[shape.alphabet.end] += 2.0  # ends soon
    pixels = torch.randint(0, 256, (5, 48, 160, 3), dtype=torch.uint8)
    with torch.inference_mode():
        classes, _ = Words(model)(pixels)
        readings = model.read(model(pixels.permute(0, 3, 1, 2).float() / 127.5 - 1))
    for row, reading in zip(classes[:, :, 0].tolist(), readings, strict=True):
        assert "".join(shape.symbols[number] for number in row if number >= 0) == reading.text


def test_a_graph_of_other_weights_is_refused(exported):
    model, _, folder = exported
    other = load_recognizer("published")
    other.prediction.generator.bias.data[:5] += 3.0
    with pytest.raises(ParityError, match="the graph was not kept"):
        check_words(Words(other).eval(), folder / "recognizer/1/model.onnx", 48, [160], max_batch=2)
    assert model is not other


def test_a_canvas_that_cannot_be_served_is_refused(tmp_path):
    model = Recognizer(RecognizerShape(features="vgg", canvas=Canvas(32, 100, channels=1), feature_channels=32))
    with pytest.raises(DataError, match="this one is for comparison"):
        export_recognizer(model, FIGURES, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_manifest_that_does_not_fit_is_named(exported, tmp_path):
    from serving.errors import ManifestInvalid

    _, _, folder = exported
    content = json.loads((folder / "recognizer/manifest.json").read_text())
    place_of = tmp_path / "recognizer"
    place_of.mkdir()
    for changes, message in (
        ({"canvas": content["canvas"] | {"height": 32}}, "the canvas makes"),
        ({"canvas": content["canvas"] | {"longest": 100}}, "longest is 100, less than the width 160"),
        ({"outputs": content["outputs"][:1]}, "they must be classes, probabilities"),
        ({"symbols": ""}, "symbols: "),
    ):
        (place_of / "manifest.json").write_text(json.dumps(content | changes))
        with pytest.raises(ManifestInvalid, match=message):
            read_manifest(place_of)
