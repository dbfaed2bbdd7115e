"""What the networks of PP-OCRv6 small are made of, written out, and how their published weights are read.

BatchNorm lies folded in the convolutions of the published weights, all but three layers of the recogniser.
"""

from importlib.resources import files

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

CONSTANT = "helper.constant"  # what the published graphs call numbers that are no weights


class Stem(nn.Module):
    """Two ways through the first layers, joined: a quarter of the size, 2 · channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.narrow = nn.Conv2d(channels, channels // 2, 2)
        self.wide = nn.Conv2d(channels // 2, channels, 2)
        self.joined = nn.Conv2d(2 * channels, channels, 3, stride=2, padding=1)
        self.last = nn.Conv2d(channels, 2 * channels, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Features of images."""
        edge = (0, 1, 0, 1)  # one row and one column more, so that kernels of 2 keep the size
        first = F.relu(self.first(images))
        second = F.relu(self.wide(F.pad(F.relu(self.narrow(F.pad(first, edge))), edge)))
        joined = torch.cat([F.max_pool2d(F.pad(first, edge), 2, stride=1), second], dim=1)
        return F.relu(self.last(F.relu(self.joined(joined))))


class Block(nn.Module):
    """A depthwise convolution, then channels mixed; where the channels change, the size is divided by `stride`."""

    def __init__(self, channels: int, out: int, *, weighed: bool, stride: int | tuple[int, int] = 1) -> None:
        super().__init__()
        self.keeps = out == channels
        self.around = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels)
        self.weights = (
            nn.Sequential(
                nn.AdaptiveAvgPool2d(1),
                nn.Conv2d(channels, channels // 4, 1),
                nn.ReLU(),
                nn.Conv2d(channels // 4, channels, 1),
                nn.Hardsigmoid(),
            )
            if weighed
            else None
        )
        self.expand = nn.Conv2d(channels, 2 * channels, 1)
        self.project = nn.Conv2d(2 * channels, out, 1)

    def forward(self, features: Tensor) -> Tensor:
        """[N, channels, H, W] → [N, out, H / stride, W / stride]."""
        features = self.around(features)
        if self.weights is not None:
            features = features * self.weights(features)
        mixed: Tensor = self.project(F.gelu(self.expand(features)))
        return features + mixed if self.keeps else mixed


def published_graph(name: str) -> onnx.ModelProto:
    """One of the networks that `rapidocr` carries, under Apache-2.0."""
    return onnx.load(str(files("rapidocr") / f"models/PP-OCRv6_{name}_small.onnx"))


def weights_in_order(graph: onnx.ModelProto) -> list[NDArray[np.float32]]:
    """All weights of a published graph in the order in which it uses them, which is that of our layers.

    Single numbers are left out: they scale attention, or belong to the detector's last layer, which we do not use.
    """
    stored = {tensor.name: tensor for tensor in graph.graph.initializer}
    weights: list[NDArray[np.float32]] = []
    for node in graph.graph.node:
        for name in node.input:
            is_weight = name in stored and stored[name].data_type == onnx.TensorProto.FLOAT
            array = onnx.numpy_helper.to_array(stored[name]) if is_weight else np.empty(0, np.float32)
            if array.size > 1 and not name.startswith(CONSTANT):
                weights.append((array.T if node.op_type == "MatMul" else array).copy())
    return weights
