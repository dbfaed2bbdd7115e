"""Intersection over union of rotated rectangles, for whole arrays at once.

A box is (cx, cy, w, h, degrees), turned counter-clockwise in mathematical axes. The area two convex shapes share
is half the sum of x₁y₂ − x₂y₁ over its border, and that border consists of the pieces of each shape's edges that
lie inside the other: so each edge is clipped by the other's four half-planes, and nothing has to be sorted.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Edges nearer than this share of the boxes' size lie on one line, and one of the two is left out.
ON_ONE_LINE = 1e-11
CHUNK_PAIRS = 1 << 14  # so many at a time stay in the cache


def rotated_iou(first: ArrayLike, second: ArrayLike) -> Floats:
    """IoU of each pair: first [N, 5], second [N, 5] → [N]. A box without area has IoU 0 with everything."""
    a, b = check_boxes("first", first), check_boxes("second", second)
    if a.shape != b.shape:
        raise ValueError(f"first has {len(a)} boxes, second {len(b)}; they are compared pair by pair")
    result = np.zeros(len(a))
    for start in range(0, len(a), CHUNK_PAIRS):
        part = slice(start, start + CHUNK_PAIRS)
        result[part] = _iou(a[part], b[part])
    return result


def rotated_iou_matrix(first: ArrayLike, second: ArrayLike) -> Floats:
    """IoU of every pair: first [N, 5], second [M, 5] → [N, M]. Boxes too far apart to touch are not computed."""
    a, b = check_boxes("first", first), check_boxes("second", second)
    reach = np.hypot(a[:, 2], a[:, 3])[:, None] / 2 + np.hypot(b[:, 2], b[:, 3])[None, :] / 2
    distance = np.hypot(a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1])
    rows, columns = np.nonzero(distance <= reach)
    result = np.zeros((len(a), len(b)))
    result[rows, columns] = rotated_iou(a[rows], b[columns])
    return result


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
    angle = np.deg2rad(boxes[:, 4])
    cosine, sine = np.cos(angle), np.sin(angle)
    x = boxes[:, None, 2] / 2 * np.array([-1.0, 1.0, 1.0, -1.0])
    y = boxes[:, None, 3] / 2 * np.array([-1.0, -1.0, 1.0, 1.0])
    turned_x = x * cosine[:, None] - y * sine[:, None] + boxes[:, None, 0]
    turned_y = x * sine[:, None] + y * cosine[:, None] + boxes[:, None, 1]
    return np.stack([turned_x, turned_y], axis=2)


def _iou(a: Floats, b: Floats) -> Floats:
    # Around a's centre, in units of the pair's size: rounding errors then do not depend on where boxes lie.
    size = np.maximum(np.maximum(a[:, 2], a[:, 3]), np.maximum(b[:, 2], b[:, 3]))
    scale = np.where(size > 0, size, 1.0)
    a_local, b_local = a.copy(), b.copy()
    b_local[:, :2] -= a[:, :2]
    a_local[:, :2] = 0
    for boxes in (a_local, b_local):
        boxes[:, :4] /= scale[:, None]
    shared = _shared_area(corners(a_local), corners(b_local))
    area_a, area_b = a_local[:, 2] * a_local[:, 3], b_local[:, 2] * b_local[:, 3]
    shared = np.clip(shared, 0, np.minimum(area_a, area_b))
    union = area_a + area_b - shared
    return np.divide(shared, union, out=np.zeros_like(union), where=union > 0)


def _shared_area(a: Floats, b: Floats) -> Floats:
    """Area of the intersection of convex quadrilaterals [N, 4, 2] each."""
    a_height = _heights(a, b)  # [N, edge of b, corner of a]: how far inside that edge the corner lies
    b_height = _heights(b, a)
    a_ends = np.stack([a_height, np.roll(a_height, -1, axis=2)])  # of a's edge, from b's edge: [2, N, b, a]
    b_ends = np.stack([b_height, np.roll(b_height, -1, axis=2)])  # [2, N, a, b]
    a_on_b, b_on_a = (np.logical_and(*(np.abs(ends) <= ON_ONE_LINE)) for ends in (a_ends, b_ends))
    one_line = a_on_b | b_on_a.transpose(0, 2, 1)  # [N, b, a]
    a_edges, b_edges = np.roll(a, -1, axis=1) - a, np.roll(b, -1, axis=1) - b
    same_way = np.einsum("nbd,nad->nba", b_edges, a_edges) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        on_a = -a_ends[0] / (a_ends[1] - a_ends[0])  # where b's line cuts a's edge, as a share of it: [N, b, a]
        own = -b_ends[0] / (b_ends[1] - b_ends[0])  # where a's line cuts b's edge: [N, a, b]
        # Nearly parallel lines meet at a badly known point: both edges must then end at the *same* one.
        point = a[:, None] + on_a[..., None] * a_edges[:, None]  # [N, b, a, 2]
        along = np.einsum("nbad,nbd->nab", point - b[:, :, None], b_edges) / np.square(b_edges).sum(axis=2)[:, None]
        on_edge = (on_a > -1) & (on_a < 2)  # further off, a's edge does not end there
    on_b = np.where(on_edge.transpose(0, 2, 1), along, own)
    # Of two edges on one line that run the same way a's counts; that run against each other, neither does.
    inside_a = _border(a, a_ends, on_a, ignore=one_line & same_way, exclude=one_line & ~same_way)
    nothing = np.zeros_like(one_line).transpose(0, 2, 1)
    inside_b = _border(b, b_ends, on_b, ignore=nothing, exclude=one_line.transpose(0, 2, 1))
    return (inside_a + inside_b) / 2


def _heights(points: Floats, shape: Floats) -> Floats:
    """Signed distance of each point to the line of each edge of `shape`, positive inside: [N, edge, point]."""
    edges = np.roll(shape, -1, axis=1) - shape
    lengths = np.hypot(edges[..., 0], edges[..., 1])
    unit = edges / np.where(lengths > 0, lengths, 1.0)[..., None]
    offset = unit[..., 0] * shape[..., 1] - unit[..., 1] * shape[..., 0]
    return (
        unit[:, :, None, 0] * points[:, None, :, 1] - unit[:, :, None, 1] * points[:, None, :, 0] - offset[:, :, None]
    )


def _border(
    shape: Floats, ends: Floats, crossing: Floats, ignore: NDArray[np.bool_], exclude: NDArray[np.bool_]
) -> Floats:
    """Σ x₁y₂ − x₂y₁ over the pieces of the shape's edges inside the other shape: [N]."""
    start, end = ends  # [N, other's edge, own edge]
    slope = end - start
    enter = np.where(ignore | (slope <= 0), 0.0, crossing)
    leave = np.where(ignore | (slope >= 0), 1.0, crossing)
    outside = (~ignore & (start < 0) & (end < 0)) | (~ignore & (slope == 0) & (start < 0)) | exclude
    first = np.clip(enter, 0, 1).max(axis=1)  # [N, own edge]
    last = np.clip(leave, 0, 1).min(axis=1)
    kept = (first < last) & ~outside.any(axis=1)
    following = np.roll(shape, -1, axis=1)
    product = shape[..., 0] * following[..., 1] - shape[..., 1] * following[..., 0]
    # The cross product of two points on one edge is the whole edge's, times the share between them.
    return (np.where(kept, last - first, 0.0) * product).sum(axis=1)
