"""A sunflower, drawn by the code, real enough to be recognised."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIDE = 960  # drawn at twice the size that is returned: smooth edges
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))  # from seed to seed
SEEDS = 900
DISC = 0.185  # radius, of the picture's side
RINGS = ((26, 0.40, 0.075, 0.82), (24, 0.375, 0.070, 0.93), (21, 0.34, 0.060, 1.0))  # petals, length, width, light
Colour = tuple[int, int, int]


def draw_sunflower(seed: int = 4) -> Image.Image:
    """One flower before blurred leaves, 480 × 480."""
    random = np.random.default_rng(seed)
    picture = _leaves_behind(random)
    pen = ImageDraw.Draw(picture)
    for ring, (petals, length, width, light) in enumerate(RINGS):
        for number in range(petals):
            angle = 2 * math.pi * (number + 0.4 * ring) / petals + random.normal(0, 0.05)
            _petal(pen, angle, SIDE * length * random.uniform(0.9, 1.06), SIDE * width, light, random)
    _disc(pen, random)
    down, right = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    light_from_top_left = 1.12 - 0.28 * np.hypot(right - 0.3, down - 0.25)
    grain = random.normal(0, 6, (SIDE, SIDE, 1))
    pixels = np.asarray(picture, dtype=np.float64) * light_from_top_left[..., None] + grain
    lit = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return lit.resize((SIDE // 2, SIDE // 2), Image.Resampling.LANCZOS)


def _leaves_behind(random: np.random.Generator) -> Image.Image:
    picture = Image.new("RGB", (SIDE, SIDE), (70, 105, 60))
    pen = ImageDraw.Draw(picture)
    for _ in range(60):
        (x, y), size, green = random.uniform(0, SIDE, 2), random.uniform(60, 200), random.uniform(80, 150)
        place = (x - size, y - 0.6 * size, x + size, y + 0.6 * size)
        pen.ellipse(place, fill=_colour(0.55 * green, green, 0.4 * green))
    return picture.filter(ImageFilter.GaussianBlur(30))


def _petal(
    pen: ImageDraw.ImageDraw, angle: float, length: float, width: float, light: float, random: np.random.Generator
) -> None:
    along = np.linspace(0, 1, 30)
    half = 0.5 * width * random.uniform(0.8, 1.1) * np.sin(np.pi * along**0.75) ** 0.8
    bend = random.normal(0, 0.06) * length * along**2
    red, green, blue = np.array((250, 190 + random.uniform(-15, 20), 22)) * light * random.uniform(0.93, 1.03)

    def curve(share: float) -> list[tuple[float, float]]:
        """From the disc to the tip, at this share of half the width to one side."""
        x, y = length * along, bend + share * half
        right = SIDE / 2 + math.cos(angle) * x - math.sin(angle) * y
        down = SIDE / 2 + math.sin(angle) * x + math.cos(angle) * y
        return list(zip(right.tolist(), down.tolist(), strict=True))

    pen.polygon(
        curve(1) + curve(-1)[::-1],
        fill=_colour(red, green, blue),
        outline=_colour(0.78 * red, 0.78 * green, 0.78 * blue),
    )
    for share in (-0.36, 0, 0.36):
        pen.line(curve(share)[4:26], fill=_colour(0.86 * red, 0.86 * green, 0.86 * blue), width=2)


def _disc(pen: ImageDraw.ImageDraw, random: np.random.Generator) -> None:
    """Seeds along the golden angle, green in the middle, brown outside."""
    centre, radius = SIDE / 2, SIDE * DISC
    pen.ellipse((centre - radius, centre - radius, centre + radius, centre + radius), fill=(52, 30, 14))
    for number in range(SEEDS):
        out = number / SEEDS
        angle, reach, size = number * GOLDEN_ANGLE, radius * math.sqrt(out), 3 + 5 * out
        x, y = centre + reach * math.cos(angle), centre + reach * math.sin(angle)
        wobble = random.uniform(-10, 10)
        ripe = out > 0.35
        fill = (
            _colour(60 + 95 * out + wobble, 36 + 52 * out + wobble, 14 + 12 * out)
            if ripe
            else _colour(70, 62 + wobble, 22)
        )
        pen.ellipse((x - size, y - size, x + size, y + size), fill=fill, outline=(35, 20, 8))


def _colour(red: float, green: float, blue: float) -> Colour:
    clear = [int(min(255, max(0, channel))) for channel in (red, green, blue)]
    return clear[0], clear[1], clear[2]
