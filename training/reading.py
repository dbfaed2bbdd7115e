"""Reads word crops with a recogniser in torch, as the service reads them with the exported graph."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from rich.progress import track

from training.data.canvas import place, turns
from training.data.pixels import normalised
from training.data.words import Pixels
from training.models.prediction import Reading
from training.models.recognizer import Recognizer

Answers = dict[int, torch.Tensor]  # logits by quarter turns
BATCH = 32
CLEARLY = 0.1  # so much surer must a turned crop be read than the crop as it is


def read_crops(model: Recognizer, crops: Sequence[Pixels], *, quiet: bool = True) -> list[Reading]:
    """One reading a crop; tall crops are also read on either side, and the surest reading is taken."""
    return [surest(model, answers) for answers in answer(model, crops, quiet=quiet)]


def answer(model: Recognizer, crops: Sequence[Pixels], *, quiet: bool = True) -> list[Answers]:
    """Logits of each crop, [places, classes], in every turn that is worth reading."""
    canvas = model.shape.canvas
    by_width: dict[int, list[tuple[int, int]]] = {}
    for number, crop in enumerate(crops):
        for turn in turns(crop):
            height, width = crop.shape[:2][:: -1 if turn else 1]
            by_width.setdefault(canvas.width_of(height, width), []).append((number, turn))
    chunks = [
        (width, members[start : start + BATCH])
        for width, members in sorted(by_width.items())
        for start in range(0, len(members), BATCH)
    ]
    found: list[Answers] = [{} for _ in crops]
    with torch.inference_mode():
        for width, members in chunks if quiet else track(chunks, description="reading"):
            pixels = np.stack([place(np.rot90(crops[number], turn), canvas, width) for number, turn in members])
            for (number, turn), logits in zip(members, model(normalised(torch.from_numpy(pixels))), strict=True):
                found[number][turn] = logits
    return found


def surest(model: Recognizer, answers: Mapping[int, torch.Tensor], temperature: float = 1.0) -> Reading:
    """Of readings by turn, the one to believe: as the crop is, unless another is clearly surer."""
    readings = {turn: model.read(logits[None] / temperature)[0] for turn, logits in answers.items()}
    best = max(readings.values(), key=lambda reading: reading.sureness)
    return best if best.sureness > readings[0].sureness + CLEARLY else readings[0]
