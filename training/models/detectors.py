"""The detectors that can be trained, by name, and their checkpoints."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from training.errors import DataError
from training.models.dense_detector import DenseDetector, DetectorShape
from training.models.provenance import Provenance
from training.models.rrpn import Rrpn, RrpnShape
from training.models.shipped import is_shipped, load_shipped

AnyDetector = DenseDetector | Rrpn
NETWORKS: dict[str, tuple[type[Any], type[Any]]] = {
    "dense": (DenseDetector, DetectorShape),
    "rrpn": (Rrpn, RrpnShape),
}


def save_detector(model: AnyDetector, file: Path) -> None:
    """Write a checkpoint; `load_detector` reads it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    [name] = [name for name, (network, _) in NETWORKS.items() if isinstance(model, network)]
    described = {"network": name, "shape": asdict(model.shape), "provenance": asdict(model.provenance)}
    torch.save({**described, "weights": model.state_dict()}, file)


def load_detector(weights: str) -> AnyDetector:
    """A checkpoint of `save_detector`."""
    if not Path(weights).is_file():
        raise DataError(f"there is no checkpoint at {weights}")
    try:
        stored = torch.load(weights, map_location="cpu", weights_only=True)
        network, shape = NETWORKS[stored["network"]]
        known = {key: tuple(value) if isinstance(value, list) else value for key, value in stored["shape"].items()}
        model: AnyDetector = network(shape(**known))
        model.load_state_dict({name: value.float() for name, value in stored["weights"].items()})
        model.provenance = Provenance(**{key: tuple(value) for key, value in stored["provenance"].items()})
    except Exception as error:  # torch.load raises whatever a foreign file provokes
        raise DataError(f"{weights} is not a checkpoint of a detector: {str(error).partition(chr(10))[0]}") from error
    return model.eval()


def detector_from(place: str) -> AnyDetector:
    """The network of a checkpoint or of an exported detector, to train on."""
    if not is_shipped(place):
        return load_detector(place)
    model = DenseDetector(DetectorShape())
    model.provenance = load_shipped(model, place)
    return model.eval()


def load_dense_detector(weights: str) -> DenseDetector:
    """A checkpoint of the detector that can be served."""
    model = load_detector(weights)
    if not isinstance(model, DenseDetector):
        raise DataError(f"{weights} holds an RRPN; only the dense detector can be served")
    return model
