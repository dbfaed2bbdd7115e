"""The gate every export must pass: torch and onnxruntime agree at several batch sizes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from torch import nn

SMALL_BATCHES = (1, 2, 7)
WORD_TOLERANCE = 1e-3  # of probabilities: a difference in logits of 1e-4 can grow so much on noise
LEAST_SCORE = 0.05  # of a detector's cell whose direction is compared


class ParityError(Exception):
    """The exported graph does not compute what the network computes."""


def check_parity(module: nn.Module, file: Path, frame: tuple[int, ...], *, max_batch: int, tolerance: float) -> float:
    """Compare all outputs at batch 1, 2, 7 and the largest; returns the worst difference or raises ParityError."""
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    [graph_input] = session.get_inputs()
    generator = np.random.default_rng(0)
    worst = 0.0
    for batch in dict.fromkeys((*SMALL_BATCHES, max_batch)):
        pixels = _pictures(generator, batch, frame)
        with torch.inference_mode():
            answer = module(torch.from_numpy(pixels))
        answers = [part.numpy() for part in (answer if isinstance(answer, tuple) else (answer,))]
        for expected, actual in zip(answers, session.run(None, {graph_input.name: pixels}), strict=True):
            if actual.shape != expected.shape:
                raise ParityError(f"{file.name} at batch {batch}: shape {actual.shape}, torch has {expected.shape}")
            # In parts of the largest value: what is divided by a small temperature has large ones.
            difference = float(np.abs(actual - expected).max()) / max(1.0, float(np.abs(expected).max()))
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


def check_maps(module: nn.Module, file: Path, multiple: int, *, max_batch: int) -> float:
    """Compare a detector's maps at several batch and picture sizes; returns the worst difference or raises.

    Scores must agree, and so must boxes, in parts of the word's size, and their axes. Which end of its axis a word is
    read to may be a matter of rounding where there is none: it is not compared in cells of very low scores.
    """
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    [graph_input] = session.get_inputs()
    generator = np.random.default_rng(0)
    worst = 0.0
    for batch, rows, columns in ((1, 1, 1), (2, 3, 2), (max_batch, 2, 5), (1, 7, 10)):
        pixels = _pictures(generator, batch, (rows * multiple, columns * multiple, 3))
        with torch.inference_mode():
            expected = module(torch.from_numpy(pixels)).numpy()
        [actual] = session.run(None, {graph_input.name: pixels})
        where = f"{file.name} at batch {batch}, {columns * multiple}×{rows * multiple} pixels"
        if actual.shape != expected.shape:
            raise ParityError(f"{where}: shape {actual.shape}, torch has {expected.shape}")
        apart = np.abs(actual - expected)
        boxes = apart[..., 1:5] / expected[..., [3, 3, 3, 4]]
        axes = np.abs(actual[..., 5] * expected[..., 6] - actual[..., 6] * expected[..., 5])  # |sin| between both
        ends = apart[expected[..., 0] > LEAST_SCORE, 5:]
        # np.max, as max passes over a NaN that comes second
        difference = float(np.max([apart[..., 0].max(), boxes.max(), axes.max(), ends.max(initial=0.0)]))
        if not difference <= WORD_TOLERANCE:  # a NaN fails too
            raise ParityError(
                f"{where}: worst difference to torch {difference:.3g}, at most {WORD_TOLERANCE:.3g} is allowed; "
                "the graph was not kept"
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
