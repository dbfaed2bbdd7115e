"""The gate every export must pass: torch and onnxruntime agree at several batch sizes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from torch import nn

SMALL_BATCHES = (1, 2, 7)
WORD_TOLERANCE = 1e-3  # of probabilities: a difference in logits of 1e-4 can grow so much on noise


class ParityError(Exception):
    """The exported graph does not compute what the network computes."""


def check_parity(module: nn.Module, file: Path, frame: tuple[int, ...], *, max_batch: int, tolerance: float) -> float:
    """Compare outputs at batch 1, 2, 7 and the largest; returns the worst difference or raises ParityError."""
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    [graph_input] = session.get_inputs()
    generator = np.random.default_rng(0)
    worst = 0.0
    for batch in dict.fromkeys((*SMALL_BATCHES, max_batch)):
        pixels = _pictures(generator, batch, frame)
        with torch.inference_mode():
            expected = module(torch.from_numpy(pixels)).numpy()
        [actual] = session.run(None, {graph_input.name: pixels})
        if actual.shape != expected.shape:
            raise ParityError(f"{file.name} at batch {batch}: shape {actual.shape}, torch has {expected.shape}")
        difference = float(np.abs(actual - expected).max())
        if not difference <= tolerance:  # a NaN fails too
            raise ParityError(
                f"{file.name} at batch {batch}: worst difference to torch {difference:.3g}, "
                f"at most {tolerance:.3g} is allowed; the graph was not kept"
            )
        worst = max(worst, difference)
    return worst


def check_words(
    module: nn.Module, file: Path, height: int, widths: Sequence[int], *, max_batch: int, channels: int = 3
) -> float:
    """Compare a recogniser's answers at several batch sizes and widths; returns the worst difference or raises.

    Probabilities must agree, and so must classes wherever their rank is not a matter of rounding.
    """
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    [graph_input] = session.get_inputs()
    generator = np.random.default_rng(0)
    worst = 0.0
    for width in widths:
        for batch in dict.fromkeys((*SMALL_BATCHES, max_batch if width == min(widths) else 1)):
            pixels = _pictures(generator, batch, (height, width, channels))
            with torch.inference_mode():
                classes, expected = (part.numpy() for part in module(torch.from_numpy(pixels)))
            found, actual = session.run(None, {graph_input.name: pixels})
            if actual.shape != expected.shape:
                raise ParityError(f"{file.name} at batch {batch}: shape {actual.shape}, torch has {expected.shape}")
            difference = float(np.abs(actual - expected).max())
            steps = np.diff(expected, axis=-1, prepend=np.inf, append=-np.inf)
            clear = np.minimum(-steps[..., :-1], -steps[..., 1:]) > 2 * WORD_TOLERANCE  # from the ranks around it
            if not difference <= WORD_TOLERANCE or (found != classes)[clear].any():
                raise ParityError(
                    f"{file.name} at batch {batch}, width {width}: worst difference to torch {difference:.3g}, "
                    f"at most {WORD_TOLERANCE:.3g} is allowed; the graph was not kept"
                )
            worst = max(worst, difference)
    return worst


def _pictures(generator: np.random.Generator, batch: int, frame: tuple[int, ...]) -> np.ndarray:
    """Half noise, half smooth gradients: a graph may agree on one and fail on the other."""
    noise = generator.integers(0, 256, (batch, *frame), dtype=np.uint8)
    height, width, channels = frame
    slopes = generator.uniform(-1, 1, (batch, 2, channels))
    rows, columns = np.linspace(-1, 1, height), np.linspace(-1, 1, width)
    smooth = (
        128
        + 60 * rows[None, :, None, None] * slopes[:, None, None, 0]
        + 60 * columns[None, None, :, None] * slopes[:, None, None, 1]
    ).astype(np.uint8)
    return np.where((np.arange(batch) % 2 == 0)[:, None, None, None], smooth, noise)
