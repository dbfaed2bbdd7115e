"""Which parts of a picture a detector looks at, and how large: large pictures in tiles, and smaller as a whole.

A detector knows words of 8 to some 100 pixels. So a picture is looked at nearly as it is, in overlapping tiles if it is
large; and once more at a quarter of the size, and so on, until it is small: there the large words are found. Memory is
that of one tile, whatever the picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass

TILE = 1280  # pixels of a tile's side; a picture is cut only if it is a quarter longer
OVERLAP = 256  # pixels that neighbours share: a word that is cut in one is mostly whole in the other
SLACK = 16  # pixels by which neighbours may differ on a word's middle
COARSER = 4  # how much smaller each look is than the one before
SMALL = 640  # pixels of the longer side: what is smaller is looked at as it is, and not from farther away
# How much smaller the first look at other pictures is: a fifth less work, and hardly a word less. Photographs of
# 1280×720, 1920×1080 and 3840×2160 become a whole number of the network's 32 pixels high, so that none is wasted.
FIRST = 1.125


@dataclass(frozen=True)
class Tile:
    """A part of a look at a picture; sides in pixels of the look."""

    left: int
    top: int
    width: int
    height: int
    whole: tuple[int, int]  # width and height of the look

    def holds(self, x: float, y: float) -> bool:
        """Whether a word with this middle, in pixels of the tile, is this tile's: neighbours see it worse."""
        rim = OVERLAP / 2 - SLACK
        return all(
            low <= place <= high
            for place, low, high in (
                (x, rim if self.left else 0, self.width - (rim if self.right < self.whole[0] else 0)),
                (y, rim if self.top else 0, self.height - (rim if self.bottom < self.whole[1] else 0)),
            )
        )

    @property
    def right(self) -> int:
        """Where it ends."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """Where it ends."""
        return self.top + self.height


def shrinks(width: int, height: int) -> list[float]:
    """By how much a picture is shrunk for each look at it, the finest first."""
    found = [1.0 if max(width, height) <= SMALL else FIRST]
    while max(width, height) / found[-1] > SMALL:
        found.append(found[-1] * COARSER)
    return found


def tiles(width: int, height: int) -> Iterator[Tile]:
    """Tiles of a look of width × height pixels."""
    for top, tall in _parts(height):
        for left, wide in _parts(width):
            yield Tile(left, top, wide, tall, (width, height))


def _parts(length: int) -> Iterator[tuple[int, int]]:
    """Starts and lengths of equal parts that overlap."""
    if length <= 1.25 * TILE:
        yield 0, length
        return
    count = -(-(length - OVERLAP) // (TILE - OVERLAP))
    size = -(-(length + (count - 1) * OVERLAP) // count)
    for number in range(count):
        start = min(number * (size - OVERLAP), length - size)
        yield start, size
