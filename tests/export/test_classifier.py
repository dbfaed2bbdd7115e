"""From weights to a served classifier: the graph is the network, the manifest and the card say what it is."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from export.classifier import export_classifier
from export.evaluate_classifier import ClassifierFigures
from export.evidence import Probabilities
from export.wrapper import FromPixels
from serving.errors import ManifestInvalid
from serving.manifest import read_manifest
from training.models.classifier import ClassifierShape, imagenet_classifier
from training.models.provenance import Provenance

FIGURES = ClassifierFigures(
    {"val/accuracy": 0.75, "val/ece": 0.02},
    size=96,
    temperature=0.5,
    unsure_below=0.55,
    prior=[0.25, 0.75],
    before=[[0, 0, 0], [4, 0.9, 0.75]],
    after=[[1, 0.4, 1.0], [3, 0.8, 0.67]],
)


@pytest.fixture(scope="module", params=[True, False], ids=["cosine", "linear"])
def exported(request, tmp_path_factory):
    torch.manual_seed(0)
    model = imagenet_classifier(ClassifierShape(), ("ash", "oak"), cosine=request.param)
    torch.nn.init.normal_(model.weights, std=0.1)
    model.provenance = Provenance(("trees: 9 pictures of 2 classes",), ("esupcon",))
    repository = tmp_path_factory.mktemp("models")
    return model, export_classifier(model, FIGURES, repository, "trees", notes="## Seen\n\nLeaves."), repository


def test_the_graph_is_the_network(exported):
    model, _, repository = exported
    session = ort.InferenceSession(repository / "trees/1/model.onnx", providers=["CPUExecutionProvider"])
    pixels = np.random.default_rng(1).integers(0, 256, (3, 96, 96, 3), dtype=np.uint8)
    probabilities, evidence = session.run(["probabilities", "evidence"], {"images": pixels})
    with torch.inference_mode():
        scores = model(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1)
    expected = torch.softmax(scores / 0.5, dim=1).numpy()
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    assert evidence.shape == (3, 3, 3, 2)
    # Evidence sums to the scores, but for what all classes share.
    centred = (scores - scores.mean(dim=1, keepdim=True)).numpy() / 0.5
    np.testing.assert_allclose(evidence.sum(axis=(1, 2)), centred, rtol=1e-3, atol=1e-3)


def test_the_manifest(exported):
    _, manifest, repository = exported
    assert read_manifest(repository / "trees/1") == manifest
    assert (manifest.labels, manifest.prior, manifest.unsure_below) == (["ash", "oak"], [0.25, 0.75], 0.55)
    assert manifest.title == "2 classes, calibrated, on EfficientNet-Lite0 trained with ESupCon"


def test_the_card(exported):
    _, _, repository = exported
    card = (repository / "trees/1/CARD.md").read_text()
    for words in (
        "| val/accuracy | 0.75 |",
        "| 0.50 – 1.00 | 4 | 0.90 | 0.75 | 3 | 0.80 | 0.67 |",
        "ash, oak",
        "Leaves.",
    ):
        assert words in card
    assert "trees: 9 pictures of 2 classes (licence not known to us)" in card


def test_the_temperature_is_in_the_graph():
    model = imagenet_classifier(ClassifierShape(), ("ash", "oak"), cosine=True)
    pixels = torch.randint(0, 256, (2, 64, 64, 3), dtype=torch.uint8)
    with torch.inference_mode():
        [cold, warm] = (FromPixels(Probabilities(model, each))(pixels)[0].max(dim=1).values for each in (0.1, 10.0))
    assert (cold > warm).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["ash", "ash"]}, "labels hold a name twice"),
        ({"prior": [1.0]}, "prior must hold a share above 0 for each of 2 labels"),
        ({"prior": [1.0, 0.0]}, "prior must hold a share above 0"),
        ({"labels": ["ash", "oak", "elm"], "prior": [0.3, 0.3, 0.4]}, "outputs must end in 3"),
    ],
)
def test_manifests_that_do_not_agree_with_themselves(exported, tmp_path, changes, message):
    _, manifest, _ = exported
    (tmp_path / "trees/1").mkdir(parents=True)
    manifest.model_copy(update=changes).write(tmp_path / "trees/1")
    with pytest.raises(ManifestInvalid, match=message):
        read_manifest(tmp_path / "trees/1")
