import io

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from training.models.picture_backbone import published_picture_backbone
from training.models.text_blocks import published_graph


@pytest.fixture(scope="module")
def theirs():
    """The published graph, cut where its head begins."""
    graph = published_graph("det")
    [joined] = [node.output[0] for node in graph.graph.node if node.op_type == "Concat"][-1:]
    del graph.graph.output[:]
    graph.graph.output.append(onnx.helper.make_tensor_value_info(joined, onnx.TensorProto.FLOAT, None))
    stream = io.BytesIO()
    onnx.save(graph, stream)
    return ort.InferenceSession(stream.getvalue())


@pytest.mark.parametrize("size", [(64, 96), (160, 128)])
def test_it_computes_what_the_published_graph_computes(theirs, size):
    images = np.random.default_rng(size[0]).normal(size=(2, 3, *size)).astype(np.float32)
    [expected] = theirs.run(None, {"x": images})
    with torch.inference_mode():
        actual = published_picture_backbone().backbone(torch.from_numpy(images).flip(1))  # theirs are BGR
    assert actual.shape == (2, 96, size[0] // 4, size[1] // 4)
    np.testing.assert_allclose(actual.numpy(), expected, atol=2e-4)


def test_the_first_layer_of_the_published_head_is_there():
    published = published_picture_backbone()
    assert published.weight.shape == (24, 96, 3, 3)
    assert published.bias.shape == (24,)
