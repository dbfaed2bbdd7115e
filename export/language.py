"""The recogniser's language, from labels of crops and lists of words to `language.npz`.

Letters after letters are counted and smoothed as Witten and Bell do: a context that was followed by few kinds of
letters is believed, one that was followed by many leaves room for others.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from serving.language import BEGIN, END, LETTERS, Language, core
from training.data.vocabulary import DICTIONARY
from training.data.words import read_words
from training.errors import DataError

ORDER = 4  # letters: a letter and three before it; 3 to 6 read equally well
# Debian's lists of English words, each holding the one before it and rarer words; and how often its own words come up.
LISTS = {"american-english-small": 0.6, "american-english": 0.25, "american-english-large": 0.15}
# Shares of words: those of labels, those of lists, others spelled like words, and what is spelled in any way.
LABELLED, LISTED, OTHER, CODE = 0.4, 0.35, 0.05, 0.2
Listed = Sequence[tuple[float, Iterable[str]]]  # lists of words with their shares


def export_language(folders: Sequence[Path], file: Path, *, weight: float, bonus: float) -> Language:
    """Learn from the crops of the set `train` and from this machine's lists, and write `file`."""
    labels = [crop.text for folder in folders for crop in read_words(folder) if crop.set_name == "train"]
    language = learn_language(labels, debian_lists(), weight=weight, bonus=bonus)
    file.parent.mkdir(parents=True, exist_ok=True)
    language.write(file)
    return language


def learn_language(
    labels: Iterable[str], lists: Listed, *, order: int = ORDER, weight: float = 0.0, bonus: float = 0.0
) -> Language:
    """Count the words of labels and of lists, and the letters of both."""
    counts = Counter(map(core, labels))
    total = counts.total()
    if not total:
        raise DataError("there is no label to learn a language from")
    listed = _listed(lists)
    words = {word: LABELLED * count / total for word, count in counts.items()}
    for word, probability in listed.items():
        words[word] = words.get(word, 0.0) + LISTED * probability
    weights = {word: counts[word] + total * listed.get(word, 0.0) for word in words}
    return Language(words, OTHER, CODE, *_count_letters(weights, order), order, weight, bonus)


def _listed(lists: Listed) -> dict[str, float]:
    """Words and their probabilities; a word belongs to the first list that has it. Accents are no letters here."""
    listed: dict[str, float] = {}
    for share, entries in lists:
        own = {core(entry.removesuffix("'s")) for entry in entries if entry.isascii()} - listed.keys() - {""}
        listed.update({word: share / len(own) for word in own})
    return listed


def _count_letters(weights: Mapping[str, float], order: int) -> tuple[dict[str, float], dict[str, float]]:
    """`follows` and `falls_back` of words with these weights."""
    counts: list[dict[str, dict[str, float]]] = [{} for _ in range(order)]  # by the context's length: context → letters
    for word, weight in weights.items():
        padded = BEGIN * (order - 1) + word + END
        for place in range(order - 1, len(padded)):
            for length in range(order):
                following = counts[length].setdefault(padded[place - length : place], defaultdict(float))
                following[padded[place]] += weight
    probabilities: dict[str, float] = {}
    falls_back: dict[str, float] = {}
    for by_context in counts:
        for context, following in by_context.items():
            seen, kinds = sum(following.values()), len(following)
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
    return [
        (share, (DICTIONARY / name).read_text(encoding="utf-8", errors="replace").split("\n"))
        for name, share in LISTS.items()
    ]
