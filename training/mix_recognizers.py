"""Mixes the weights of two recognisers of one origin: what a training learned, and what its start knew."""

from dataclasses import replace
from pathlib import Path

from training.errors import DataError
from training.models.recognizer import Recognizer, load_recognizer, save_recognizer


def mix_recognizers(start: str, trained: str, share: float, file: Path) -> Recognizer:
    """Write (1 − share) · start + share · trained as a checkpoint.

    Two networks that lie in one valley of the loss can be mixed weight by weight; the mixture of a start and what was
    tuned from it is often better than either, as it forgets less.
    """
    if not 0 <= share <= 1:
        raise DataError(f"share must be between 0 and 1, not {share}")
    first, second = load_recognizer(start), load_recognizer(trained)
    if first.shape != second.shape:
        raise DataError(f"{start} has the shape {first.shape}, {trained} has {second.shape}; they must be equal")
    weights = second.state_dict()
    for name, value in first.state_dict().items():
        if value.is_floating_point():
            weights[name].lerp_(value, 1 - share)
    second.provenance = replace(second.provenance, losses=(*second.provenance.losses, "mixed"))
    save_recognizer(second, file)
    return second
