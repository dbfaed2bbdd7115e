"""What the service will make of a network's answers, before there is a graph: for `readleaf evaluate`."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from export.words import best_answers
from serving.language import read_language
from serving.pipelines.spelling import Speller, surest
from training.evaluate_recognizer import Decode
from training.models.recognizer import Recognizer
from training.reading import CLEARLY


def as_served(model: Recognizer, language: Path) -> Decode:
    """Decodes logits by quarter turns as the service does with a language."""
    known = read_language(language)

    def decode(logits: Mapping[int, Tensor], temperature: float) -> tuple[str, float]:
        speller = Speller(model.shape.symbols, model.shape.decoder, known, temperature)
        spellings = {turn: speller(*best_answers(own)) for turn, own in logits.items()}
        best = spellings[surest(spellings, CLEARLY)]
        return best.text, best.confidence

    return decode
