"""Lays words out in lines, flat: letters on nothing, and the box of each word."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.fonts import Font
from training.data.rendering import Random
from training.data.vocabulary import Vocabulary
from training.data.words import Pixels
from training.errors import DataError

SIZES = (12, 16, 22, 30, 42, 60, 84, 120, 170)  # few, so that opened fonts are used again; a warp does the rest
MARGIN = 0.095  # around the ink, in heights of it: the median of ICDAR'15's annotators, on all four sides
LITTLE = ("of", "the", "and", "to", "in", "for", "&", "at", "by", "on", "is", "a", "no", "we", "your", "all", "new")
CASES: tuple[Callable[[str], str], ...] = (str.upper, str.capitalize, str.lower, str)  # str: as it was drawn
TRIES = 20


@dataclass(frozen=True)
class Style:
    """How a line is written."""

    font: Font
    size: int  # one of SIZES
    case: Callable[[str], str]
    tracking: float  # pixels between letters beyond what the font has
    stroke: int  # pixels
    gap: float  # between words' ink, in pixels


@dataclass(frozen=True)
class Word:
    """One word, cut to its ink."""

    text: str
    letters: Pixels  # [h, w]
    rise: int  # of the ink's top above the baseline


@dataclass(frozen=True)
class Layout:
    """A block of text."""

    letters: Pixels  # [h, w], 0…255
    boxes: NDArray[np.float32]  # [M, 4] left, top, right, bottom of each word's ink and its margin
    texts: list[str]
    rows: NDArray[np.int64]  # [h] which line each row of pixels belongs to
    size: int  # of most letters, one of SIZES

    def padded(self, left: int, top: int, right: int, bottom: int) -> "Layout":
        """With room around it, in pixels."""
        letters = np.pad(self.letters, ((top, bottom), (left, right)))
        boxes = self.boxes + np.array([left, top, left, top], dtype=np.float32)
        rows = np.pad(self.rows, (top, bottom), mode="edge")
        return replace(self, letters=letters, boxes=boxes, rows=rows)

    def quads(self) -> NDArray[np.float32]:
        """The boxes' corners, clockwise from the top left: [M, 4, 2]."""
        return self.boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]


