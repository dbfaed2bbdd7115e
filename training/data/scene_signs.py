"""Paints a block of words: its colours, outlines, shadows and glow, and the sign, label or paper it stands on."""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.rendering import Random
from training.data.scene_grounds import some_colour
from training.data.scene_text import Layout
from training.data.words import Pixels

Colour = NDArray[np.float64]  # [3]


def paint_block(layout: Layout, panel: bool, ground: Colour, random: Random) -> Pixels:
    """The block as red, green and blue, each times the fourth channel, which is how much it covers: [h, w, 4].

    `ground` is the colour that the block will lie on where there is no panel.
    """
    height, width = layout.letters.shape
    sheet = np.zeros((height, width, 4), dtype=np.uint8)
    if panel:
        ground = _draw_panel(sheet, random)
    ink = ink_colour(ground, random)
    effect = random.uniform()
    strong = int(np.clip(np.median(layout.boxes[:, 3] - layout.boxes[:, 1]) / 14, 1, 8))
    if effect < 0.12:
        _lay_over(sheet, _shadow(layout.letters, strong, random), ink_colour(ink, random))
    elif effect < 0.2:  # lit letters shine on what is around them
        shine = cv2.GaussianBlur(layout.letters, (0, 0), 2.0 * strong)
        _lay_over(sheet, np.asarray(shine, dtype=np.uint8), np.clip(ink * 0.8 + 20, 0, 255))
    elif effect < (0.3 if panel else 0.4):
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (strong + 2, strong + 2))
        outline = np.asarray(cv2.dilate(layout.letters, disc), dtype=np.uint8)
        _lay_over(sheet, outline, ink_colour(ink, random))
    inks = _line_colours(layout, ink, ground, random)
    for number, colour in enumerate(inks):
        rows = slice(*np.searchsorted(layout.rows, (number, number + 1)))
        _lay_over(sheet[rows], layout.letters[rows], colour)
    return sheet


def ink_colour(ground: Colour, random: Random) -> Colour:
    """A colour that can be told from the ground, now and then only just or not at all: [3]."""
    if random.uniform() < 0.05:
        return np.clip(ground + random.normal(0, 12) + random.normal(0, 5, size=3), 0, 255)
    least = random.uniform(50, 130)
    for _ in range(4):
        colour = some_colour(random)
        if abs(float(colour.mean() - ground.mean())) > least:
            return colour
    lightness = 255.0 if ground.mean() < 128 else 0.0
    return np.full(3, lightness) + random.uniform(0, 30) * (1 if lightness == 0 else -1)


def _line_colours(layout: Layout, ink: Colour, ground: Colour, random: Random) -> list[Colour]:
    """One ink for all lines, or one a line."""
    lines = int(layout.rows[-1]) + 1
    many = lines > 1 and random.uniform() < 0.25
    return [ink_colour(ground, random) if many and number else ink for number in range(lines)]


def _draw_panel(sheet: Pixels, random: Random) -> Colour:
    """A board with square or round corners, perhaps with a rim; gives its colour."""
    height, width = sheet.shape[:2]
    colour = some_colour(random)
    if random.uniform() < 0.3:
        colour = np.clip(255 - np.abs(random.normal(0, 25)) + random.normal(0, 5, size=3), 0, 255)  # paper, lit glass
    covers = 255.0 if random.uniform() < 0.85 else random.uniform(90, 250)  # a film on glass
    fill = (*(colour * covers / 255).tolist(), covers)
    radius = int(random.uniform(0.05, 0.5) * min(height, width)) if random.uniform() < 0.25 else 0
    cv2.rectangle(sheet, (radius, 0), (width - 1 - radius, height - 1), fill, -1)
    if radius:
        cv2.rectangle(sheet, (0, radius), (width - 1, height - 1 - radius), fill, -1)
        for x in (radius, width - 1 - radius):
            for y in (radius, height - 1 - radius):
                cv2.circle(sheet, (x, y), radius, fill, -1)
    elif random.uniform() < 0.3:
        rim, inset = ink_colour(colour, random), int(random.integers(0, 4))
        thick = max(1, int(random.uniform(0.01, 0.05) * min(height, width)))
        corner = (width - 1 - inset, height - 1 - inset)
        cv2.rectangle(sheet, (inset, inset), corner, (*rim.tolist(), 255.0), thick)
    return colour


def _shadow(letters: Pixels, strong: int, random: Random) -> Pixels:
    """The letters moved aside, sharp as on thick letters, or soft."""
    across, down = (int(step) for step in random.integers(-strong, strong + 1, size=2))
    shift = np.array([[1, 0, across], [0, 1, down]], dtype=np.float32)
    moved = cv2.warpAffine(letters, shift, letters.shape[::-1])
    if random.uniform() < 0.6:
        moved = cv2.GaussianBlur(moved, (0, 0), random.uniform(0.3, 0.8) * strong)
    return np.asarray(moved, dtype=np.uint8)


def _lay_over(sheet: Pixels, mask: Pixels, colour: Colour) -> None:
    """Paint a colour on a sheet where the mask [h, w] is."""
    paint = cv2.merge([cv2.convertScaleAbs(mask, alpha=float(share) / 255) for share in (*colour, 255)])
    sheet[:] = cv2.add(cv2.multiply(sheet, cv2.merge([255 - mask] * 4), scale=1 / 255), paint)
