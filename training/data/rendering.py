"""Draws words: many fonts, sizes, colours, outlines, shadows, bends and grounds; then a camera's faults."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from training.data.crop_augment import distort
from training.data.fonts import Font
from training.data.vocabulary import Vocabulary
from training.data.words import Pixels
from training.errors import DataError

Random = np.random.Generator
Mask = NDArray[np.float32]  # [H, W], 0…1
SIZE = 40  # of letters, in pixels, before they are distorted
TRIES = 20


class Renderer:
    """Draws one word after another. What is drawn depends on the random numbers alone."""

    def __init__(self, fonts: Sequence[Font], vocabulary: Vocabulary, grounds: Sequence[Pixels] = ()) -> None:
        """`grounds` are photographs to write on; plain colours and drawn textures are always there."""
        if not fonts:
            raise DataError("there is no font to write with; install some, for instance the package fonts-dejavu")
        self.fonts, self.vocabulary, self.grounds = fonts, vocabulary, grounds

    def draw(self, random: Random) -> tuple[Pixels, str]:
        """A crop [H, W, 3] and what it says."""
        for _ in range(TRIES):
            text = self.vocabulary.draw(random)
            font = self.fonts[int(random.integers(len(self.fonts)))]
            if font.can_write(text):
                return self.write(text, font, random), text
            if font.can_write(text.upper()):  # a font of capitals
                return self.write(text.upper(), font, random), text.upper()
        raise DataError("no font can write the words; are these Latin words and fonts?")

    def write(self, text: str, font: Font, random: Random) -> Pixels:
        """The text on some ground, as a camera may see it."""
        letters = _letters(text, font, random)
        if random.uniform() < 0.25:
            letters = _bent(letters, random)
        height, width = letters.shape
        ground = self._ground(height, width, random)
        ink = _ink(ground, random)
        picture = ground
        effect = random.uniform()
        if effect < 0.12:  # a shadow
            shift = random.integers(-4, 5, size=2)
            shadow = cv2.GaussianBlur(np.roll(letters, tuple(shift), axis=(0, 1)), (0, 0), random.uniform(0.5, 2.5))
            picture = _painted(picture, shadow * random.uniform(0.4, 1.0), ink * random.uniform(0, 0.6))
        elif effect < 0.3:  # an outline
            reach = 2 * int(random.integers(1, 3)) + 1
            outline = cv2.dilate(letters, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach)))
            picture = _painted(picture, np.asarray(outline, dtype=np.float32), random.uniform(0, 255, size=3))
            solid = outline > 0.5  # hairlines have no such place
            ink = _ink(np.broadcast_to(picture[solid].mean(axis=0) if solid.any() else ink, (1, 1, 3)), random)
        if random.uniform() < 0.1:  # light and dark letters in one word
            slope = np.linspace(0, 1, width)[None, :, None]
            picture = _painted(picture, letters, ink * (1 - slope) + _ink(ground, random) * slope)
        else:
            picture = _painted(picture, letters, ink)
        return distort(np.clip(picture, 0, 255).astype(np.uint8), random, 1.2)

    def _ground(self, height: int, width: int, random: Random) -> NDArray[np.float32]:
        """Something to write on: [H, W, 3]."""
        kind = random.uniform()
        if self.grounds and kind < 0.35:
            return _part(self.grounds[int(random.integers(len(self.grounds)))], height, width, random)
        colour = random.uniform(0, 255, size=3) * random.uniform(0.2, 1) + random.uniform(0, 100)
        if random.uniform() < 0.4:
            colour = np.full(3, colour.mean()) + random.normal(0, 6, size=3)  # paper, walls and asphalt are nearly grey
        ground = np.broadcast_to(colour, (height, width, 3)).astype(np.float32)
        if kind < 0.55:  # light falls from a side
            across, down = (np.linspace(-1, 1, size) * random.normal() for size in (width, height))
            slope = across[None] + down[:, None]
            ground = ground + (slope * random.uniform(5, 35))[:, :, None].astype(np.float32)
        if kind > 0.75:  # a texture: coarse and fine clouds
            grain = max(2, int(random.integers(2, 16)))
            clouds = random.normal(0, 1, size=(height // grain + 2, width // grain + 2, 3)).astype(np.float32)
            if random.uniform() < 0.7:
                clouds = np.repeat(clouds[:, :, :1], 3, axis=2)
            ground = ground + cv2.resize(clouds, (width, height), interpolation=cv2.INTER_CUBIC) * random.uniform(3, 18)
        return np.clip(ground, 8, 247)


def _letters(text: str, font: Font, random: Random) -> Mask:
    """The text in white on black, with room around it, sometimes spread, slanted or fat."""
    size = SIZE
    face = font.at(size)
    stroke = int(random.uniform() < 0.08)
    gap = random.normal(0, 0.05) * size if random.uniform() < 0.3 else 0.0
    left, top, right, bottom = face.getbbox(text, stroke_width=stroke)
    margin = int(size * 0.15) + 4
    width = int(right - left + abs(gap) * len(text)) + 2 * margin
    height = int(bottom - top) + 2 * margin
    picture = Image.new("L", (max(width, 8), max(height, 8)))
    draw = ImageDraw.Draw(picture)
    if gap > 0:
        x = margin - left
        for character in text:
            draw.text((x, margin - top), character, fill=255, font=face, stroke_width=stroke)
            x += face.getlength(character) + gap
    else:
        draw.text((margin - left, margin - top), text, fill=255, font=face, stroke_width=stroke)
    frame = picture.getbbox()
    if frame is not None:
        room = random.uniform(0.02, 0.2, size=4) * size
        frame = (
            max(0, int(frame[0] - room[0])),
            max(0, int(frame[1] - room[1])),
            min(picture.width, int(frame[2] + room[2])),
            min(picture.height, int(frame[3] + room[3])),
        )
        picture = picture.crop(frame)
    return np.asarray(picture, dtype=np.float32) / np.float32(255)


def _bent(letters: Mask, random: Random) -> Mask:
    """Along an arc or a wave."""
    height, width = letters.shape
    depth = random.uniform(-0.6, 0.6) * min(height, width / 4)
    room = int(abs(depth)) + 1
    along = np.linspace(0, 1, width, dtype=np.float32)
    wave = along * (1 - along) * 4 if random.uniform() < 0.7 else np.sin(along * 2 * np.pi + random.uniform(0, 6)) / 2
    rows = np.arange(height + 2 * room, dtype=np.float32)[:, None] - room + (depth * (wave - wave.mean()))[None]
    columns = np.broadcast_to(np.arange(width, dtype=np.float32), rows.shape)
    bent = cv2.remap(letters, np.ascontiguousarray(columns), rows.astype(np.float32), cv2.INTER_LINEAR)
    used = np.flatnonzero(bent.max(axis=1) > 0.1)
    if not len(used):
        return letters
    first, last = max(0, used[0] - int(random.integers(1, 8))), used[-1] + 1 + int(random.integers(1, 8))
    return np.asarray(bent[first:last], dtype=np.float32)


def _ink(ground: NDArray[np.floating], random: Random) -> NDArray[np.float64]:
    """A colour that can be told from the ground, now and then only just."""
    light = float(ground.mean())
    least = random.uniform(45, 120)
    darker = light - least > 0 and (light + least > 255 or random.uniform() * 255 < light)
    lightness = random.uniform(0, light - least) if darker else random.uniform(min(light + least, 250), 255)
    return np.clip(lightness + random.normal(0, 25, size=3) * random.integers(0, 2), 0, 255)


def _painted(picture: NDArray[np.float32], mask: Mask, colour: NDArray[np.floating]) -> NDArray[np.float32]:
    weight = mask[:, :, None]
    return np.asarray(picture * (1 - weight) + colour * weight, dtype=np.float32)


def _part(photograph: Pixels, height: int, width: int, random: Random) -> NDArray[np.float32]:
    """Any part of a photograph, stretched to fit."""
    full_height, full_width = photograph.shape[:2]
    share = random.uniform(0.1, 0.6)
    part_height = max(2, int(full_height * share))
    part_width = max(2, min(full_width, int(part_height * width / height)))
    top, left = random.integers(full_height - part_height + 1), random.integers(full_width - part_width + 1)
    part = photograph[top : top + part_height, left : left + part_width]
    return np.asarray(cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA), dtype=np.float32)
