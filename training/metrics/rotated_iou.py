"""Intersection over union of rotated rectangles, for whole arrays at once.

A box is (cx, cy, w, h, degrees), turned counter-clockwise in mathematical axes. The area two convex shapes share
is half the sum of x₁y₂ − x₂y₁ over its border, and that border consists of the pieces of each shape's edges that
lie inside the other: so each edge is clipped by the other's four half-planes, and nothing has to be sorted.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Edges nearer than this share of the boxes' size lie on one line, and one of the two is left out.
ON_ONE_LINE = 1e-11
CHUNK_PAIRS = 1 << 12  # so many at a time stay in the cache


def rotated_iou(first: ArrayLike, second: ArrayLike) -> Floats:
    """IoU of each pair: first [N, 5], second [N, 5] → [N]. A box without area has IoU 0 with everything."""
    a, b = check_boxes("first", first), check_boxes("second", second)
    if a.shape != b.shape:
        raise ValueError(f"first has {len(a)} boxes, second {len(b)}; they are compared pair by pair")
    near = np.flatnonzero(_may_touch(a, b))
    result = np.zeros(len(a))
    parts = [near[start : start + CHUNK_PAIRS] for start in range(0, len(near), CHUNK_PAIRS)]

    def fill(part: NDArray[np.int64]) -> None:
        result[part] = _iou(a[part], b[part])

    if len(parts) < 2:
        for part in parts:
            fill(part)
    else:  # numpy's loops run outside the interpreter lock
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            list(workers.map(fill, parts))
    return result


def rotated_iou_matrix(first: ArrayLike, second: ArrayLike) -> Floats:
    """IoU of every pair: first [N, 5], second [M, 5] → [N, M]. Boxes too far apart to touch are not computed."""
    a, b = check_boxes("first", first), check_boxes("second", second)
    rows, columns = np.nonzero(_may_touch(a[:, None], b[None]))
    result = np.zeros((len(a), len(b)))
    result[rows, columns] = rotated_iou(a[rows], b[columns])
    return result


def _may_touch(a: Floats, b: Floats) -> Mask:
    """Whether the circles around two boxes meet; [..., 5] each."""
    distance = np.hypot(a[..., 0] - b[..., 0], a[..., 1] - b[..., 1])
    reach = (np.hypot(a[..., 2], a[..., 3]) + np.hypot(b[..., 2], b[..., 3])) / 2
    return np.asarray(distance <= reach * (1 + 1e-9))


def check_boxes(name: str, boxes: ArrayLike) -> Floats:
    """Finite boxes [N, 5] with sizes of at least 0."""
    array = np.asarray(boxes, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 5:
        raise ValueError(f"{name} must be [N, 5] (cx, cy, w, h, degrees), not {list(array.shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    if (array[:, 2:4] < 0).any():
        raise ValueError(f"{name} holds a box of negative size")
    return array


def corners(boxes: Floats) -> Floats:
    """The four corners of each box, counter-clockwise: [N, 5] → [N, 4, 2]."""
    return np.stack(_corners(boxes.T)).transpose(2, 1, 0)


def _corners(boxes: Floats) -> tuple[Floats, Floats]:
    """x and y of the corners, [4, N] each. From here on boxes come last: long loops over them are fast ones."""
    x, y, width, height, degrees = boxes
    angle = np.deg2rad(degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    along = np.array([[-0.5], [0.5], [0.5], [-0.5]]) * width
    across = np.array([[-0.5], [-0.5], [0.5], [0.5]]) * height
    return along * cosine - across * sine + x, along * sine + across * cosine + y


def _iou(a: Floats, b: Floats) -> Floats:
    # Around a's centre, in units of the pair's size: rounding errors then do not depend on where boxes lie.
    size = np.maximum(np.maximum(a[:, 2], a[:, 3]), np.maximum(b[:, 2], b[:, 3]))
    scale = np.where(size > 0, size, 1.0)
    a_local, b_local = a.T.copy(), b.T.copy()
    b_local[:2] -= a_local[:2]
    a_local[:2] = 0
    a_local[:4] /= scale
    b_local[:4] /= scale
    area_a, area_b = a_local[2] * a_local[3], b_local[2] * b_local[3]
    shared = np.clip(_shared_area(_corners(a_local), _corners(b_local)), 0, np.minimum(area_a, area_b))
    union = area_a + area_b - shared
    return np.divide(shared, union, out=np.zeros_like(union), where=union > 0)


class _Edges:
    """The edges of N quadrilaterals: where they begin, which way and how far they run; all [4, N]."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self.x, self.y = x, y
        self.dx, self.dy = _next(x) - x, _next(y) - y
        length = np.hypot(self.dx, self.dy)
        length[length == 0] = 1.0
        self.length = length
        self.ux, self.uy = self.dx / length, self.dy / length

    def heights(self, other: "_Edges") -> Floats:
        """How far inside each of these edges each corner of the other lies: [own edge, other's corner, N]."""
        offset = self.ux * self.y - self.uy * self.x
        return self.ux[:, None] * other.y - self.uy[:, None] * other.x - offset[:, None]


