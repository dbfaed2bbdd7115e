from importlib.resources import files

import numpy as np
import onnxruntime as ort
import pytest
import torch

from training.alphabet import PRINTABLE
from training.models.text_backbone import published_backbone


@pytest.fixture(scope="module")
def published():
    return published_backbone()


@pytest.mark.parametrize("width", [48, 160, 328])
def test_it_computes_what_the_published_graph_computes(published, width):
    session = ort.InferenceSession(str(files("rapidocr") / "models/PP-OCRv6_rec_small.onnx"))
    images = np.random.default_rng(width).normal(size=(2, 3, 48, width)).astype(np.float32)
    [expected] = session.run(None, {"x": images})
    with torch.inference_mode():
        columns = published.backbone(torch.from_numpy(images).flip(1))  # theirs are BGR
        actual = (columns @ published.weight.T + published.bias).softmax(dim=2)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, atol=2e-4)


def test_a_head_for_some_symbols(published):
    weight, bias = published.rows("Z9!")
    assert weight.shape == (4, 120)
    assert bias.shape == (4,)
    places = [0, *(1 + published.characters.index(symbol) for symbol in "Z9!")]
    torch.testing.assert_close(weight, published.weight[places])
    assert set(PRINTABLE) <= set(published.characters)


def test_batch_norm_stands_still(published):
    before = published.backbone.neck.short[1].running_mean.clone()
    published.backbone.train()(torch.randn(4, 3, 48, 64))
    torch.testing.assert_close(published.backbone.neck.short[1].running_mean, before)
    published.backbone.eval()
