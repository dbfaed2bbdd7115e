"""How likely a word is before anything was seen of it: a list of known words, and which letters follow one another.

    P(word) = P(word is a known one) + P(other) · Π P(letter | letters before it) + P(code) · Π 1 / 37

A code is any row of letters and digits: a number plate is no worse for not being a word.

`language.npz` lies beside the recogniser; `readleaf export language` writes it. Words are letters and digits without
case, as `core` makes them of a text.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serving.errors import ModelCorrupt

BEGIN, END = "^", "$"  # of a word, among its letters
LETTERS = 37  # the letters, the digits and the end
AFTER_EACH = "\n"  # entry of a table
TABLES = ("words", "follows", "falls_back")
_NOT_COUNTED = re.compile("[^0-9a-z]")


def core(text: str) -> str:
    """What is judged of a text: its letters and digits, without case."""
    return _NOT_COUNTED.sub("", text.lower())


@dataclass(frozen=True)
class Language:
    """Scores words; `follows` and `falls_back` are a model of letters with contexts of up to `order` − 1 of them."""

    words: dict[str, float]  # known word → its probability
    other: float  # the share of words that are not known but spelled like words
    code: float  # the share of those that are spelled in any way
    follows: dict[str, float]  # letters → log-probability of the last after those before
    falls_back: dict[str, float]  # letters → log-weight of a shorter context where a letter never followed these
    order: int
    weight: float = 0.0  # of log P beside what is seen
    bonus: float = 0.0  # for each letter, as P alone prefers short words

    def __post_init__(self) -> None:
        settings = (self.other, self.code, self.weight, self.bonus)
        numbers = np.array([*settings, *self.words.values(), *self.follows.values(), *self.falls_back.values()])
        if not np.isfinite(numbers).all() or self.order < 1 or min(settings) < 0:
            raise ValueError("a language needs finite numbers, shares of 0 and more, and contexts of 1 letter and more")

    def score(self, word: str) -> float:
        """What speaks for a word: weight · log P(word) + bonus · letters."""
        probability = (
            self.words.get(word, 0.0)
            + self.other * math.exp(self._spelled(word))
            + self.code * LETTERS ** -(len(word) + 1.0)
        )
        return self.weight * math.log(max(probability, 1e-300)) + self.bonus * len(word)

    def _spelled(self, word: str) -> float:
        """The log-probability of a word letter by letter."""
        padded = BEGIN * (self.order - 1) + word + END
        return sum(
            self._after(padded[place - self.order + 1 : place], padded[place])
            for place in range(self.order - 1, len(padded))
        )

    def _after(self, context: str, letter: str) -> float:
        known = self.follows.get(context + letter)
        if known is not None:
            return known
        shorter = self._after(context[1:], letter) if context else -math.log(LETTERS)
        return self.falls_back.get(context, 0.0) + shorter

    def write(self, file: Path) -> None:
        """Write it; `read_language` reads it."""
        tables: dict[str, Any] = {}  # numpy's types know no keywords
        for name in TABLES:
            table: dict[str, float] = dict(sorted(getattr(self, name).items()))
            entries = "".join(entry + AFTER_EACH for entry in table)
            tables[name] = np.frombuffer(entries.encode(), dtype=np.uint8)
            tables[f"{name}_values"] = np.array(list(table.values()), dtype=np.float32)
        settings = np.array([self.other, self.code, self.order, self.weight, self.bonus])
        with file.open("wb") as stream:  # of a path, numpy would change the name
            np.savez_compressed(stream, settings=settings, **tables)


def read_language(file: Path) -> Language:
    """Read what `write` wrote; raises ModelCorrupt if it is damaged."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            tables = {}
            for name in TABLES:
                entries = stored[name].tobytes().decode().split(AFTER_EACH)[:-1]
                tables[name] = dict(zip(entries, stored[f"{name}_values"].tolist(), strict=True))
            other, code, order, weight, bonus = stored["settings"].tolist()
        return Language(other=other, code=code, order=int(order), weight=weight, bonus=bonus, **tables)
    except Exception as error:  # numpy and zipfile raise many kinds on a damaged file
        raise ModelCorrupt(f"{file} is no language that can be read ({error}); export one again") from error
