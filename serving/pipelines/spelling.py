"""From a recogniser's answers, place by place, to words: the likely ones, and how likely each is.

Of all words that the answers allow, a beam search finds the most probable (for CTC: summed over all ways to write a
word into the columns). A language then says which of those are words, and both together decide.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from serving.language import Language, core

Kind = Literal["ctc", "attention"]
Column = list[tuple[str, float]]  # what may stand at a place, and how probably; "" is the blank, or the end
Words = dict[str, float]  # and their probabilities, up to a common factor
WIDTH = 24  # words that are followed at once
# Probability from which an answer is followed. What the network is surer of than this leaves open is not for the
# language to mend: a clear misspelling is read as it stands.
LEAST = 0.02


@dataclass(frozen=True)
class Character:
    """One character, how sure it is, and what else may stand there."""

    text: str
    confidence: float
    alternatives: tuple[tuple[str, float], ...]  # most probable first


@dataclass(frozen=True)
class Spelling:
    """A word, and the others that it was chosen from."""

    text: str
    confidence: float  # how probably its letters and digits are right; of signs alone, the signs; of nothing, 0
    candidates: tuple[tuple[str, float], ...] = ()  # texts and their shares, the largest first

    def characters(self) -> tuple[Character, ...]:
        """How sure each character is: the share of candidates that have it at its place."""
        shares: list[dict[str, float]] = [defaultdict(float) for _ in self.text]
        for text, share in self.candidates:
            for place, part in enumerate(_at_places(self.text, text)):
                shares[place][part] += share
        found = []
        for own, parts in zip(self.text, shares, strict=True):
            others = sorted(((part, share) for part, share in parts.items() if part != own), key=lambda each: -each[1])
            found.append(Character(own, min(1.0, parts[own]), tuple(others)))
        return tuple(found)


class Speller:
    """Makes words of a recogniser's answers."""

    def __init__(self, symbols: str, kind: Kind, language: Language | None = None, temperature: float = 1.0) -> None:
        """`temperature` is what scores are divided by to be believed as log-probabilities."""
        self._symbols = (*symbols, "")
        self._search = {"ctc": written_in_columns, "attention": written_in_steps}[kind]
        self._language = language
        self._temperature = temperature

    def __call__(self, classes: Sequence[Sequence[int]], probabilities: Sequence[Sequence[float]]) -> Spelling:
        """The word of one crop: classes and probabilities [places, answers], the best answer first."""
        columns: list[Column] = [
            [(self._symbols[number], value) for number, value in zip(*row, strict=True) if value >= LEAST]
            for row in zip(classes, probabilities, strict=True)
        ]
        followed = math.prod(min(1.0, sum(value for _, value in column)) for column in columns)
        return self._choose(self._search(columns), followed)

    def _choose(self, words: Words, followed: float) -> Spelling:
        """Texts that differ only in case and signs stand for one another; the likeliest of the best ones is taken.

        `followed` is the probability that what is right is among the answers that were followed at all.
        """
        by_core: dict[str, Words] = {}
        for text, probability in words.items():
            by_core.setdefault(core(text), {})[text] = probability
        scores = {
            letters: math.log(sum(texts.values())) + (self._language.score(letters) if self._language else 0.0)
            for letters, texts in by_core.items()
        }
        best = max(scores, key=lambda letters: scores[letters])
        weights = {letters: math.exp((score - scores[best]) / self._temperature) for letters, score in scores.items()}
        total = sum(weights.values())
        shares = {
            text: weights[letters] / total * probability / sum(texts.values())
            for letters, texts in by_core.items()
            for text, probability in texts.items()
        }
        text = max(by_core[best], key=lambda each: by_core[best][each])
        confidence = weights[best] / total if best else shares[text] if text else 0.0
        return Spelling(text, followed * confidence, tuple(sorted(shares.items(), key=lambda each: -each[1])))


def surest(spellings: Mapping[int, Spelling], surer_by: float) -> int:
    """In which quarter turn a crop is to be read: as it is (0), unless it is read clearly surer in another."""
    best = max(spellings, key=lambda turn: spellings[turn].confidence)
    return best if spellings[best].confidence > spellings[0].confidence + surer_by else 0


def written_in_columns(columns: Sequence[Column], width: int = WIDTH) -> Words:
    """CTC: the most probable words. A word is written by every path that becomes it when equal neighbours are joined
    and blanks left out.
    """
    words = {"": (1.0, 0.0)}  # probability of the paths that end with a blank, and of those that end with a letter
    for column in columns:
        longer: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for word, (blank, letter) in words.items():
            for symbol, probability in column:
                if not symbol:
                    longer[word][0] += (blank + letter) * probability
                elif word.endswith(symbol):
                    longer[word][1] += letter * probability
                    longer[word + symbol][1] += blank * probability
                else:
                    longer[word + symbol][1] += (blank + letter) * probability
        words = _likeliest(longer, width)
    return {word: sum(ends) for word, ends in words.items()}


def written_in_steps(columns: Sequence[Column], width: int = WIDTH) -> Words:
    """Attention: the most probable words, one letter a step up to the end."""
    words = {"": (1.0, 0.0)}  # probability that it goes on, and that it has ended
    for column in columns:
        longer: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for word, (goes_on, ended) in words.items():
            longer[word][1] += ended
            for symbol, probability in column:
                longer[word + symbol][0 if symbol else 1] += goes_on * probability
        words = _likeliest(longer, width)
    return {word: sum(ends) for word, ends in words.items()}


def _likeliest(words: Mapping[str, Sequence[float]], width: int) -> dict[str, tuple[float, float]]:
    """The best few that are possible at all, scaled so that they do not vanish in a long line."""
    possible = ((word, first, second) for word, (first, second) in words.items() if first or second)
    kept = sorted(possible, key=lambda each: -each[1] - each[2])[:width]
    total = sum(first + second for _, first, second in kept)
    return {word: (first / total, second / total) for word, first, second in kept}


def _at_places(text: str, other: str) -> list[str]:
    """What another text has in place of each character of `text`; what it has more stands with the one before."""
    parts = [""] * len(text)
    for step in Levenshtein.opcodes(text, other) if text else ():
        if step.tag == "insert":  # at the very start nothing stands there yet
            parts[max(step.src_start - 1, 0)] += other[step.dest_start : step.dest_end]
        elif step.tag != "delete":
            for offset in range(step.src_end - step.src_start):
                parts[step.src_start + offset] += other[step.dest_start + offset]
    return parts
