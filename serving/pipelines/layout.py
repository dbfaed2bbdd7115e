"""Lines, blocks and their order, from words that a detector found at any angle.

Words are grouped by direction, each group is turned upright and made level, words with spaces between them become
pieces, and pieces are put into order: columns one after the other, rows of a receipt or a table as wholes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serving.pipelines.reading_order.columns import in_reading_order
from serving.pipelines.reading_order.directions import by_direction
from serving.pipelines.reading_order.rows import Block, Piece, lines_to_level, pieces_of
from serving.pipelines.reading_order.shapes import Floats, Indices, Shapes, measure, turned
from serving.pipelines.reading_order.slopes import Slopes, slopes_of, straightened

ROUNDS = 2  # of finding lines and making them level


@dataclass(frozen=True)
class Line:
    """Words that are read one after the other."""

    words: tuple[int, ...]  # indices in reading direction
    block: int  # of lines that belong together: a paragraph, a table, a sign; numbered in reading order


def arrange(quads: NDArray[np.float64], texts: Sequence[str] | None = None) -> list[Line]:
    """Lines in reading order.

    `quads` [M, 4, 2] are corners of words from the text's own top left, clockwise, y down. `texts` [M] help to tell a
    column of figures or labels from one of prose. What runs another way than most is read as a whole at its place.
    """
    quads = np.asarray(quads, dtype=np.float64).reshape(-1, 4, 2)
    if not len(quads):
        return []
    shapes = measure(quads)
    main, *others = by_direction(shapes)
    slopes, pieces = _level_pieces(shapes, main, texts)
    foreign = []
    for group in others:
        inside = tuple(in_reading_order(_level_pieces(shapes, group, texts)[1]))
        size = float(np.median(shapes.heights[group]))
        foreign.append(_whole(turned(quads[group].reshape(-1, 2), slopes.angle), inside, size, pieces))
    blocks = in_reading_order(pieces + foreign)
    return [Line(words, number) for number, block in enumerate(blocks) for words in block.lines]


def polygon_of(quads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners [4, 2] of the smallest rectangle in the line's own direction around its words [W, 4, 2].

    From its top left, clockwise.
    """
    starts, ends = (quads[:, 0] + quads[:, 3]) / 2, (quads[:, 1] + quads[:, 2]) / 2
    along = (ends - starts).sum(axis=0)
    angle = float(np.arctan2(along[1], along[0]))
    points = turned(np.concatenate([starts, ends]), angle)
    x, y = (points - points.mean(axis=0)).T
    # The slope of all words together is surer than the mean of their own, unless one is a large initial.
    tilt = float(np.arctan2(x @ y, x @ x))
    angle += tilt if abs(tilt) < np.deg2rad(5) else 0.0
    corners = turned(quads.reshape(-1, 2), angle)
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    return turned(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]), -angle)


def _level_pieces(shapes: Shapes, group: Indices, texts: Sequence[str] | None) -> tuple[Slopes, list[Piece]]:
    """Pieces of lines that were made level: first by the angles of words, then by the lines these show."""
    own = shapes[group]
    slopes = slopes_of(own)
    for _ in range(ROUNDS):
        slopes = slopes_of(own, lines_to_level(straightened(own, slopes), slopes.doubts(own.centers)))
    return slopes, pieces_of(straightened(own, slopes), group, texts)


def _whole(corners: Floats, inside: tuple[Block, ...], size: float, around: Sequence[Piece]) -> Piece:
    """What runs another way as one piece, corners [N, 2] in the frame of what is `around`.

    Its upright rectangle is larger than itself as it lies askew: it is kept from reaching into what is around if its
    middle is outside of that.
    """
    low, high = corners.min(axis=0), corners.max(axis=0)
    center, half = (low + high) / 2, np.maximum(0.45 * (high - low), 1e-9)
    edges = np.array([[piece.left, piece.top, -piece.right, -piece.bottom] for piece in around]).min(axis=0)
    free = np.maximum(edges[:2] - center, center + edges[2:]) - size  # from its middle to what is around, x and y
    axis = int(np.argmax(free / half))
    if free[axis] > 0:
        half[axis] = min(half[axis], free[axis])
    (x, y), (wide, tall) = center, half
    return Piece(float(x - wide), float(x + wide), float(y), size, inside=inside, half=float(tall))