class Typesetter:
    """Sets one block after another. What is set depends on the random numbers alone."""

    def __init__(self, fonts: Sequence[Font], vocabulary: Vocabulary) -> None:
        if not fonts:
            raise DataError("there is no font to write with; install some, for instance the package fonts-dejavu")
        self.fonts, self.vocabulary = fonts, vocabulary
        # Signs are written plainly: one large collection of fancy letters must not write most of them.
        folders = [Path(font.path).parent for font in fonts]
        sizes = Counter(folders)
        weights = np.array([sizes[folder] ** -0.5 for folder in folders])
        self.shares = np.cumsum(weights / weights.sum())  # [F], each font's up to it

    def set_block(self, random: Random, size: float, lines: int, words: int) -> Layout:
        """At most so many lines of so many words, in letters of the next size in SIZES."""
        number = min(int(np.searchsorted(SIZES, size)), len(SIZES) - 1)
        style = self._style(random, number)
        mixed = lines > 1 and random.uniform() < 0.35
        written = []
        for _ in range(lines):
            if mixed:
                style = self._style(random, int(np.clip(number + random.integers(-2, 2), 0, len(SIZES) - 1)))
            count = words if random.uniform() < 0.5 else int(random.integers(1, words + 1))
            written.append((style, [self._word(random, style) for _ in range(count)]))
        return _assembled(written, SIZES[number], random)

    def _style(self, random: Random, number: int) -> Style:
        size = SIZES[number]
        tracking = random.normal(0.04, 0.08) * size if random.uniform() < 0.15 else 0.0
        gap = np.clip(0.24 * np.exp(random.normal(0, 0.55)), 0.15, 1.5) * size + 1.5 * max(tracking, 0)
        font = self.fonts[min(int(np.searchsorted(self.shares, random.uniform())), len(self.fonts) - 1)]
        stroke = int(random.uniform() < 0.1) * max(1, size // 30)
        case = CASES[int(random.choice(len(CASES), p=(0.45, 0.25, 0.15, 0.15)))]
        return Style(font, size, case, max(tracking, -0.06 * size), stroke, gap)

    def _word(self, random: Random, style: Style) -> Word:
        for _ in range(TRIES):
            text = style.case(self._text(random))
            for candidate in (text, text.upper()):  # of fonts, some have capitals only
                if style.font.can_write(candidate) and any(character.isalnum() for character in candidate):
                    word = _written(candidate, style)
                    if word is not None:
                        return word
        raise DataError("no font can write the words; are these Latin words and fonts?")

    def _text(self, random: Random) -> str:
        """Signs have shorter words than dictionaries: half of ICDAR'15's have 5 letters or fewer."""
        if random.uniform() < 0.12:
            return LITTLE[int(random.integers(len(LITTLE)))]
        draw = self.vocabulary.word if random.uniform() < 0.6 else self.vocabulary.draw
        return min((draw(random) for _ in range(int(random.integers(2, 6)))), key=len)


def _written(text: str, style: Style) -> Word | None:
    """The ink of a text; None if there is none."""
    size, face = style.size, style.font.at(style.size)
    width = face.getlength(text) + max(style.tracking, 0) * len(text)
    picture = Image.new("L", (int(width) + 3 * size, 3 * size))
    draw = ImageDraw.Draw(picture)
    if style.tracking:
        x = float(size)
        for character in text:
            draw.text((x, 2 * size), character, 255, face, anchor="ls", stroke_width=style.stroke)
            x += face.getlength(character) + style.tracking
    else:
        draw.text((size, 2 * size), text, 255, face, anchor="ls", stroke_width=style.stroke)
    frame = picture.getbbox()
    if frame is None:
        return None
    return Word(text, np.asarray(picture.crop(frame), dtype=np.uint8), 2 * size - frame[1])


def _assembled(lines: Sequence[tuple[Style, list[Word]]], size: int, random: Random) -> Layout:
    """Lines one below the other, all to the left, centred or to the right."""
    widths = [sum(word.letters.shape[1] for word in words) + style.gap * (len(words) - 1) for style, words in lines]
    room = 2 + int(0.25 * max(style.size for style, _ in lines))  # for margins, outlines and shadows
    leading = np.clip(0.18 * np.exp(random.normal(0, 0.7)), 0.04, 1.2)
    rises, falls = zip(*(_extent(style, words) for style, words in lines), strict=True)
    steps = [int(leading * style.size) + 1 for style, _ in lines]
    height = sum(rises) + sum(falls) + sum(steps[1:]) + 2 * room
    letters = np.zeros((height, int(max(widths)) + 2 * room + 1), dtype=np.uint8)
    rows, boxes, texts = np.zeros(height, dtype=np.int64), [], []
    side = random.choice([0.0, 0.5, 0.5, 1.0])
    top = room
    for number, (style, words) in enumerate(lines):
        top += steps[number] if number else 0
        rows[top - steps[number] // 2 :] = number
        x = room + side * (max(widths) - widths[number])
        for word in words:
            high, wide = word.letters.shape
            left, y = int(x), top + rises[number] - word.rise
            letters[y : y + high, left : left + wide] = np.maximum(
                letters[y : y + high, left : left + wide], word.letters
            )
            margin = MARGIN * high
            boxes.append((left - margin, y - margin, left + wide + margin, y + high + margin))
            texts.append(word.text)
            x += wide + style.gap
        top += rises[number] + falls[number]
    return Layout(letters, np.array(boxes, dtype=np.float32), texts, rows, size)


def _extent(style: Style, words: Sequence[Word]) -> tuple[int, int]:
    """How far a line reaches above and below its baseline: alike in all lines of a style, or they would dance."""
    rise = max([word.rise for word in words] + [int(0.7 * style.size)])
    fall = max(
        [word.letters.shape[0] - word.rise for word in words]
        + [0 if style.case is str.upper else int(0.2 * style.size)]
    )
    return rise, fall
