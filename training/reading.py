"""Reads word crops with a recogniser in torch, as the service reads them with the exported graph."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from rich.progress import track

from training.data.canvas import place, turns
from training.data.words import Pixels
from training.models.prediction import Reading
from training.models.recognizer import Recognizer

BATCH = 32
CLEARLY = 0.1  # so much surer must a turned crop be read than the crop as it is


def read_crops(model: Recognizer, crops: Sequence[Pixels], *, quiet: bool = True) -> list[Reading]:
    """One reading a crop; tall crops are also read on either side, and the surest reading is taken."""
    canvas = model.shape.canvas
    asked = [(number, turn) for number, crop in enumerate(crops) for turn in turns(crop)]
    by_width: dict[int, list[tuple[int, int]]] = {}
    for number, turn in asked:
        height, width = crops[number].shape[:2][:: -1 if turn else 1]
        by_width.setdefault(canvas.width_of(height, width), []).append((number, turn))
    found: dict[tuple[int, int], Reading] = {}
    chunks = [
        (width, members[start : start + BATCH])
        for width, members in sorted(by_width.items())
        for start in range(0, len(members), BATCH)
    ]
    with torch.inference_mode():
        shown: Iterable = chunks if quiet else track(chunks, description="reading")
        for width, members in shown:
            pixels = np.stack([place(np.rot90(crops[number], turn), canvas, width) for number, turn in members])
            found |= zip(members, model.read(model(normalised(torch.from_numpy(pixels)))), strict=True)
    return [surest({turn: found[number, turn] for turn in turns(crop)})[1] for number, crop in enumerate(crops)]


def surest(readings: dict[int, Reading]) -> tuple[int, Reading]:
    """Of readings by turn, the one to believe, with its turn: as it is, unless another is clearly surer."""
    turn = max(readings, key=lambda turn: readings[turn].sureness)
    return (turn, readings[turn]) if readings[turn].sureness > readings[0].sureness + CLEARLY else (0, readings[0])


def normalised(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 [N, H, W, C] → float [N, C, H, W] in −1…1."""
    return pixels.permute(0, 3, 1, 2).float().div_(127.5).sub_(1)
