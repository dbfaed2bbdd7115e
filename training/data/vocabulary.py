"""Words to render: from a dictionary, and what else stands on signs, labels and receipts."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from training.alphabet import PRINTABLE

DICTIONARY = Path("/usr/share/dict")  # Debian's wamerican-huge and its like put their lists there
LONGEST = 22
# Enough to render something where there is no dictionary.
FEW_WORDS = (
    "leaf",
    "read",
    "market",
    "street",
    "open",
    "closed",
    "coffee",
    "hotel",
    "garden",
    "welcome",
    "exit",
    "sale",
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
# Signs around a word, and how often each comes up.
FRAMES = {
    **{
        "{}.": 8,
        "{},": 8,
        "{}'s": 8,
        "{}!": 6,
        "{}:": 5,
        "({})": 4,
        '"{}"': 4,
        "{}?": 3,
        "'{}'": 2,
        "#{}": 2,
        "@{}": 2,
    },
    **dict.fromkeys(
        ("&{}", "*{}", "[{}]", "{}-", "-{}", "{}/", "<{}>", "{{{}}}", "${}", "{}_", "={}", "+{}", "{};"), 1
    ),
    **dict.fromkeys(("~{}", "`{}", "^{}", "\\{}", "|{}", "{}&"), 1),
}
Random = np.random.Generator


def known_words() -> list[str]:
    """Words of the largest list of this machine, or a few of our own."""
    lists = [file for file in DICTIONARY.glob("*") if file.is_file()] if DICTIONARY.is_dir() else []
    if not lists:
        return list(FEW_WORDS)
    largest = max(lists, key=lambda file: file.stat().st_size)
    words = {
        line.strip().removesuffix("'s") for line in largest.read_text(encoding="utf-8", errors="ignore").split("\n")
    }
    return sorted(word for word in words if 0 < len(word) <= LONGEST and set(word) <= set(PRINTABLE))


class Vocabulary:
    """Draws texts of 1 to 22 printable characters without a space."""

    def __init__(self, words: Sequence[str] | None = None) -> None:
        self.words = list(known_words() if words is None else words)

    def draw(self, random: Random) -> str:
        """One text."""
        kinds = list(KINDS)
        kind = kinds[random.choice(len(kinds), p=[KINDS[each] for each in kinds])]
        return kind(self, random)[:LONGEST]

    def word(self, random: Random) -> str:
        """A word in one of the ways people write: small, capital, Title, rarely mIxed."""
        word = self.words[random.integers(len(self.words))]
        style = random.uniform()
        if style < 0.38:
            return word.upper()
        if style < 0.63:
            return word.capitalize()
        if style < 0.97:
            return word.lower()
        return "".join(letter.upper() if random.uniform() < 0.5 else letter.lower() for letter in word)


def word(vocabulary: Vocabulary, random: Random) -> str:
    """A word."""
    return vocabulary.word(random)


def marked(vocabulary: Vocabulary, random: Random) -> str:
    """A word with the signs that stand around words."""
    word = vocabulary.word(random)
    frames = list(FRAMES)
    weights = np.array([FRAMES[frame] for frame in frames], dtype=float)
    return frames[random.choice(len(frames), p=weights / weights.sum())].format(word)


def joined(vocabulary: Vocabulary, random: Random) -> str:
    """Two short words with a sign between them."""
    sign = "-&/.@+'"[random.integers(7)]
    return vocabulary.word(random)[:10] + sign + vocabulary.word(random)[:10]


def number(_: Vocabulary, random: Random) -> str:
    """Digits."""
    return _some(random, DIGITS, int(random.integers(1, 8)))


def price(_: Vocabulary, random: Random) -> str:
    """An amount with a sign."""
    amount = f"{_some(random, DIGITS, int(random.integers(1, 4)))}{'.,'[random.integers(2)]}{_some(random, DIGITS, 2)}"
    shapes = ("${}", "{}$", "{}", "{}%", "-{}%", "{}/-", "{}-")
    return shapes[random.integers(len(shapes))].format(amount)


def code(_: Vocabulary, random: Random) -> str:
    """Letters and digits as on number plates and products."""
    parts = [_some(random, DIGITS if random.uniform() < 0.5 else LETTERS, int(random.integers(1, 5))) for _ in range(3)]
    return ("", "-", "/", ".", "")[random.integers(5)].join(parts[: random.integers(2, 4)])


def moment(_: Vocabulary, random: Random) -> str:
    """A time or a date."""
    first, second, third = (f"{random.integers(limit):02d}" for limit in (24, 60, 32))
    shapes = ("{0}:{1}", "{0}:{1}am", "{0}.{1}", "{2}/{0}/20{1}", "{2}.{0}.{1}", "20{1}-{0}-{2}", "{0}:{1}-{2}:{1}")
    return shapes[random.integers(len(shapes))].format(first, second, third)


def address(vocabulary: Vocabulary, random: Random) -> str:
    """A host or a mailbox."""
    word = vocabulary.word(random).lower()[:12]
    return ("www.{}.com", "{}.com", "info@{}.org", "{}.net", "@{}")[random.integers(5)].format(word)


def anything(_: Vocabulary, random: Random) -> str:
    """Any printable characters."""
    return _some(random, PRINTABLE, int(random.integers(1, 10)))


def letter(_: Vocabulary, random: Random) -> str:
    """One letter or digit."""
    return _some(random, LETTERS + LETTERS.lower() + DIGITS, 1)


def _some(random: Random, characters: str, count: int) -> str:
    return "".join(characters[place] for place in random.integers(len(characters), size=count))


KINDS: dict[Callable[[Vocabulary, Random], str], float] = {
    word: 0.52,
    marked: 0.13,
    number: 0.09,
    price: 0.05,
    code: 0.07,
    moment: 0.03,
    address: 0.03,
    joined: 0.04,
    anything: 0.02,
    letter: 0.02,
}
