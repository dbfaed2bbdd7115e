"""Random views of a picture, for training."""

import math
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps


def random_view(path: Path, size: int, random: np.random.Generator, smallest: float = 0.4) -> NDArray[np.uint8]:
    """A random part of a picture at size × size, at times mirrored, a little lighter or darker: [size, size, 3].

    The part holds `smallest` to all of the picture's area and is up to 4:3 or 3:4 as wide as high.
    """
    with Image.open(path) as stored:
        stored.draft(None, (size * 2, size * 2))
        pixels = np.asarray(ImageOps.exif_transpose(stored).convert("RGB"))
    left, top, width, height = _random_part(pixels.shape[1], pixels.shape[0], random, smallest)
    part = pixels[top : top + height, left : left + width]
    interpolation = cv2.INTER_AREA if min(width, height) > size else cv2.INTER_LINEAR
    view = cv2.resize(part, (size, size), interpolation=interpolation)
    if random.random() < 0.5:
        view = view[:, ::-1]
    contrast, brightness = random.uniform(0.8, 1.2), random.uniform(-20, 20)
    return cv2.convertScaleAbs(np.ascontiguousarray(view), alpha=contrast, beta=brightness).astype(np.uint8)


def _random_part(width: int, height: int, random: np.random.Generator, smallest: float) -> tuple[int, int, int, int]:
    """Left, top, width, height of a part; the whole middle square if ten draws do not fit."""
    for _ in range(10):
        area = width * height * random.uniform(smallest, 1)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        part_width, part_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < part_width <= width and 0 < part_height <= height:
            left = int(random.integers(width - part_width + 1))
            top = int(random.integers(height - part_height + 1))
            return left, top, part_width, part_height
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side
