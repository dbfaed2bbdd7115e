"""The pages of pages.toml, laid out with a real font: where each word stands, and how the page reads."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageFont

DESCRIBED = {page["name"]: page for page in tomllib.loads(Path(__file__).with_name("pages.toml").read_text())["page"]}
MARGIN = 0.07  # that a detector leaves around letters, in sizes
RAISED = 0.6  # size of a raised figure


@dataclass(frozen=True)
class Page:
    """Words where they stand, and the lines they make when read in order."""

    texts: list[str]
    quads: np.ndarray  # [M, 4, 2]
    lines: list[str]


@pytest.fixture(params=DESCRIBED)
def page(request):
    """Each page in turn."""
    return laid_out(request.param)


@pytest.fixture(scope="session")
def page_named():
    """`page_named("letter")`: one page."""
    return laid_out


@pytest.fixture(scope="session")
def turn():
    """`turn(quads, degrees)`: clockwise about the origin."""
    return turned


@cache
def laid_out(name):
    """The page that pages.toml describes."""
    texts, quads, lines, going_on = [], [], [], False
    for part in DESCRIBED[name]["part"]:
        own, rows = set_part(part)
        own = arched(own, part["arch"]) if "arch" in part else own
        quads.append(turned(own, part.get("turn", 0)) + part["at"])
        texts += [word for row in rows for word in row]
        if going_on:
            lines[-1] += rows.pop(0)
        lines += rows
        going_on = part.get("goes_on", False)
    return Page(texts, np.concatenate(quads), [" ".join(line) for line in lines])


def set_part(part):
    """Corners [M, 4, 2] of the words of a part from 0, 0 on, and its lines as lists of words."""
    size, stops = part.get("size", 16), part.get("stops")
    pitch, width, align = part.get("leading", 1.3) * size, part.get("width", 0), part.get("align", "left")
    space, full = font(size).getlength(" "), part.get("glyphs") == "full"
    text, quads, lines, room = part["text"].strip(), [], [], []
    if deep := part.get("initial"):
        initial, text = text.split(maxsplit=1)
        tall = size + (deep - 1) * pitch / 0.7  # capitals are 0.7 of a size high
        quads, end = set_words([initial], 0, size - tall + (deep - 1) * pitch, tall)
        room = [end + 0.2 * size] * deep  # that the first lines leave to it
    rows = (
        broken(text, width, size, room) if part.get("wrap") else ((line.split("|"), True) for line in text.split("\n"))
    )
    for count, (cells, last) in enumerate(rows):
        line = []
        for place, words in enumerate(cell.split() for cell in cells):
            length = sum(advance(word, size) for word in words) + space * (len(words) - 1)
            start = stops[place] if stops else 0
            x = start if start >= 0 else -start - length
            x += {"center": (width - length) / 2, "right": width - length}.get(align, sum(room[count : count + 1]))
            wide = space + (width - length) / max(len(words) - 1, 1) if align == "justify" and not last else space
            quads += set_words(words, x, count * pitch, size, wide, full)[0]
            line += [word.removeprefix("^") for word in words]
        lines.append(line)
    if deep:
        lines[0].insert(0, initial)
    return np.asarray(quads, dtype=float), lines


def broken(text, width, size, room):
    """Paragraphs in lines that fit into the width, less the room that the first ones leave; and whether one is last."""
    space = font(size).getlength(" ")
    for paragraph in text.split("\n"):
        line, used, count = [], 0.0, 0
        for word in paragraph.split():
            if line and used + advance(word, size) > width - sum(room[count : count + 1]):
                yield [" ".join(line)], False
                line, used, count = [], 0.0, count + 1
            line.append(word)
            used += advance(word, size) + space
        yield [" ".join(line)], True


def set_words(words, x, y, size, space=0.0, full=False):
    """The corners of words that follow one another from x on, and where the last one ends."""
    quads = []
    for word in words:
        letters, type_size = font_of(word, size)
        left, top, right, bottom = letters.getbbox(word.removeprefix("^"))
        if full:
            _, top, _, bottom = letters.getbbox("Ág")
        margin = MARGIN * type_size
        left, top, right, bottom = x + left - margin, y + top - margin, x + right + margin, y + bottom + margin
        quads.append([[left, top], [right, top], [right, bottom], [left, bottom]])
        x += advance(word, size) + space
    return quads, x - space


def advance(word, size):
    return font_of(word, size)[0].getlength(word.removeprefix("^"))


def font_of(word, size):
    size *= RAISED if word.startswith("^") else 1
    return font(size), size


@cache
def font(size):
    return ImageFont.load_default(size)


def turned(quads, degrees, around=(0.0, 0.0)):
    """Clockwise, as y points down."""
    angle = np.deg2rad(degrees)
    return (quads - around) @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]] + around


def arched(quads, radius):
    """Onto a circle that touches the line above at x = 0: words stay straight and stand on it."""
    middles = quads[..., 0].mean(axis=1)
    angles = np.rad2deg((middles - quads[..., 0].mean()) / radius)
    return np.stack(
        [
            turned(quad - [middle, 0], angle, (0, radius))
            for quad, middle, angle in zip(quads, middles, angles, strict=True)
        ]
    )
