"""Bytes to pixels, with every limit checked before anything is decoded.

A picture is judged by its header first (format, size in pixels), so a bomb costs no memory. What comes
out is always upright RGB, whatever went in: EXIF-turned, 16-bit, CMYK, palette, transparent, animated.
"""

import io
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from serving.errors import ImageBroken, ImageEmpty, ImageFormatUnknown, ImageTooLarge, RegionOutside
from serving.settings import Settings

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
ACCEPTED = "JPEG, PNG, WebP, BMP and TIFF are accepted"

# What an EXIF orientation asks for to stand upright; 1 and unknown values ask for nothing.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class ImageLimits:
    """What one picture may weigh."""

    max_bytes: int
    max_pixels: int

    @classmethod
    def of(cls, settings: Settings) -> "ImageLimits":
        """The limits that the settings name."""
        return cls(settings.max_image_bytes, settings.max_image_pixels)


class Region(NamedTuple):
    """A part of an upright picture, in its pixels."""

    left: int
    top: int
    width: int
    height: int


def decode(data: bytes, limits: ImageLimits, *, name: str = "the image", min_side: int | None = None) -> Image.Image:
    """Decode `data` to an upright RGB picture.

    `min_side` allows a JPEG to be decoded at a half, a quarter or an eighth of its size, as long as both
    sides keep that many pixels: much faster when only a small version is needed.
    """
    picture = _open(data, limits, name)
    orientation = _orientation(picture)
    if min_side is not None:
        picture.draft(None, (min_side, min_side))
    try:
        picture.load()
        upright = picture.transpose(TURNS[orientation]) if orientation in TURNS else picture
        return _to_rgb(upright)
    except Exception as error:  # Pillow's decoders raise whatever a damaged file provokes, even TypeError
        raise ImageBroken(
            f"{name} is a damaged {picture.format} file ({_reason(error)}); send it again or save it anew"
        ) from error


def describe(data: bytes) -> tuple[str, int, int]:
    """Media type, width and height of the upright picture, from the header of a file that `decode` has accepted."""
    with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
        width, height = picture.size
        if _orientation(picture) >= 5:  # a quarter turn
            width, height = height, width
        return Image.MIME[picture.format or ""], width, height


def cut(picture: Image.Image, region: Region, *, name: str = "the image") -> Image.Image:
    """Only this part of a picture; raises RegionOutside if it has none there."""
    right, bottom = region.left + region.width, region.top + region.height
    if right > picture.width or bottom > picture.height:
        raise RegionOutside(
            f"the region ends at {right},{bottom}, but {name} is {picture.width}×{picture.height} pixels; "
            "give left,top,width,height within the upright picture"
        )
    return picture.crop((region.left, region.top, right, bottom))


def middle(size: tuple[int, int], width: int, height: int) -> Region:
    """The largest part of a picture of this size in the proportions of width × height, in its middle."""
    scale = min(size[0] / width, size[1] / height)
    wide, high = max(1, round(width * scale)), max(1, round(height * scale))
    return Region((size[0] - wide) // 2, (size[1] - high) // 2, wide, high)


def fit(picture: Image.Image, width: int, height: int) -> NDArray[np.uint8]:
    """Crop the middle to the wanted shape and scale it to width × height; returns [height, width, 3]."""
    part = middle(picture.size, width, height)
    pixels = np.asarray(picture)[part.top : part.top + part.height, part.left : part.left + part.width]
    shrinks = picture.width > width and picture.height > height
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=interpolation), dtype=np.uint8)


def _open(data: bytes, limits: ImageLimits, name: str) -> Image.Image:
    if not data:
        raise ImageEmpty(f"{name} has no bytes; {ACCEPTED}")
    if len(data) > limits.max_bytes:
        raise ImageTooLarge(f"{name} has {len(data):,} bytes; at most {limits.max_bytes:,} are accepted")
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise ImageTooLarge(f"{name} has far too many pixels; at most {limits.max_pixels:,} are accepted") from error
    except Exception as error:  # a file that only looks like an image can provoke anything
        raise ImageFormatUnknown(f"{name} is not an image that can be read; {ACCEPTED}") from error
    width, height = picture.size
    if width * height > limits.max_pixels:
        raise ImageTooLarge(f"{name} is {width}×{height} pixels; at most {limits.max_pixels:,} pixels are accepted")
    return picture


def _orientation(picture: Image.Image) -> int:
    try:
        return int(picture.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # broken metadata is no reason to refuse a good picture
        return 1


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I") or picture.mode == "F":
        return _from_deep_gray(picture)
    if picture.has_transparency_data:
        # Transparent drawings are made for white pages: black ink on nothing must not turn into black on black.
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def _from_deep_gray(picture: Image.Image) -> Image.Image:
    """16-bit integers keep their upper byte; floats and 32-bit integers are spread over their own range."""
    values = np.asarray(picture)
    if picture.mode.startswith("I;16") or (picture.mode == "I" and values.min() >= 0 and values.max() <= 65535):
        gray = (values.astype(np.uint32) >> 8).astype(np.uint8)
    else:
        values = np.nan_to_num(values.astype(np.float64))
        low, high = values.min(), values.max()
        gray = ((values - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    return Image.fromarray(gray).convert("RGB")


def _reason(error: BaseException) -> str:
    text = str(error).strip().rstrip(".")
    return text[:1].lower() + text[1:] if text else type(error).__name__
