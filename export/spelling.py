"""What the service will make of a network's answers, before there is a graph: for `readleaf evaluate`."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from export.repository import sha256_of
from export.words import best_answers
from serving.language import read_language
from serving.pipelines.spelling import Speller, surest
from training.models.recognizer import Recognizer
from training.reading import CLEARLY


class AsServed:
    """Decodes logits by quarter turns as the service does, with a language or without."""

    def __init__(self, model: Recognizer, language: Path | None) -> None:
        self.language = sha256_of(language) if language else ""
        self._known = read_language(language) if language else None
        self._shape = model.shape

    def __call__(self, logits: Mapping[int, Tensor], temperature: float) -> tuple[str, float]:
        """The text of a crop, and how sure that is."""
        speller = Speller(self._shape.symbols, self._shape.prediction, self._known, temperature)
        spellings = {}
        for turn, own in logits.items():
            classes, probabilities = best_answers(own)
            spellings[turn] = speller(classes.tolist(), probabilities.tolist())
        best = spellings[surest(spellings, CLEARLY)]
        return best.text, best.confidence
