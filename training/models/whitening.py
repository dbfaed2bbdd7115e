"""A start for an embedder's last layer: the principal components of its features."""

import torch
from torch import Tensor, nn


def whiten(layer: nn.Linear, features: Tensor, power: float = 0.25) -> None:
    """Set a linear layer to project on the first principal components, each divided by (its variance)^power.

    features [N, in]. power 0 only turns the axes (PCA), 0.5 makes all of them equal (whitening).
    """
    if len(features) <= layer.out_features:
        raise ValueError(f"{layer.out_features} components need more than {len(features)} features")
    mean = features.mean(dim=0)
    centred = (features - mean).double()
    variances, axes = torch.linalg.eigh(centred.T @ centred / (len(features) - 1))  # ascending
    variances, axes = variances.flip(0)[: layer.out_features], axes.flip(1)[:, : layer.out_features]
    weight = (axes / variances.clamp(min=1e-12).pow(power)).T.to(layer.weight.dtype)  # [out, in]
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(-weight @ mean)
