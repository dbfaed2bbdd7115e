import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from training.models.text_blocks import Block, Stem, published_graph, weights_in_order


def graph_of(nodes, **stored):
    """A graph that is only looked at: its nodes, and arrays by name."""
    initializers = [numpy_helper.from_array(array, name.replace("__", ".")) for name, array in stored.items()]
    return helper.make_model(helper.make_graph(nodes, "small", [], [], initializers))


def test_weights_come_in_the_order_of_their_use():
    random = np.random.default_rng(0)
    kernel, bias, matrix = (random.normal(size=size).astype(np.float32) for size in ((2, 3, 1, 1), (2,), (3, 5)))
    graph = graph_of(
        [
            helper.make_node("Conv", ["x", "kernel", "bias"], ["y"]),
            helper.make_node("Mul", ["y", "scale"], ["z"]),
            helper.make_node("Add", ["z", "helper.constant.4"], ["u"]),
            helper.make_node("Reshape", ["u", "lengths"], ["v"]),
            helper.make_node("MatMul", ["v", "matrix"], ["w"]),
        ],
        matrix=matrix,
        lengths=np.array([2, 3], dtype=np.int64),
        bias=bias,
        helper__constant__4=np.ones(7, dtype=np.float32),
        kernel=kernel,
        scale=np.array([3.0], dtype=np.float32),
    )
    found = weights_in_order(graph)
    assert len(found) == 3
    for array, expected in zip(found, (kernel, bias, matrix.T), strict=True):
        np.testing.assert_array_equal(array, expected)
    assert all(array.flags.owndata and array.flags.writeable for array in found)


@pytest.mark.parametrize("name", ["det", "rec"])
def test_published_graphs_are_carried(name):
    graph = published_graph(name)
    assert graph.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert isinstance(graph, onnx.ModelProto)
    first = weights_in_order(graph)[0]
    assert first.shape[1:] == (3, 3, 3)  # of colours


def test_the_stem_makes_a_quarter_of_the_size():
    assert Stem(8)(torch.zeros(2, 3, 32, 64)).shape == (2, 16, 8, 16)


@pytest.mark.parametrize(("stride", "size"), [(1, (8, 12)), (2, (4, 6)), ((2, 1), (4, 12))])
def test_a_block_divides_the_size_by_its_stride(stride, size):
    assert Block(8, 16, weighed=True, stride=stride)(torch.zeros(1, 8, 8, 12)).shape == (1, 16, *size)


@pytest.mark.parametrize("weighed", [True, False])
def test_a_block_adds_to_what_it_saw_only_where_channels_stay(weighed):
    torch.manual_seed(0)
    features = torch.randn(1, 8, 6, 6)
    for out in (8, 16):
        block = Block(8, out, weighed=weighed)
        torch.nn.init.zeros_(block.project.weight)
        torch.nn.init.zeros_(block.project.bias)
        seen = block.around(features)
        if weighed:
            seen = seen * block.weights(seen)
        torch.testing.assert_close(block(features), seen if out == 8 else torch.zeros(1, 16, 6, 6))
