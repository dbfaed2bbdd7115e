"""How wrong a reading is: edit distance and what is made of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from training.errors import DataError

NOT_ALPHANUMERIC = re.compile(r"[^0-9a-z]")


@dataclass(frozen=True)
class ReadingFigures:
    """Figures of a set of readings, as the thesis reports them."""

    accuracy: float  # share of words read without a mistake
    ned: float  # mean of 1 − distance / longer length
    ted: int  # total edit distance
    words: int


def alphanumeric_only(text: str) -> str:
    """The part of a text that the thesis compares: [0-9a-z], capitals made small."""
    return NOT_ALPHANUMERIC.sub("", text.lower())


def edit_distances(readings: Sequence[str], truths: Sequence[str]) -> NDArray[np.int64]:
    """Levenshtein distance of each reading to its truth: [N]."""
    if len(readings) != len(truths):
        raise DataError(f"{len(readings)} readings for {len(truths)} truths; there must be one for each")
    return np.asarray(cpdist(readings, truths, scorer=Levenshtein.distance, dtype=np.int64))


def score_readings(readings: Sequence[str], truths: Sequence[str], *, alphanumeric: bool = True) -> ReadingFigures:
    """Accuracy, NED and TED; `alphanumeric` compares case-insensitively on [0-9a-z] only, as the thesis does.

    Two empty words are equal: distance 0, NED 1.
    """
    if not truths:
        raise DataError("there are no words to score")
    if alphanumeric:
        readings, truths = ([alphanumeric_only(word) for word in words] for words in (readings, truths))
    distances = edit_distances(readings, truths)
    longer = np.array([max(len(a), len(b), 1) for a, b in zip(readings, truths, strict=True)])
    return ReadingFigures(
        accuracy=float((distances == 0).mean()),
        ned=float((1 - distances / longer).mean()),
        ted=int(distances.sum()),
        words=len(truths),
    )
