"""Pictures to words' places."""

import cv2
import numpy as np
from numpy.typing import NDArray

from serving.manifest import DetectorManifest
from serving.pipelines.cut_words import are_cut, mended
from serving.pipelines.tiles import TILE, Tile, shrinks, tiles
from serving.pipelines.upright import main_direction, turned, turned_back
from serving.pipelines.word_boxes import NOTHING, Words, gather, without_doubles
from serving.repository import StoredModel, manifest_as
from serving.runtime import Network
from serving.timing import Timings

Pixels = NDArray[np.uint8]
LEAST_CONTRAST = 12  # of 255, in a tile and one of its colours: with less, nothing is written there
THINNEST = 8  # pixels: in less no word can be seen
# Heights of words, in pixels of a look, that another look sees better: too large here, or too small.
LARGEST, SMALLEST = 240.0, 24.0
TURNED = 25.0  # degrees by which text may lie aslant before it is looked at once more, upright
MOST_TURNS = 2


class Detector:
    """Looks at a picture tile by tile, and joins what it finds."""

    def __init__(self, network: Network, model: StoredModel) -> None:
        """Raises a SetupError if the model is no detector."""
        self.manifest = manifest_as(model, DetectorManifest)
        self._network = network

    def __call__(self, picture: Pixels, timings: Timings | None = None) -> Words:
        """Words of an upright picture [H, W, 3] in RGB; boxes in its pixels.

        The network knows level text best. So where most of what it finds runs another way, the picture is turned for
        another look; a small picture in which it finds nothing is looked at from the side.
        """
        words = self._look_at(picture, timings)
        total = 0.0
        for _ in range(MOST_TURNS):
            direction = main_direction(words)
            if direction is None:
                if total or max(picture.shape[:2]) > 1.25 * TILE:
                    break
                direction = 90.0
            aslant = (direction - total + 180) % 360 - 180
            if abs(aslant) < TURNED:
                break
            total = direction
            look, matrix = turned(picture, -direction)
            again = turned_back(self._look_at(look, timings), matrix, direction)
            words = joined([again, words])
        return words

    def _look_at(self, picture: Pixels, timings: Timings | None) -> Words:
        """Words of a picture as it is held."""
        levels = shrinks(picture.shape[1], picture.shape[0])
        found: list[Words] = []
        cut: list[NDArray[np.bool_]] = []
        for number, shrink in enumerate(levels):
            look = picture if shrink == 1 else _shrunk(picture, shrink)
            if min(look.shape[:2]) < THINNEST:
                continue
            scale = np.array([picture.shape[1] / look.shape[1], picture.shape[0] / look.shape[0]])
            for tile in tiles(look.shape[1], look.shape[0]):
                words = self._look_at_tile(look, tile, timings)
                heights = words.boxes[:, 2:4].min(axis=1)
                kept = (number == len(levels) - 1) | (heights <= LARGEST)
                kept &= (number == 0) | (heights >= SMALLEST)
                kept &= np.array([tile.holds(x, y) for x, y in words.boxes[:, :2]], dtype=bool)
                words = Words(words.boxes[kept], words.scores[kept])
                cut.append(are_cut(words.boxes, tile))
                found.append(_in_the_picture(words, tile, scale))
        return joined(found, np.concatenate(cut)) if found else NOTHING

    def _look_at_tile(self, look: Pixels, tile: Tile, timings: Timings | None) -> Words:
        pixels = look[tile.top : tile.bottom, tile.left : tile.right]
        if _is_blank(pixels):
            return NOTHING
        multiple = self.manifest.multiple
        room = np.zeros((1, tile.height + -tile.height % multiple, tile.width + -tile.width % multiple, 3), np.uint8)
        room[0, : tile.height, : tile.width] = pixels
        outputs = self._network.run({self.manifest.inputs[0].name: room}, timings, alone=True)
        return gather(
            outputs[self.manifest.outputs[0].name][0],
            stride=self.manifest.stride,
            heart=self.manifest.thresholds.heart,
            word=self.manifest.thresholds.word,
        )


def _is_blank(pixels: Pixels) -> bool:
    """Whether no colour has any contrast; a few pixels mostly show that one has."""
    for some in (pixels[::32, ::32], pixels):
        if any(int(some[..., colour].max()) - int(some[..., colour].min()) >= LEAST_CONTRAST for colour in range(3)):
            return False
    return True


def joined(parts: list[Words], cut: NDArray[np.bool_] | None = None) -> Words:
    """All words, the surest first, each once; parts of words that tiles have `cut` become whole where they meet."""
    boxes, scores = np.concatenate([part.boxes for part in parts]), np.concatenate([part.scores for part in parts])
    if cut is None:
        cut = np.zeros(len(boxes), dtype=bool)
    boxes, kept = mended(boxes, cut)
    boxes, scores, cut = boxes[kept], scores[kept], cut[kept]
    order = np.lexsort((-scores, cut))  # what is whole before what is not
    stays = order[without_doubles(boxes[order])]
    stays = stays[np.argsort(-scores[stays], kind="stable")]
    return Words(boxes[stays], scores[stays])


def _shrunk(picture: Pixels, shrink: float) -> Pixels:
    size = max(1, round(picture.shape[1] / shrink)), max(1, round(picture.shape[0] / shrink))
    # Averaging takes six times as long, and what is hardly smaller has hardly anything to average.
    interpolation = cv2.INTER_LINEAR if shrink < 2 else cv2.INTER_AREA
    return np.asarray(cv2.resize(picture, size, interpolation=interpolation), dtype=np.uint8)


def _in_the_picture(words: Words, tile: Tile, scale: NDArray[np.float64]) -> Words:
    """Words of a tile in pixels of the whole picture, which is `scale` times as wide and high as the look."""
    boxes = words.boxes.copy()
    boxes[:, :2] = (boxes[:, :2] + (tile.left, tile.top)) * scale
    boxes[:, 2:4] *= float(scale.mean())
    return Words(boxes, words.scores)
