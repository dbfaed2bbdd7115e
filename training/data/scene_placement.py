"""Finds a block of words its place in a scene: tilted, in perspective, beside the blocks that are there."""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.rendering import Random

Points = NDArray[np.float64]  # [..., 2], x and y in pixels
COARSE = 4  # pixels of the scene to one of the map of what is taken
TRIES = 12
SMALLER = 0.95  # after each try in vain


class Free:
    """Which parts of a picture have no block yet."""

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.taken = np.zeros((height // COARSE + 1, width // COARSE + 1), dtype=np.uint8)

    def take(self, corners: Points, random: Random) -> Points | None:
        """Move a quadrilateral [4, 2] somewhere free, perhaps smaller, and take that; None if there was no room."""
        frame = np.array([self.width, self.height], dtype=np.float64)
        corners = corners * min(1, *(0.96 * frame / np.maximum(np.ptp(corners, axis=0), 1)))
        corners = corners - corners.min(axis=0)
        over = random.uniform(0, 0.2) * corners.max(axis=0) if random.uniform() < 0.1 else np.zeros(2)
        for _ in range(TRIES):
            moved = corners + random.uniform(-over, frame - corners.max(axis=0) + over)
            wanted = np.zeros_like(self.taken)
            cv2.fillConvexPoly(wanted, np.rint(moved / COARSE).astype(np.int32), (1,))
            if not np.any(wanted & self.taken):
                self.taken |= wanted
                return moved
            corners = corners * SMALLER
        return None


def seen_from_somewhere(height: int, width: int, scale: float, random: Random) -> Points:
    """The corners of a flat sheet, scaled and turned in space: [4, 2] around 0, clockwise from its own top left."""
    corners = scale / 2 * np.array([[-width, -height], [width, -height], [width, height], [-width, height]])
    corners[:, 0] *= np.exp(random.normal(-0.06, 0.18))  # narrow and broad letters
    away, nod = np.deg2rad(np.clip(random.normal(0, (26, 14)), -58, 58))
    far = random.uniform(0.8, 3) * scale * max(height, width)
    depth = 1 + (corners[:, 0] * np.sin(away) + corners[:, 1] * np.sin(nod)) / far
    seen = corners * (np.cos(away), np.cos(nod)) / depth[:, None]
    seen[:, 1] += seen[:, 0] * np.tan(np.deg2rad(random.normal(0, 8)))  # off the middle, lines run up or down
    return seen @ _turn(_tilt(random)).T


def _tilt(random: Random) -> float:
    """In radians, as in ICDAR'15: half below 5 degrees, a tenth above 20; seldom any."""
    kind = random.uniform()
    if kind < 0.03:
        return float(random.uniform(-np.pi, np.pi))
    if kind < 0.05:
        return float(np.pi / 2 * random.choice([-1, 1]) + random.normal(0, 0.1))
    return float(np.deg2rad(random.normal(0, 4 if kind < 0.55 else 14)))


def _turn(angle: float) -> NDArray[np.float64]:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
