"""The order in which a level page is read: columns one after the other, rows of a receipt as wholes.

A page is cut into strips wherever nothing stands from side to side. Strips that follow one another and leave the same
gutters free are one region. Its gutters part columns, unless rows pair up across them as in a receipt or a table.
Each column is then a page of its own.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from serving.pipelines.reading_order.rows import Block, Piece, rows_of
from serving.pipelines.reading_order.tables import (
    FOLLOWING,
    OTHER,
    SHORT,
    Side,
    Span,
    in_lists,
    in_rows,
    joined_spans,
)

Row = list[Piece]  # what is read as one line, from left to right

GUTTER = 0.6  # least width of a gutter, in sizes
APART = 3.0  # a strip that is further from columns above, in sizes, does not belong to them
DEEPEST = 40  # columns within columns


def in_reading_order(pieces: Sequence[Piece], depth: int = 0) -> Iterator[Block]:
    """Blocks of lines."""
    flow: list[Row] = []
    for region in _regions(pieces):
        columns = _columns(region) if depth < DEEPEST else [region]
        if len(columns) == 1:
            flow += rows_of(region)
            continue
        yield from _blocks(flow)
        flow = []
        for column in columns:
            yield from in_reading_order(column, depth + 1)
    yield from _blocks(flow)


def _strips(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces between cuts from side to side, from top to bottom."""
    strip: list[Piece] = []
    bottom = float("-inf")
    for piece in sorted(pieces, key=lambda piece: piece.top):
        if strip and piece.top > bottom:
            yield strip
            strip = []
        bottom = max(bottom, piece.bottom)
        strip.append(piece)
    yield strip


def _regions(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Runs of strips that leave the same gutters free, from top to bottom."""
    size = median(piece.size for piece in pieces)
    region: list[Piece] = []
    last: list[Piece] = []
    covered: list[Span] = []
    for strip in _strips(pieces):
        own = joined_spans(((piece.left, piece.right) for piece in strip), GUTTER * size)
        both = joined_spans([*covered, *own], GUTTER * size)
        if region:
            gap = (strip[0].top - max(piece.bottom for piece in last)) / size
            alike = gap < FOLLOWING or (
                gap < APART and _same_type(last, strip) and _same_columns(covered, own, both, size)
            )
            if not alike or len(both) == 1 < max(len(covered), len(own)):  # or it would close all gutters
                yield region
                region, both = [], own
        region, last, covered = region + strip, strip, both
    yield region


def _same_type(above: list[Piece], below: list[Piece]) -> bool:
    """Whether strips are set in much the same size: a headline ends what is above it."""
    small, large = sorted(median(piece.size for piece in strip) for strip in (above, below))
    return large < OTHER * small


def _same_columns(above: list[Span], below: list[Span], both: list[Span], size: float) -> bool:
    """Whether what is not line after line still has the same columns, given what each covers and both together.

    The last one must begin at the same place if it is wide: above columns, the right end of a running title does not.
    """
    if len(above) == 1 or len(both) not in (len(above), len(below)):
        return False
    wide = both[-1][1] - both[-1][0] > SHORT * size
    return not wide or len(above) != len(below) or abs(above[-1][0] - below[-1][0]) < 2 * size


def _columns(region: list[Piece]) -> list[list[Piece]]:
    """What lies between the gutters, from left to right; a gutter that rows reach across is none."""
    size = median(piece.size for piece in region)
    spans = joined_spans(((piece.left, piece.right) for piece in region), GUTTER * size)
    starts = [left for left, _ in spans]
    parts: list[list[Piece]] = [[] for _ in spans]
    for piece in region:
        parts[bisect_right(starts, piece.left) - 1].append(piece)
    sides = [Side(part) for part in parts]
    together = [in_rows(left, right) for left, right in pairwise(sides)]
    if all(together):
        together = in_lists(sides)
    columns = [parts[0]]
    for part, joined in zip(parts[1:], together, strict=True):
        if joined:
            columns[-1] = columns[-1] + part
        else:
            columns.append(part)
    return columns


def _blocks(flow: Sequence[Row]) -> Iterator[Block]:
    """Rows that follow one another closely in much the same size."""
    if not flow:
        return
    sizes = [max(piece.size for piece in row) for row in flow]
    middles = [median(piece.middle for piece in row) for row in flow]
    steps = [below - above for above, below in pairwise(middles)]
    usual = median(steps) if steps else 0.0
    start = 0
    for end in range(1, len(flow) + 1):
        if end < len(flow) and not flow[end][0].inside and not flow[end - 1][0].inside:
            small, large = sorted(sizes[end - 1 : end + 1])
            if large < 1.5 * small and steps[end - 1] < max(1.35 * usual, 1.6 * large):
                continue
        yield from _finished(flow[start:end])
        start = end


def _finished(block: Sequence[Row]) -> Iterator[Block]:
    """Rows as lines; of a part that is read on its own, its blocks."""
    if block[0][0].inside:
        yield from block[0][0].inside
    else:
        yield Block(tuple(tuple(word for piece in row for word in piece.words) for row in block))