def _shared_area(a_corners: tuple[Floats, Floats], b_corners: tuple[Floats, Floats]) -> Floats:
    """Area of the intersection of convex quadrilaterals."""
    a, b = _Edges(*a_corners), _Edges(*b_corners)
    a_start, b_start = b.heights(a), a.heights(b)  # [b, a, N], [a, b, N]
    a_end, b_end = _next(a_start, axis=1), _next(b_start, axis=1)
    a_on_b = (np.abs(a_start) <= ON_ONE_LINE) & (np.abs(a_end) <= ON_ONE_LINE)
    b_on_a = (np.abs(b_start) <= ON_ONE_LINE) & (np.abs(b_end) <= ON_ONE_LINE)
    one_line = a_on_b | b_on_a.swapaxes(0, 1)  # [b, a, N]
    forward = b.ux[:, None] * a.dx + b.uy[:, None] * a.dy  # how far a's edge runs along b's
    same_way = forward > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        on_a = -a_start / (a_end - a_start)  # where b's line cuts a's edge, as a share of it
        own = -b_start / (b_end - b_start)  # where a's line cuts b's edge
        # Nearly parallel lines meet at a badly known point: both edges must then end at the *same* one.
        ahead = b.ux[:, None] * a.x + b.uy[:, None] * a.y - (b.ux * b.x + b.uy * b.y)[:, None]
        along = (ahead + on_a * forward) / b.length[:, None]
        on_edge = (on_a > -1) & (on_a < 2)  # further off, a's edge does not end there
    on_b = np.where(on_edge, along, own.swapaxes(0, 1)).swapaxes(0, 1)
    # Of two edges on one line that run the same way a's counts; that run against each other, neither does.
    inside_a = _border(a, a_start, a_end, on_a, ignore=one_line & same_way, exclude=one_line & ~same_way)
    inside_b = _border(b, b_start, b_end, on_b, ignore=None, exclude=one_line.swapaxes(0, 1))
    return (inside_a + inside_b) / 2


def _border(edges: _Edges, start: Floats, end: Floats, crossing: Floats, ignore: Mask | None, exclude: Mask) -> Floats:
    """Σ x₁y₂ − x₂y₁ over the pieces of the edges inside the other shape: [N].

    start, end: how far inside the other's edge each own edge begins and ends, [other's edge, own edge, N].
    """
    enters, leaves, outside = end > start, end < start, np.maximum(start, end) < 0
    if ignore is not None:
        enters, leaves, outside = enters & ~ignore, leaves & ~ignore, outside & ~ignore
    first = np.where(enters, crossing, 0.0).max(axis=0)  # [own edge, N]
    last = np.where(leaves, crossing, 1.0).min(axis=0)
    share = np.clip(last, 0, 1) - np.clip(first, 0, 1)
    share[(share < 0) | (outside | exclude).any(axis=0)] = 0.0
    # The cross product of two points on one edge is the whole edge's, times the share between them.
    return (share * (edges.x * edges.dy - edges.y * edges.dx)).sum(axis=0)


def _next(values: Floats, axis: int = 0) -> Floats:
    """The value of each corner's successor."""
    return np.roll(values, -1, axis=axis)
