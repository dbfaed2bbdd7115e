"""What lies behind the words of a scene: photographs, walls, and clutter that looks like text but is none."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.rendering import Random
from training.data.words import Pixels

Polygons = list[NDArray[np.float64]]  # each [P, 2], in a unit square


def draw_ground(photographs: Sequence[Pixels], random: Random, height: int, width: int) -> Pixels:
    """A ground [H, W, 3]: one piece, or several beside each other as facades and shelves are, with clutter on it."""
    ground = _piece(photographs, random, height, width)
    for _ in range(int(random.integers(0, 5)) if random.uniform() < 0.5 else 0):
        high, wide = (max(1, int(size * random.uniform(0.1, 0.8))) for size in (height, width))
        top, left = int(random.integers(height - high + 1)), int(random.integers(width - wide + 1))
        ground[top : top + high, left : left + wide] = _piece(photographs, random, high, wide)
    for _ in range(int(random.integers(0, 6))):
        _draw_clutter(ground, random)
    return ground


def some_colour(random: Random) -> NDArray[np.float64]:
    """Walls and paper are nearly grey, signs are not: [3]."""
    if random.uniform() < 0.5:
        return np.clip(random.uniform(0, 255) + random.normal(0, 8, size=3), 0, 255)
    light, strong = random.uniform(30, 255), random.uniform(0.2, 1)
    return np.clip(light * (1 - strong * random.uniform(size=3) * random.integers(0, 2, size=3)), 0, 255)


def _piece(photographs: Sequence[Pixels], random: Random, height: int, width: int) -> Pixels:
    if photographs and random.uniform() < 0.75:
        return _part(photographs[int(random.integers(len(photographs)))], random, height, width)
    return WALLS[int(random.integers(len(WALLS)))](random, height, width)


def _part(photograph: Pixels, random: Random, height: int, width: int) -> Pixels:
    """Some part of a photograph, in its proportions, perhaps mirrored."""
    full_height, full_width = photograph.shape[:2]
    scale = min(full_height / height, full_width / width) * random.uniform(0.4, 1)
    high, wide = max(1, int(height * scale)), max(1, int(width * scale))
    top, left = random.integers(full_height - high + 1), random.integers(full_width - wide + 1)
    part = photograph[top : top + high, left : left + wide]
    part = part[:, ::-1] if random.uniform() < 0.5 else part
    return np.array(cv2.resize(part, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _slope(random: Random, height: int, width: int) -> Pixels:
    """Four colours at the corners, alike or not."""
    corners = some_colour(random) + random.normal(0, random.uniform(5, 50), size=(2, 2, 3))
    return _enlarged(corners, height, width, cv2.INTER_LINEAR)


def _clouds(random: Random, height: int, width: int) -> Pixels:
    """Plaster, asphalt, foliage from afar: coarse and fine spots."""
    ground = _slope(random, height, width)
    for grain in 2 ** random.integers(1, 7, size=2):
        size = (height // int(grain) + 2, width // int(grain) + 2)
        spots = np.repeat(random.normal(128, random.uniform(4, 30), size=(*size, 1)), 3, axis=2)
        ground = np.asarray(cv2.addWeighted(ground, 1, _enlarged(spots, height, width, cv2.INTER_CUBIC), 1, -128))
    return np.asarray(ground, dtype=np.uint8)


def _bricks(random: Random, height: int, width: int) -> Pixels:
    """Bricks, tiles and planks: one colour each, seams between."""
    high, wide = int(random.integers(8, 60)), int(random.integers(8, 160))
    rows, columns = height // high + 2, width // wide + 2
    colours = some_colour(random) + random.normal(0, random.uniform(2, 20), size=(rows, columns, 1))
    wall = _enlarged(colours, rows * high, columns * wide, cv2.INTER_NEAREST)[:height, : width + wide]
    shift = int(random.uniform() < 0.6) * (wide // 2)
    seam, thick = tuple(some_colour(random).tolist()), max(1, high // 12)
    for number, top in enumerate(range(0, height, high)):
        row = wall[top : top + high]
        row[:] = np.roll(row, shift * (number % 2), axis=1)
        row[:thick] = seam
        for left in range(shift * (number % 2), wall.shape[1], wide):
            row[:, left : left + thick] = seam
    return np.ascontiguousarray(wall[:, :width])


def _stripes(random: Random, height: int, width: int) -> Pixels:
    """Shutters, awnings, corrugated iron: waves or bars, any way round."""
    angle, length = random.uniform(0, np.pi), random.uniform(5, 60)
    across, down = np.arange(width) * np.cos(angle), np.arange(height) * np.sin(angle)
    wave = np.sin((across[None] + down[:, None]).astype(np.float32) * np.float32(2 * np.pi / length))
    if random.uniform() < 0.5:
        wave = np.sign(wave)
    table = np.linspace(some_colour(random), some_colour(random), 256).astype(np.uint8)
    return np.ascontiguousarray(table[(wave * 127 + 128).astype(np.uint8)])


def _enlarged(colours: NDArray[np.float64], height: int, width: int, how: int) -> Pixels:
    small = np.clip(colours, 0, 255).astype(np.uint8)
    return np.array(cv2.resize(small, (width, height), interpolation=how), dtype=np.uint8)


WALLS: tuple[Callable[[Random, int, int], Pixels], ...] = (_slope, _slope, _clouds, _clouds, _bricks, _stripes)


def _draw_clutter(ground: Pixels, random: Random) -> None:
    """Shapes in one or two colours, in a row or a grid, seen at some angle."""
    shapes = CLUTTER[int(random.integers(len(CLUTTER)))](random)
    height, width = ground.shape[:2]
    size = np.exp(random.uniform(np.log(8), np.log(max(16, 0.5 * height))))  # of the unit square, in pixels
    size = np.array([size * random.uniform(0.5, 6), size])
    angle, slant = random.normal(0, 0.2), random.normal(0, 0.15)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle) + slant, np.cos(angle)]])
    place = random.uniform(-0.2, 1, size=2) * (width, height)
    first, second = (tuple(some_colour(random).tolist()) for _ in range(2))
    for number, shape in enumerate(shapes):
        corners = np.rint((shape * size) @ turn + place).astype(np.int32)
        cv2.fillPoly(ground, [corners], first if number % 2 or first[0] < 128 else second, cv2.LINE_AA)


def _grid(random: Random, shape: NDArray[np.float64], rows: int, columns: int) -> Polygons:
    """The same shape again and again."""
    cell, fill = np.array([1 / columns, 1 / rows]), random.uniform(0.3, 0.9, size=2)
    places = [np.array([column, row]) * cell for row in range(rows) for column in range(columns)]
    return [place + shape * cell * fill for place in places]


def _windows(random: Random) -> Polygons:
    return _grid(random, SQUARE, int(random.integers(1, 7)), int(random.integers(2, 16)))


def _dots(random: Random) -> Polygons:
    return _grid(random, ROUND, int(random.integers(1, 4)), int(random.integers(3, 20)))


def _fence(random: Random) -> Polygons:
    posts = _grid(random, SQUARE, 1, int(random.integers(5, 40)))
    rails = [np.array([0, at]) + SQUARE * (1, 0.06) for at in random.uniform(0, 0.9, size=2)]
    return posts + rails


def _bars(random: Random) -> Polygons:
    """As on goods: of many widths."""
    edges = np.sort(random.uniform(size=2 * int(random.integers(5, 30))))
    return [
        np.array([first, 0]) + SQUARE * (second - first, 1)
        for first, second in zip(edges[::2], edges[1::2], strict=True)
    ]


def _leaves(random: Random) -> Polygons:
    shapes = []
    for _ in range(int(random.integers(20, 80))):
        angle, size = random.uniform(0, 2 * np.pi), random.uniform(0.03, 0.12)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        shapes.append(((ROUND - 0.5) * (size, size * random.uniform(0.2, 1))) @ turn + random.uniform(size=2))
    return shapes


def _pictograms(random: Random) -> Polygons:
    """Arrows and discs with something in them, as beside the words of a sign."""
    count = int(random.integers(1, 5))
    shapes: Polygons = []
    for place in np.arange(count) / count:
        inner = (ARROW, SQUARE, ROUND)[int(random.integers(3))]
        inner = inner[:, ::-1] if random.uniform() < 0.5 else inner
        frame = ROUND if random.uniform() < 0.5 else SQUARE
        shapes += [frame * (0.8 / count, 1) + (place, 0), (inner * 0.5 + 0.25) * (0.8 / count, 1) + (place, 0)]
    return shapes


SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float64)
ROUND = 0.5 + 0.5 * np.stack([np.cos(np.linspace(0, 6, 12)), np.sin(np.linspace(0, 6, 12))], axis=1)
ARROW = np.array([[0, 0.35], [0.5, 0.35], [0.5, 0], [1, 0.5], [0.5, 1], [0.5, 0.65], [0, 0.65]])
CLUTTER = (_windows, _dots, _fence, _bars, _leaves, _pictograms, _windows)
