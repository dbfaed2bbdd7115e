"""Draws whole scenes with words, and where each word is: to learn finding words in photographs."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.fonts import Font
from training.data.rendering import Random
from training.data.scene_camera import photograph
from training.data.scene_grounds import draw_ground
from training.data.scene_placement import Free, seen_from_somewhere
from training.data.scene_signs import paint_block
from training.data.scene_text import SIZES, Layout, Typesetter
from training.data.vocabulary import Vocabulary
from training.data.words import Pixels

Quads = NDArray[np.float32]  # [M, 4, 2]
BLOCKS = 5.5  # tried in 640 × 640 pixels; not all find room
LEAST_HEIGHT = 9  # pixels of a quadrilateral; below, nobody can read it
LEAST_LETTER = 2.5  # pixels, wide
LEAST_CONTRAST = 20  # of 255, between letters and what is around them, in any channel
LEAST_SHOWN = 0.5  # of a word's area; a block with less of one is not drawn
MOST_HIDDEN = 0.1  # of a legible word


@dataclass(frozen=True)
class RenderedScene:
    """A picture and its words."""

    pixels: Pixels  # [H, W, 3], RGB
    quads: Quads  # [M, 4, 2] corners in pixels, clockwise from the text's own top left
    texts: list[str]
    legible: NDArray[np.bool_]  # [M] too small, too pale or cut off where False


class SceneRenderer:
    """Draws one scene after another. What is drawn depends on the random numbers alone."""

    def __init__(self, fonts: Sequence[Font], vocabulary: Vocabulary, grounds: Sequence[Pixels] = ()) -> None:
        """`grounds` are photographs without text; walls and clutter are always there."""
        self.typesetter, self.grounds = Typesetter(fonts, vocabulary), grounds

    def draw(self, random: Random, height: int, width: int) -> RenderedScene:
        """A scene of this many pixels; now and then without a word."""
        canvas = Canvas(draw_ground(self.grounds, random, height, width))
        blocks = BLOCKS * height * width / 640**2 * random.uniform(0.3, 1.7)
        page = random.uniform() < 0.12
        for number in range(max(1, round(blocks))):
            largest = max(8.0, min(height, width) / 3)
            size = min(float(np.exp(random.normal(np.log(38), 0.7))), largest, SIZES[-1])
            lines = _some(random, min(6, height / size))
            words = _some(random, min(6, width / (4 * size)))
            if page and number == 0:  # a page, a menu, a screen: many small words
                size, lines, words = min(size, random.uniform(10, 30)), int(random.integers(6, 16)), 7
            layout = self.typesetter.set_block(random, size, lines, words)
            canvas.put(layout, size, random)
        return canvas.finished(random)


class Canvas:
    """A scene in the making."""

    def __init__(self, pixels: Pixels) -> None:
        self.pixels = pixels  # [H, W, 3]
        self.ink = np.zeros(pixels.shape[:2], dtype=np.uint8)  # how much of each pixel is letters
        self.free = Free(*pixels.shape[:2])
        self.quads: list[Quads] = []  # each [M, 4, 2]
        self.texts: list[str] = []

    def put(self, layout: Layout, size: float, random: Random) -> None:
        """Paint a block in letters of `size` pixels wherever there is room for it."""
        panel = bool(random.uniform() < 0.55)
        if panel:
            left, top, right, bottom = (int(room) for room in np.abs(random.normal(0, 0.6, size=4)) * layout.size)
            layout = layout.padded(left, top, right, bottom)
        height, width = layout.letters.shape
        place = self.free.take(seen_from_somewhere(height, width, size / layout.size, random), random)
        if place is None:
            return
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
        warp = np.asarray(cv2.getPerspectiveTransform(corners, place.astype(np.float32)), dtype=np.float64)
        flat_quads = layout.quads().reshape(1, -1, 2)
        quads = np.asarray(cv2.perspectiveTransform(flat_quads, warp), dtype=np.float32).reshape(-1, 4, 2)
        if min(_shown(quad, self.free.height, self.free.width) for quad in quads) < LEAST_SHOWN:
            return
        self._paint(layout, panel, warp, place, random)
        self.quads.append(quads)
        self.texts += layout.texts

    def _paint(
        self, layout: Layout, panel: bool, warp: NDArray[np.floating], place: NDArray[np.floating], random: Random
    ) -> None:
        """Only the rectangle around the block is looked at."""
        left, top = np.maximum(np.floor(place.min(axis=0)).astype(int) - 1, 0)
        right, bottom = np.ceil(place.max(axis=0)).astype(int) + 1
        part = self.pixels[top:bottom, left:right]
        ink = self.ink[top:bottom, left:right]
        sheet = paint_block(layout, panel, part.reshape(-1, 3).mean(axis=0), random)
        here = np.array([[1, 0, -left], [0, 1, -top], [0, 0, 1]]) @ warp
        size = (part.shape[1], part.shape[0])
        laid = cv2.warpPerspective(sheet, here, size, flags=cv2.INTER_LINEAR)
        through = cv2.merge([255 - laid[:, :, 3]] * 3)
        part[:] = cv2.add(cv2.multiply(part, through, scale=1 / 255), laid[:, :, :3])
        np.maximum(ink, cv2.warpPerspective(layout.letters, here, size, flags=cv2.INTER_LINEAR), out=ink)

    def finished(self, random: Random) -> RenderedScene:
        """The scene as a camera sees it."""
        pixels = photograph(self.pixels, random)
        height, width = self.free.height, self.free.width
        quads = np.concatenate([np.zeros((0, 4, 2), dtype=np.float32), *self.quads])
        legible = [
            _shown(quad, height, width) > 1 - MOST_HIDDEN
            and _large_enough(quad, text)
            and _contrast(pixels, self.ink, quad) > LEAST_CONTRAST
            for quad, text in zip(quads, self.texts, strict=True)
        ]
        inside = np.clip(quads, 0, np.array([width, height], dtype=np.float32))
        return RenderedScene(pixels, inside, self.texts, np.array(legible, dtype=np.bool_))


def _some(random: Random, most: float) -> int:
    """Few more often than many: 1 to `most`."""
    return max(1, min(int(random.geometric(0.42)), int(most)))


def _shown(quad: NDArray[np.floating], height: int, width: int) -> float:
    """How much of a quadrilateral's area lies in the picture, 0…1."""
    if quad.min() >= 0 and quad[:, 0].max() <= width and quad[:, 1].max() <= height:
        return 1.0
    frame = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    area, _ = cv2.intersectConvexConvex(quad.astype(np.float32), frame)
    return float(area) / max(float(cv2.contourArea(quad.astype(np.float32))), 1e-6)


