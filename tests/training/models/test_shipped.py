"""A model that was exported can be trained on from."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import numpy_helper

from export.maps import Maps
from training.data.pixels import normalised
from training.errors import DataError
from training.models.detectors import detector_from
from training.models.embedder import Embedder, EmbedderShape
from training.models.shipped import is_shipped, load_folded_backbone, load_shipped

MODELS = Path(__file__).parents[3] / "models"


def test_the_detector_that_ships_is_the_network_it_was():
    model = detector_from(str(MODELS / "detector"))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 64, 96, 3), dtype=np.uint8)
    session = ort.InferenceSession(MODELS / "detector/1/model.onnx", providers=["CPUExecutionProvider"])
    [expected] = session.run(None, {session.get_inputs()[0].name: pixels})
    with torch.inference_mode():
        found = Maps(model).eval()(torch.from_numpy(pixels)).numpy()
    np.testing.assert_allclose(found[..., 0], expected[..., 0], atol=1e-4)
    np.testing.assert_allclose(found[..., 1:5], expected[..., 1:5], rtol=1e-3, atol=1e-2)
    manifest = json.loads((MODELS / "detector/1/manifest.json").read_text())
    assert model.provenance.data == tuple(manifest["training_data"])
    assert model.provenance.losses[-1] == "LS-IoU"


def test_the_backbone_of_the_embedder_that_ships():
    """With the embedder's own pooling and projection it embeds as the graph does."""
    shape = EmbedderShape(backbone="lite0", dim=512)
    model = Embedder(shape)
    provenance = load_folded_backbone(model.backbone, str(MODELS / "embedder"))
    graph = onnx.load(MODELS / "embedder/1/model.onnx").graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    rest = {name: value for name, value in model.state_dict().items() if not name.startswith("backbone.")}
    missing = [name for name in rest if f"network.{name}" not in constants]
    assert missing == []
    model.load_state_dict({name: torch.tensor(constants[f"network.{name}"]) for name in rest}, strict=False)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 3), dtype=np.uint8)
    session = ort.InferenceSession(MODELS / "embedder/1/model.onnx", providers=["CPUExecutionProvider"])
    [expected] = session.run(None, {"images": pixels})
    with torch.inference_mode():
        found = model.eval()(normalised(torch.from_numpy(pixels))).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert provenance.losses == ("cross-entropy", "RS@k + SiMix")


def test_a_backbone_of_another_size_is_refused():
    with pytest.raises(DataError, match="does not hold the weights of this backbone: there is no"):
        load_folded_backbone(Embedder(EmbedderShape(backbone="lite2", dim=16)).backbone, str(MODELS / "embedder"))


def test_another_networks_weights_are_refused():
    assert is_shipped(str(MODELS / "detector"))
    assert is_shipped(str(MODELS / "detector/1"))
    assert not is_shipped(str(MODELS))
    with pytest.raises(DataError, match="does not hold the weights of this network: there is no"):
        load_shipped(Embedder(EmbedderShape(dim=16)), str(MODELS / "detector"))


def test_a_version_that_is_named_or_the_newest(models, add_version):
    """`models/embedder/1` is a version; `models/embedder` means the one of the highest number."""
    for title in ("trained with second", "trained with third"):
        add_version(models, "embedder", title=title)
    (models / "embedder/3").rename(models / "embedder/10")

    def losses(place):
        return load_folded_backbone(Embedder(EmbedderShape(backbone="lite0", dim=512)).backbone, str(place)).losses

    assert losses(models / "embedder") == ("third",)
    assert losses(models / "embedder/2") == ("second",)
    assert losses(models / "embedder/1") == ("cross-entropy", "RS@k + SiMix")


def test_a_place_without_a_model(tmp_path):
    assert not is_shipped(str(tmp_path / "nowhere"))
    (tmp_path / "detector/first").mkdir(parents=True)
    (tmp_path / "detector/first/manifest.json").write_text("{}")
    assert not is_shipped(str(tmp_path / "detector"))
    with pytest.raises(DataError, match="detector holds no exported model"):
        load_shipped(Embedder(EmbedderShape(dim=16)), str(tmp_path / "detector"))
