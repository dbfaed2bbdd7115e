import json
from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
import torch

from export.parity import ParityError, check_words
from export.recognizer import export_recognizer
from export.repository import sha256_of
from export.spelling import AsServed
from export.words import Words
from serving.language import Language
from serving.manifest import RecognizerManifest, read_manifest
from serving.pipelines.spelling import Speller
from serving.repository import load_repository
from training.alphabet import PRINTABLE
from training.data.canvas import Canvas, place
from training.data.fonts import OWN, Font, plainly_written
from training.data.pixels import normalised
from training.errors import DataError
from training.evaluate_recognizer import RecognizerFigures
from training.models.recognizer import Recognizer, RecognizerShape, load_recognizer
from training.reading import answer

FIGURES = RecognizerFigures({"all/accuracy": 0.9, "all/ted": 200.0}, temperature=1.5)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The published weights, exported."""
    folder = tmp_path_factory.mktemp("models")
    model = load_recognizer("published")
    return model, export_recognizer(model, FIGURES, folder, comparison="| a |\n", notes="## Found\n"), folder


def test_what_is_written(exported):
    _, manifest, folder = exported
    assert read_manifest(folder / "recognizer/1") == manifest
    assert isinstance(load_repository(folder)["recognizer"].manifest, RecognizerManifest)
    assert manifest.symbols == PRINTABLE
    assert (manifest.canvas.width, manifest.canvas.step, manifest.canvas.longest) == (160, 80, 640)
    card = (folder / "recognizer/1/CARD.md").read_text()
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
        assert Speller(manifest.symbols, manifest.decoder)(classes[0].tolist(), probabilities[0].tolist()).text == word
        with torch.inference_mode():
            logits = model(normalised(torch.from_numpy(pixels)))
        assert model.read(logits)[0].text == word
        expected, _ = logits.softmax(dim=2).sort(dim=2, descending=True)
        np.testing.assert_allclose(probabilities, expected[:, :, :8], atol=1e-4)


def test_attention_stops_in_the_graph_too():
    shape = RecognizerShape(prediction="attention", steps=6, canvas=Canvas(step=80))
    torch.manual_seed(0)
    model = Recognizer(shape).eval()
    model.prediction.generator.bias.data[shape.alphabet.end] += 2.0  # ends soon
    pixels = torch.randint(0, 256, (5, 48, 160, 3), dtype=torch.uint8)
    with torch.inference_mode():
        classes, _ = Words(model)(pixels)
        readings = model.read(model(normalised(pixels)))
    for row, reading in zip(classes[:, :, 0].tolist(), readings, strict=True):
        ended = row.index(shape.alphabet.end) if shape.alphabet.end in row else len(row)
        assert "".join(shape.symbols[number] for number in row[:ended]) == reading.text


@pytest.fixture
def language(tmp_path):
    """A file with few words."""
    file = tmp_path / "language.npz"
    Language({"leaf": 0.5}, 0.5, 0.0, {"a": -1.0}, {}, 1, weight=0.5).write(file)
    return file


def test_a_language_goes_with_the_model(exported, language, tmp_path):
    model, *_ = exported
    figures = replace(FIGURES, language=sha256_of(language))
    manifest = export_recognizer(model, figures, tmp_path / "models", language=language)
    assert manifest.language == sha256_of(tmp_path / "models/recognizer/1/language.npz")
    assert manifest.temperature == 1.5
    card = (tmp_path / "models/recognizer/1/CARD.md").read_text()
    assert "weighs them with `language.npz`" in card
    assert "SCOWL by Kevin Atkinson" in card


def test_figures_of_another_language_are_refused(exported, language, tmp_path):
    model, *_ = exported
    for figures, own in ((FIGURES, language), (replace(FIGURES, language="0" * 64), None)):
        with pytest.raises(DataError, match="of another language"):
            export_recognizer(model, figures, tmp_path / "models", language=own)
    assert not (tmp_path / "models").exists()


def test_evaluation_decodes_as_the_service_does(exported, language):
    """A language that knows `leaf` alone makes it of a doubtful word, and not of a clear one."""
    model, *_ = exported
    decode = AsServed(model, language)
    clear = answer(model, [plainly_written("Readleaf", Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE))])[0]
    assert decode(clear, 1.0)[0] == "Readleaf"
    logits = torch.full((8, len(PRINTABLE) + 1), -9.0)
    for column, letter in enumerate("lcaf"):
        logits[2 * column, PRINTABLE.index(letter)] = 5.0
        logits[2 * column + 1, -1] = 5.0
    logits[2, PRINTABLE.index("e")] = 4.0
    text, sure = decode({0: logits}, 1.0)
    assert text == "leaf"
    assert decode({0: logits}, 3.0)[1] < sure


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
    content = json.loads((folder / "recognizer/1/manifest.json").read_text())
    place_of = tmp_path / "recognizer/1"
    place_of.mkdir(parents=True)
    for changes, message in (
        ({"canvas": content["canvas"] | {"height": 32}}, "the canvas makes"),
        ({"canvas": content["canvas"] | {"longest": 100}}, "longest is 100, less than the width 160"),
        ({"outputs": content["outputs"][:1]}, "they must be classes, probabilities"),
        ({"symbols": ""}, "symbols: "),
    ):
        (place_of / "manifest.json").write_text(json.dumps(content | changes))
        with pytest.raises(ManifestInvalid, match=message):
            read_manifest(place_of)
