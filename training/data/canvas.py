"""A crop on the recogniser's canvas, exactly as the service prepares it."""

from dataclasses import dataclass

import cv2
import numpy as np

from training.data.words import Pixels
from training.errors import DataError

GREY = 127  # what a canvas is filled up with
TALL = 1.5  # a crop this much higher than wide may lie on its side


@dataclass(frozen=True)
class Canvas:
    """How a crop becomes the network's input.

    Stretched to height × width; or, with a `step`, scaled to the height, and filled up with grey on the right to the
    width, or to so many steps more as it needs, up to `longest`, into which longer ones are squeezed.
    """

    height: int = 48
    width: int = 160
    step: int = 0  # 0: stretched
    longest: int = 640
    channels: int = 3  # 1: grey

    def __post_init__(self) -> None:
        if min(self.height, self.width, self.longest) <= 0 or self.step < 0 or self.channels not in (1, 3):
            raise DataError(f"a canvas needs sizes above 0 and 1 or 3 channels, not {self}")

    def width_of(self, height: int, width: int) -> int:
        """The canvas' width for a crop of this size."""
        if not self.step:
            return self.width
        wanted = round(self.height * width / height)
        steps = -(-max(0, wanted - self.width) // self.step)
        return min(self.width + steps * self.step, max(self.longest, self.width))


def place(crop: Pixels, canvas: Canvas, width: int | None = None) -> Pixels:
    """[H, W, 3] → [canvas height, width, channels]; `width` is the canvas' own choice unless given."""
    height, own = crop.shape[:2]
    width = width or canvas.width_of(height, own)
    taken = min(width, max(1, round(canvas.height * own / height))) if canvas.step else width
    shrinks = height > canvas.height or own > taken
    scaled = cv2.resize(crop, (taken, canvas.height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    if canvas.channels == 1:
        scaled = cv2.cvtColor(scaled, cv2.COLOR_RGB2GRAY)[:, :, None]
    filled = np.full((canvas.height, width, canvas.channels), GREY, dtype=np.uint8)
    filled[:, :taken] = scaled
    return filled


def turns(crop: Pixels) -> tuple[int, ...]:
    """Quarter turns in which a crop is worth reading: as it is, and a tall one on either side."""
    height, width = crop.shape[:2]
    return (0, 1, 3) if height > TALL * width else (0,)
