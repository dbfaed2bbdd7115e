"""Learns which words are likely on photographs: from labels of crops, and from lists of words.

Letters after letters are counted and smoothed as Witten and Bell do: a context that was followed by few kinds of
letters is believed, one that was followed by many leaves room for others.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data.vocabulary import DICTIONARY
from training.errors import DataError
from training.metrics.edit_distance import alphanumeric_only

BEGIN, END = "^", "$"
LETTERS = 37  # the letters, the digits and the end
# Debian's lists of English words, each holding the one before it and rarer words; and how often its own words come up.
LISTS = {"american-english-small": 0.6, "american-english": 0.25, "american-english-large": 0.15}
# Shares of words: those of labels, those of lists, others spelled like words, and what is spelled in any way.
LABELLED, LISTED, OTHER, CODE = 0.4, 0.35, 0.05, 0.2


@dataclass(frozen=True)
class LearnedLanguage:
    """What was counted."""

    words: dict[str, float]  # probabilities of known words
    follows: dict[str, float]  # letters → log-probability of the last after those before
    falls_back: dict[str, float]  # letters → log-weight of what follows a shorter context


def learn_language(labels: Iterable[str], lists: Sequence[tuple[float, Sequence[str]]], order: int) -> LearnedLanguage:
    """Count words of labels, and of lists with their shares; contexts have up to `order` − 1 letters."""
    counts = Counter(map(alphanumeric_only, labels))
    total = counts.total()
    if not total:
        raise DataError("there is no label to learn a language from")
    listed = _listed(lists)
    words = {word: LABELLED * count / total for word, count in counts.items()}
    for word, probability in listed.items():
        words[word] = words.get(word, 0.0) + LISTED * probability
    weights = {word: counts[word] + total * listed.get(word, 0.0) for word in words}
    return LearnedLanguage(words, *_count_letters(weights, order))


def _listed(lists: Sequence[tuple[float, Sequence[str]]]) -> dict[str, float]:
    """Words and their probabilities; a word belongs to the first list that has it."""
    listed: dict[str, float] = {}
    for share, entries in lists:
        own = {alphanumeric_only(entry.removesuffix("'s")) for entry in entries} - listed.keys() - {""}
        listed.update({word: share / len(own) for word in own})
    return listed


def _count_letters(weights: Mapping[str, float], order: int) -> tuple[dict[str, float], dict[str, float]]:
    """`follows` and `falls_back` of words with these weights."""
    counts: list[dict[str, Counter[str]]] = [defaultdict(Counter) for _ in range(order)]  # by length of the context
    for word, weight in weights.items():
        padded = BEGIN * (order - 1) + word + END
        for place in range(order - 1, len(padded)):
            for length in range(order):
                counts[length][padded[place - length : place]][padded[place]] += weight  # type: ignore[assignment]
    probabilities: dict[str, float] = {}
    falls_back: dict[str, float] = {}
    for by_context in counts:
        for context, following in by_context.items():
            seen, kinds = following.total(), len(following)
            for letter, count in following.items():
                shorter = probabilities[context[1:] + letter] if context else 1 / LETTERS
                probabilities[context + letter] = (count + kinds * shorter) / (seen + kinds)
            falls_back[context] = math.log(kinds / (seen + kinds))
    return {letters: math.log(value) for letters, value in probabilities.items()}, falls_back


def debian_lists() -> list[tuple[float, list[str]]]:
    """This machine's lists of English words, with their shares; says what to install."""
    missing = [name for name in LISTS if not (DICTIONARY / name).is_file()]
    if missing:
        raise DataError(f"{DICTIONARY} lacks {', '.join(missing)}: install wamerican-small, wamerican, wamerican-large")
    return [(share, _lines(DICTIONARY / name)) for name, share in LISTS.items()]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")
