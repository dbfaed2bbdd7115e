"""Whether two neighbours are read row by row, as in a receipt or a table, or one after the other, as columns are."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from serving.pipelines.reading_order.rows import Piece, rows_of

Span = tuple[float, float]

FOLLOWING = 1.3  # widest gap between lines that follow one another, in sizes
LEVEL = 0.14  # how far the two sides of a row may be off on average, in sizes; more where there are few rows
SHIFTED = 0.35  # how far all rows of a side may be off together, in sizes
PAIRED = 0.9  # share of rows that must pair up across a gutter
OTHER = 1.9  # type is of another size from this ratio on: a word without tall letters seems smaller than it is
NONE = 0.5  # offset that a row without partner counts as, in sizes
CLOSE = 1.5  # gap from which even two rows are columns, in sizes
SHORT = 6.0  # widest price, number or single word, in sizes


class Side:
    """What stands on one side of a gutter, as rows from top to bottom."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        rows = rows_of(pieces)
        self.foreign = any(piece.inside for piece in pieces)
        self.lefts, self.rights = [row[0].left for row in rows], [row[-1].right for row in rows]
        self.middles = [median(piece.middle for piece in row) for row in rows]
        self.sizes = [median(piece.size for piece in row) for row in rows]
        self.size = median(self.sizes)
        self.runs = joined_spans(((piece.top, piece.bottom) for piece in pieces), FOLLOWING * self.size)
        self.numbers = _most(all(piece.number for piece in row) for row in rows)
        self.labels = _most(row[-1].label for row in rows)
        self.cells = _most(any(b.left - a.right > CLOSE * self.size for a, b in pairwise(row)) for row in rows)

    def narrow(self, size: float) -> bool:
        """Whether three rows in four are no more than a word or a number in type of a size."""
        widths = sorted(right - left for left, right in zip(self.lefts, self.rights, strict=True))
        return self.numbers or widths[math.ceil(0.75 * len(widths)) - 1] <= SHORT * size

    def flush_right(self) -> bool:
        """Whether rows end but do not begin at the same place: figures, the parts in a cast, never prose."""
        return len(self.rights) > 2 and _spread(self.rights) < 0.5 * self.size and _spread(self.lefts) > self.size


def in_rows(left: Side, right: Side) -> bool:
    """Whether two neighbours are read row by row.

    That is so if nothing stands side by side, so that they are no columns at all, or if the rows of the shorter one
    have a partner at their own height and one side cannot be prose: prices, quantities, bullets, labels.
    """
    if not any(top < end and start < bottom for top, bottom in left.runs for start, end in right.runs):
        return True
    if left.foreign or right.foreign:
        return False
    offsets = _offsets(left, right)
    shift, size = median(offsets), (left.size + right.size) / 2
    if len(offsets) < 3 and min(right.lefts) - max(left.rights) < CLOSE * size and abs(shift) < NONE:
        return True  # a wide space between words
    if len(left.middles) == len(right.middles) == 1 and abs(shift) < SHIFTED:
        return True  # what stands alone at the same height: the two ends of a heading or a footer
    off = sorted(abs(offset - shift) for offset in offsets)[: math.ceil(PAIRED * len(offsets))]
    if sum(off) > LEVEL * (len(off) + 1) or abs(shift) > SHIFTED:
        return False
    if left.narrow(size) or right.narrow(size) or left.labels or left.flush_right() or right.flush_right():
        return True
    return left.cells != right.cells  # a table of which a long word closes a gutter; two such are price lists


def in_lists(sides: Sequence[Side]) -> list[bool]:
    """For each gutter of a table whether rows reach across it after all: not between lists that stand side by side.

    Those are alike: each time, say, a wide column and a narrow one, dishes and prices or bullets and points.
    """
    size = median(side.size for side in sides)
    narrow = [side.narrow(size) for side in sides]
    for length in range(2, len(sides) // 2 + 1):
        unit, count = narrow[:length], len(sides) // length
        if unit * count == narrow and any(unit) and not all(unit):
            return [gutter % length > 0 for gutter in range(1, len(sides))]
    return [True] * (len(sides) - 1)


def joined_spans(spans: Iterable[Span], least: float) -> list[Span]:
    """Spans as few that leave at least `least` between them."""
    joined: list[Span] = []
    for left, right in sorted(spans):
        if joined and left - joined[-1][1] < least:
            joined[-1] = (joined[-1][0], max(joined[-1][1], right))
        else:
            joined.append((left, right))
    return joined


def _offsets(left: Side, right: Side) -> list[float]:
    """How much lower the nearest row across the gutter is than each row of the shorter side, in sizes.

    A row of quite another size is no partner, nor is one that is too far off.
    """
    fewer, more = sorted((left, right), key=lambda side: len(side.middles))
    usual = (left.size + right.size) / 2
    offsets = []
    for middle, size in zip(fewer.middles, fewer.sizes, strict=True):
        place = bisect_left(more.middles, middle)
        near = range(max(place - 1, 0), min(place + 1, len(more.middles)))
        partner = min(near, key=lambda row: abs(more.middles[row] - middle))
        small, large = sorted((size, more.sizes[partner]))
        off = (more.middles[partner] - middle) / usual
        offsets.append(min(max(off, -NONE), NONE) if large < OTHER * small else NONE)
    return offsets


def _most(values: Iterable[bool]) -> bool:
    """Whether at least half of them hold."""
    known = list(values)
    return 2 * sum(known) >= len(known)


def _spread(values: Sequence[float]) -> float:
    """The mean distance from the middle one."""
    middle = median(values)
    return sum(abs(value - middle) for value in values) / len(values)
