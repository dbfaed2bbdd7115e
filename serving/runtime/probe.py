"""Asks whatever runs a model for an answer that is known, before it is trusted."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from serving.errors import ModelRefused
from serving.manifest import DetectorManifest, Manifest, Probe
from serving.runtime import Arrays

NUMBERS = 64  # of the answer that are kept
TOLERANCE = 1e-3  # graphics cards calculate with fewer digits; a wrong model is off by far more
ALIKE = 1e-4  # how much a picture's answer may depend on the pictures beside it

Run = Callable[[Arrays], dict[str, NDArray[np.float32]]]


def probe_picture(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Bars and slopes [height, width, colours] in whole numbers alone, so that every machine draws the same."""
    rows, columns, colours = np.indices(shape)
    bars = ((columns // 5 + rows // 17 * 3) % 3 == 0) & (rows % 17 > 3)
    slopes = (3 * columns + 2 * rows + 60 * colours) % 200 + 55
    return np.where(bars, 20, slopes).astype(np.uint8)


def probe_numbers(manifest: Manifest, outputs: Arrays) -> NDArray[np.float64]:
    """What is compared: numbers of the first picture's answer, evenly spaced."""
    floats = [tensor.name for tensor in manifest.outputs if tensor.dtype == "float32"]
    answer = np.asarray(outputs[(floats or [manifest.outputs[0].name])[0]][0], dtype=np.float64)
    if isinstance(manifest, DetectorManifest):
        answer = answer[..., 0]  # a box where nothing is written is a matter of rounding
    flat = answer.ravel()
    return np.asarray(flat[np.linspace(0, flat.size - 1, min(NUMBERS, flat.size)).astype(int)])


def make_probe(manifest: Manifest, run: Run) -> Probe:
    """What `run` answers now, to be kept in the manifest."""
    shape = manifest.example_shape
    outputs = run({manifest.inputs[0].name: probe_picture(shape)[None]})
    return Probe(shape=list(shape), answers=[round(float(value), 6) for value in probe_numbers(manifest, outputs)])


def check_answers(manifest: Manifest, run: Run) -> None:
    """Raise ModelRefused unless answers have the promised form, are numbers, stand alone, and are as at the export."""
    where = f"{manifest.name} version {manifest.version}"
    picture = probe_picture(tuple(manifest.probe.shape) if manifest.probe else manifest.example_shape)
    beside = 255 - picture[:, ::-1]
    name = manifest.inputs[0].name
    one = run({name: picture[None]})
    two = run({name: np.stack([picture, beside])}) if manifest.max_batch > 1 else None
    for tensor in manifest.outputs:
        shape = one[tensor.name].shape
        if len(shape) != len(tensor.shape) or any(
            wanted not in (-1, found) for wanted, found in zip(tensor.shape, shape, strict=True)
        ):
            raise ModelRefused(f"{where}: {tensor.name} came as {list(shape)}, its manifest says {tensor.shape}")
        if tensor.dtype == "float32" and not np.isfinite(one[tensor.name]).all():
            raise ModelRefused(f"{where}: {tensor.name} holds what is no number")
    found = probe_numbers(manifest, one)
    if two is not None and not (off := float(np.abs(probe_numbers(manifest, two) - found).max())) <= ALIKE:
        raise ModelRefused(f"{where}: a picture's answer differs by {off:.2g} if another picture is run with it")
    if manifest.probe is None:
        return
    wanted = np.array(manifest.probe.answers)
    off = float(np.abs(found - wanted).max()) if found.shape == wanted.shape else float("inf")
    if not off <= TOLERANCE:
        raise ModelRefused(
            f"{where}: what runs it here answers otherwise than at its export, by {off:.2g}; at most {TOLERANCE:.0e} "
            "is allowed: the file or what runs it is not what it should be"
        )
