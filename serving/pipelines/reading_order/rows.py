"""Who follows whom in a row: words with spaces between them make pieces, pieces at the same height make rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.pipelines.reading_order.shapes import Floats, Indices
from serving.pipelines.reading_order.slopes import Boxes

SPACE = 1.0  # widest gap between words of one piece, in heights, where words stand far apart
CUT = 0.35  # half the height of a line that a cut must not touch, in sizes: boxes are never exact
TALL = 1.6  # as many times higher than its neighbour, a word may have several rows beside it
AT_ONCE = 64  # words of which the neighbours are looked for at once


@dataclass(frozen=True)
class Block:
    """Lines that belong together, each the words in it."""

    lines: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Piece:
    """Words that follow one another with nothing but spaces between, or a part of the page that is read on its own."""

    left: float
    right: float
    middle: float
    size: float  # height of the type
    words: tuple[int, ...] = ()
    number: bool = False  # a price or a quantity
    label: bool = False  # announces what stands to its right
    inside: tuple[Block, ...] = ()  # of a part that is read on its own
    half: float = 0.0  # its height

    @property
    def top(self) -> float:
        """Where a cut above it may run."""
        return self.middle - (self.half if self.inside else CUT * self.size)

    @property
    def bottom(self) -> float:
        """Where a cut below it may run."""
        return self.middle + (self.half if self.inside else CUT * self.size)


def pieces_of(boxes: Boxes, words: Indices, texts: Sequence[str] | None) -> list[Piece]:
    """The boxes' words as pieces; `words` [M] are their numbers among all words, `texts` those of all words."""
    return [_piece(boxes, chain, words[chain], texts) for chain in _close(*_followers(boxes))]


def rows_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces at the same height as rows, from top to bottom; a part that is read on its own is a row."""
    alone = [[piece] for piece in pieces if piece.inside]
    others = [piece for piece in pieces if not piece.inside]
    edges = np.array([(piece.left, piece.right, piece.middle, piece.size) for piece in others])
    left, right, middle, size = edges.reshape(-1, 4).T
    following, _ = _followers(Boxes((left + right) / 2, middle, right - left, size))
    rows = alone + [[others[number] for number in chain] for chain in _chains(following)]
    # By the lowest top: a tall letter begins with the first row beside it and ends with the last.
    return sorted(rows, key=lambda row: max(piece.middle - max(piece.size / 2, piece.half) for piece in row))


def lines_to_level(boxes: Boxes, doubts: Floats) -> list[Indices]:
    """Words that must be level with each other: close ones, and pairs in a row that stand far from each other if the
    slope between them may be an error. `doubts` [M] are usual errors of slopes.

    There must be three such pairs at least, as two signs side by side need not hang at the same height.
    """
    following, gaps = _followers(boxes)
    first = np.flatnonzero((following >= 0) & (gaps > SPACE))
    second = following[first]
    level = np.abs(boxes.y[second] - boxes.y[first]) < 1.5 * doubts[first] * (boxes.x[second] - boxes.x[first])
    pairs = list(np.stack([first[level], second[level]], axis=1))
    return _close(following, gaps) + (pairs if len(pairs) > 2 else [])


def _close(following: Indices, gaps: Floats) -> list[Indices]:
    """Words [M] as lists with nothing but spaces between."""
    usual = gaps[gaps < 1.5]
    # Beyond twice the usual space begins the next column; justified lines have wide spaces themselves.
    widest = float(np.clip(2.5 * np.median(usual), 0.6, SPACE)) if len(usual) else SPACE
    return [np.array(chain) for chain in _chains(np.where(gaps <= widest, following, -1))]


def _piece(boxes: Boxes, chain: Indices, words: Indices, texts: Sequence[str] | None) -> Piece:
    """The size is that of most of it: not of a large initial, a raised figure or a row of dots."""
    heights, widths = boxes.heights[chain], boxes.widths[chain]
    order = np.argsort(heights)
    told = np.cumsum(np.minimum(widths, 10 * heights)[order])  # dots are wider than any word of their height
    size = float(heights[order][np.searchsorted(told, told[-1] / 2)])
    usual = np.abs(np.log(heights / size)) < np.log(1.5)
    text = "".join(texts[word] for word in words) if texts else ""
    digits = sum(character.isdigit() for character in text)
    return Piece(
        left=float((boxes.x[chain] - widths / 2).min()),
        right=float((boxes.x[chain] + widths / 2).max()),
        middle=float(boxes.y[chain][usual].mean()),
        size=size,
        words=tuple(words.tolist()),
        number=2 * digits >= max(len(text), 1),
        label=text.endswith(":"),
    )


def _followers(boxes: Boxes) -> tuple[Indices, Floats]:
    """For each box [M] the one that follows it in its row, or −1, and the gap between in heights, or infinity.

    Each has at most one follower and follows at most one: the nearest.
    """
    forth, gaps = _nearest_aside(boxes, 1)
    back, _ = _nearest_aside(boxes, -1)
    mutual = (forth >= 0) & (back[forth] == np.arange(len(forth)))
    return np.where(mutual, forth, -1), np.where(mutual, gaps, np.inf)


def _nearest_aside(boxes: Boxes, side: int) -> tuple[Indices, Floats]:
    """For each box [M] its neighbour in its row, to the right (1) or left (−1), and the gap between in heights.

    Two boxes are of one row if half the height of the lower one is common to both. Beside a tall letter or word stand
    several rows: the first of them goes on after it, the last of them leads to it.
    """
    found, gaps = np.full(len(boxes.x), -1), np.full(len(boxes.x), np.inf)
    x, top, bottom = side * boxes.x, boxes.y - boxes.heights / 2, boxes.y + boxes.heights / 2
    order = np.argsort(boxes.y)
    for start in range(0, len(order), AT_ONCE):
        own = order[start : start + AT_ONCE]
        others = np.flatnonzero((bottom > top[own].min()) & (top < bottom[own].max()))  # far fewer than all
        here, there = own[:, None], others[None, :]
        low = np.minimum(boxes.heights[here], boxes.heights[there])
        high = np.maximum(boxes.heights[here], boxes.heights[there])
        common = np.minimum(bottom[here], bottom[there]) - np.maximum(top[here], top[there])
        ahead = np.where(x[there] == x[here], side * (there - here), x[there] - x[here])
        gap = x[there] - x[here] - (boxes.widths[here] + boxes.widths[there]) / 2
        below = boxes.y[there] - boxes.y[here]
        tall = boxes.heights[here] > TALL * boxes.heights[there]
        cost = gap + np.where(tall, 3 * side * below, 0.5 * np.abs(below))
        cost[(ahead <= 0) | (common < low / 2) | (gap < -np.maximum(0.5 * low, 0.2 * high))] = np.inf
        best = np.argmin(cost, axis=1)
        some = np.flatnonzero(np.isfinite(cost[np.arange(len(own)), best]))
        found[own[some]] = others[best[some]]
        gaps[own[some]] = (gap / high)[some, best[some]]
    return found, gaps


def _chains(following: Indices) -> list[list[int]]:
    """Boxes as lists: each that follows none, and its followers."""
    after = following.tolist()
    chains = []
    for first in sorted(set(range(len(after))) - set(after)):
        chain = [first]
        while after[chain[-1]] >= 0:
            chain.append(after[chain[-1]])
        chains.append(chain)
    return chains
