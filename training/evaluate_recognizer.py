"""Scores a recogniser on validation crops and keeps the figures in `metrics.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from training.data.words import WordCrop, read_words
from training.errors import DataError
from training.figures import Figures
from training.metrics.classification import reliability_of
from training.metrics.edit_distance import alphanumeric_only, score_readings
from training.models.recognizer import Recognizer
from training.reading import answer, surest

ALL = "all"
SCORES = {"": True, "printable ": False}  # name of a score, and does it compare [0-9a-z] only?


class Decoder(Protocol):
    """Another way to make words of logits than the best answer at each place."""

    @property
    def language(self) -> str:
        """The sha256 of the language it knows, or nothing."""

    def __call__(self, logits: Mapping[int, Tensor], temperature: float) -> tuple[str, float]:
        """From logits of a crop by quarter turns to its text, and how sure that is."""


@dataclass(frozen=True)
class RecognizerFigures(Figures):
    """What `metrics.json` of a recogniser holds."""

    temperature: float = 1.0  # by which scores are divided, so that confidences can be believed
    language: str = ""  # sha256 of the language that was read with


def evaluate_recognizer(
    model: Recognizer, folders: Sequence[Path], decoder: Decoder | None = None
) -> RecognizerFigures:
    """Accuracy, NED and TED of each source and of all `val` crops together.

    Compared case-insensitively on [0-9a-z], as the thesis does, and once more as they stand ("printable"). The
    temperature that makes a word's confidence its probability of being right is found on every second crop, and the
    calibration error (`ece`) measured on the others. Read letter by letter; or by a decoder, and then the figures
    letter by letter are there, too.
    """
    crops = validation_crops(folders)
    answers = answer(model, [crop.load() for crop in crops], quiet=False)
    truths = [alphanumeric_only(crop.text) for crop in crops]

    def confidences(temperature: float) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_]]:
        readings = [(decoder or letter_by_letter)(each, temperature) for each in answers]
        right = [alphanumeric_only(text) == truth for (text, _), truth in zip(readings, truths, strict=True)]
        return [text for text, _ in readings], np.array([sure for _, sure in readings]), np.array(right)

    def letter_by_letter(logits: Mapping[int, Tensor], temperature: float) -> tuple[str, float]:
        reading = surest(model, logits, temperature)
        return reading.text, reading.confidence

    known, held_back = slice(0, None, 2), slice(1, None, 2)

    def surprise(log_temperature: float) -> float:
        _, confidence, right = confidences(np.exp(log_temperature))
        sure = np.clip(np.where(right, confidence, 1 - confidence)[known], 1e-6, None)
        return float(-np.log(sure).mean())

    best = minimize_scalar(surprise, bounds=(-1.5, 1.5), method="bounded", options={"xatol": 0.02})
    temperature = round(float(np.exp(best.x)), 3)
    texts, confidence, right = confidences(temperature)
    metrics = reading_figures(crops, texts)
    if decoder:
        plain_figures = reading_figures(crops, [letter_by_letter(each, 1.0)[0] for each in answers])
        kinds = ("accuracy", "ned", "ted")
        metrics |= {
            f"{name} letter by letter": value
            for name, value in plain_figures.items()
            if name.rpartition("/")[2] in kinds
        }
    _, plain, plainly_right = confidences(1.0)
    metrics["all/ece before scaling"] = round(reliability_of(plain[held_back], plainly_right[held_back]).ece, 4)
    metrics["all/ece"] = round(reliability_of(confidence[held_back], right[held_back]).ece, 4)
    return RecognizerFigures(metrics, temperature=temperature, language=decoder.language if decoder else "")


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
