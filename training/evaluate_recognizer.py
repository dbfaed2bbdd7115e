"""Scores a recogniser on validation crops and keeps the figures in `metrics.json`."""

from collections.abc import Sequence
from pathlib import Path

from training.data.words import WordCrop, read_words
from training.errors import DataError
from training.figures import Figures
from training.metrics.edit_distance import score_readings
from training.models.recognizer import Recognizer
from training.reading import read_crops

ALL = "all"
SCORES = {"": True, "printable ": False}  # name of a score, and does it compare [0-9a-z] only?


def evaluate_recognizer(model: Recognizer, folders: Sequence[Path]) -> Figures:
    """Accuracy, NED and TED of each source and of all `val` crops together.

    Compared case-insensitively on [0-9a-z], as the thesis does, and once more as they stand ("printable").
    """
    crops = validation_crops(folders)
    texts = [reading.text for reading in read_crops(model, [crop.load() for crop in crops], quiet=False)]
    return Figures(reading_figures(crops, texts))


def validation_crops(folders: Sequence[Path]) -> list[WordCrop]:
    """All crops of the set `val`."""
    crops = [crop for folder in folders for crop in read_words(folder) if crop.set_name == "val"]
    if not crops:
        raise DataError("no crop of the set val in the data")
    return crops


def reading_figures(crops: Sequence[WordCrop], texts: Sequence[str]) -> dict[str, float]:
    """Figures of readings by source, and of all of them."""
    figures: dict[str, float] = {}
    sources = [*sorted({crop.source for crop in crops}), ALL]
    for source in sources:
        own = [place for place, crop in enumerate(crops) if source in (ALL, crop.source)]
        for name, alphanumeric in SCORES.items():
            scored = score_readings(
                [texts[place] for place in own], [crops[place].text for place in own], alphanumeric=alphanumeric
            )
            figures[f"{source}/{name}accuracy"] = round(scored.accuracy, 4)
            figures[f"{source}/{name}ned"] = round(scored.ned, 4)
            figures[f"{source}/{name}ted"] = float(scored.ted)
    return figures
