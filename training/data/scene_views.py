"""Views of scenes to learn from: a part of a picture, turned, scaled, in another light, with the words it shows."""

from dataclasses import dataclass

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray

from training.data.crop_augment import compressed, in_another_light, noisy
from training.data.words import Pixels

Random = np.random.Generator
VISIBLE = 0.8  # share of a word that must be seen; one that is seen less is not asked for
SCALES = (0.5, 1.7)  # of a view
ANY_TURN, LARGE_TURN = 0.3, 0.2  # how often a view is turned anyhow, and by more than a little


@dataclass(frozen=True)
class View:
    """A part of a scene."""

    pixels: Pixels  # [size, size, 3]
    quads: NDArray[np.float64]  # [M, 4, 2]
    ignored: NDArray[np.bool_]  # [M]


def view_of(pixels: Pixels, quads: NDArray[np.floating], ignored: NDArray[np.bool_], size: int, random: Random) -> View:
    """A random square of a picture, mostly around one of its words."""
    height, width = pixels.shape[:2]
    scale = float(np.exp(random.uniform(*np.log(SCALES))))
    centre = np.array([random.uniform(0, width), random.uniform(0, height)])
    wanted = np.flatnonzero(~ignored)
    if len(wanted) and random.uniform() < 0.75:
        chosen = quads[wanted[random.integers(len(wanted))]]
        centre = chosen.mean(axis=0) + random.uniform(-0.4, 0.4, size=2) * size / scale
    angle = np.deg2rad(_turn(random))
    cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
    stretch = np.exp(random.normal(0, 0.06))  # a little wider or narrower
    matrix = np.array([[cosine * stretch, -sine], [sine * stretch, cosine]])
    matrix = np.concatenate([matrix, (size / 2 - matrix @ centre)[:, None]], axis=1)
    ground = tuple(random.uniform(0, 255, size=3).tolist())
    seen = cv2.warpAffine(pixels, matrix, (size, size), borderMode=cv2.BORDER_CONSTANT, borderValue=ground)
    moved = quads @ matrix[:, :2].T + matrix[:, 2]
    share = visible_share(moved, size)
    shown = share > 0.02
    return View(
        _photographed(np.asarray(seen, dtype=np.uint8), random), moved[shown], (ignored | (share < VISIBLE))[shown]
    )


def visible_share(quads: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """How much of each word lies within a square of `size`: [M, 4, 2] → [M]."""
    if not len(quads):
        return np.zeros(0)
    shapes = shapely.make_valid(shapely.polygons(quads))
    area = np.maximum(shapely.area(shapes), 1e-6)
    return np.asarray(shapely.area(shapely.clip_by_rect(shapes, 0, 0, size, size)) / area)


def _turn(random: Random) -> float:
    """Degrees: mostly nearly none, as photographs are held; some anyhow."""
    kind = random.uniform()
    if kind < ANY_TURN:
        return float(random.uniform(-180, 180))
    return float(random.normal(0, 20 if kind < ANY_TURN + LARGE_TURN else 4))


def _photographed(pixels: Pixels, random: Random) -> Pixels:
    """In another light, through a worse lens."""
    chance = random.uniform(size=4)
    if chance[0] < 0.5:
        pixels = in_another_light(pixels, random)
    if chance[1] < 0.2:
        pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), random.uniform(0.4, 1.5)), dtype=np.uint8)
    if chance[2] < 0.1:
        pixels = noisy(pixels, random)
    if chance[3] < 0.2:
        pixels = compressed(pixels, random)
    return pixels