def _large_enough(quad: NDArray[np.floating], text: str) -> bool:
    top, right, bottom, left = np.linalg.norm(np.roll(quad, -1, axis=0) - quad, axis=1)
    return bool(min(left, right) >= LEAST_HEIGHT and min(top, bottom) >= LEAST_LETTER * len(text))


def _contrast(pixels: Pixels, ink: Pixels, quad: NDArray[np.floating]) -> float:
    """How much the letters within a quadrilateral differ from what is between them; less where that is uneven."""
    left, top = np.maximum(np.floor(quad.min(axis=0)).astype(int), 0)
    right, bottom = np.ceil(quad.max(axis=0)).astype(int) + 1
    part, letters = pixels[top:bottom, left:right], ink[top:bottom, left:right]
    word = np.zeros(letters.shape, dtype=np.uint8)
    cv2.fillConvexPoly(word, np.rint(quad - (left, top)).astype(np.int32), (1,))
    most = int((letters * word).max(initial=0))
    on = np.asarray(letters > 0.6 * most, dtype=np.uint8) * word
    off = np.asarray(letters < 0.15 * most, dtype=np.uint8) * word
    around, spread = cv2.meanStdDev(part, mask=off)
    difference = np.abs(np.array(cv2.mean(part, mask=on)[:3]) - around[:, 0])
    return float(np.max(difference - 0.5 * spread[:, 0]))
