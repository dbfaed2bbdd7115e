"""Weights of a model that was exported, to train on from: a checkpoint is not always at hand, `models/` is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from training.errors import DataError
from training.models.provenance import Provenance


def is_shipped(place: str) -> bool:
    """Is this the folder of an exported model, as `models/detector`, or of one version, as `models/detector/1`?"""
    return _version(Path(place)) is not None


def load_shipped(model: nn.Module, place: str) -> Provenance:
    """Give a network the weights that lie in an exported model's graph; returns what they were learned from."""
    found, provenance = _contents(Path(place))
    wanted = model.state_dict()
    some = next(iter(wanted))
    prefix = next((name.removesuffix(some) for name in found if name.endswith(some)), None)
    missing = [name for name in wanted if prefix is None or f"{prefix}{name}" not in found]
    if missing:
        raise DataError(f"{place} does not hold the weights of this network: there is no {missing[0]}")
    model.load_state_dict({name: torch.from_numpy(found[f"{prefix}{name}"].copy()) for name in wanted})
    return provenance


def load_folded_backbone(backbone: nn.Module, place: str) -> Provenance:
    """The same for a backbone whose BatchNorm the exporter has folded into its convolutions.

    The folded bias goes back into the BatchNorm, which else does nothing any more: it must stay in evaluation.
    """
    found, provenance = _contents(Path(place))
    layers = list(backbone.named_modules())
    convolutions = [(name, layer) for name, layer in layers if isinstance(layer, nn.Conv2d)]
    norms = [layer for _, layer in layers if isinstance(layer, nn.BatchNorm2d)]
    for (name, convolution), norm in zip(convolutions, norms, strict=True):  # each is followed by its own
        weight, bias = (
            next((value for key, value in found.items() if key.endswith(f"backbone.{name}.{kind}")), None)
            for kind in ("weight", "weight_bias")
        )
        if weight is None or bias is None or weight.shape != tuple(convolution.weight.shape):
            raise DataError(f"{place} does not hold the weights of this backbone: there is no {name}")
        convolution.weight.data = torch.from_numpy(weight.copy())
        kept = {"weight": torch.full(bias.shape, (1.0 + norm.eps) ** 0.5), "bias": torch.from_numpy(bias.copy())}
        norm.load_state_dict(kept | {"running_mean": torch.zeros(bias.shape), "running_var": torch.ones(bias.shape)})
    return provenance


def _version(place: Path) -> Path | None:
    """The folder of the version that is meant: of several the newest."""
    there = [file.parent for file in place.glob("*/manifest.json") if file.parent.name.isdecimal()]
    if (place / "manifest.json").is_file():
        return place
    return max(there, key=lambda folder: int(folder.name), default=None)


def _contents(place: Path) -> tuple[dict[str, np.ndarray], Provenance]:
    """The constants of a graph by name, and what they were learned from."""
    folder = _version(place)
    if folder is None:
        raise DataError(f"{place} holds no exported model")
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    graph = onnx.load(folder / "model.onnx").graph
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    losses = manifest["title"].partition("trained with ")[2].split(", then ")
    return found, Provenance(tuple(manifest["training_data"]), tuple(filter(None, losses)))
