"""Pictures to try the page with, drawn by the code so that none has to be shipped.

Pressed leaves on paper (an outline along a midrib, veins, a little noise), and a sunflower.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from ui.sunflower import draw_sunflower

SIZE = 480
SCALE = 2  # drawn larger, then shrunk: smooth edges
Outline = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Point = tuple[float, float]


def oak(along: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the width of a lobed leaf, from stalk (0) to tip (1)."""
    return 0.30 * np.sin(np.pi * along**0.8) ** 0.7 * (0.72 + 0.28 * np.cos(9 * np.pi * along + np.pi))


def willow(along: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the width of a long, narrow leaf."""
    return 0.10 * np.sin(np.pi * along**0.9) * (1 + 0.04 * np.cos(60 * np.pi * along))


LEAVES: dict[str, tuple[Outline, tuple[int, int, int], float, int]] = {
    # name: outline, colour, turn in degrees, seed
    "oak-1": (oak, (92, 128, 58), -14, 1),
    "oak-2": (oak, (118, 124, 52), 22, 2),
    "willow": (willow, (78, 132, 84), 38, 3),
}


def draw_samples(folder: Path) -> dict[str, Path]:
    """Draw every sample into `folder`; returns the files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.jpg" for name in LEAVES}
    for name, file in files.items():
        draw_leaf(*LEAVES[name]).save(file, quality=90)
    files["sunflower"] = folder / "sunflower.jpg"
    draw_sunflower().save(files["sunflower"], quality=90)
    return files


def draw_leaf(outline: Outline, colour: tuple[int, int, int], turn: float, seed: int) -> Image.Image:
    """One leaf on paper."""
    random = np.random.default_rng(seed)
    side = SIZE * SCALE
    paper = Image.new("RGB", (side, side), (238, 233, 220))
    edge = _edge(outline, turn, random)
    shadow = Image.new("L", (side, side), 0)
    ImageDraw.Draw(shadow).polygon([(x + 10, y + 14) for x, y in edge], fill=90)
    paper.paste((120, 110, 95), mask=shadow.filter(ImageFilter.GaussianBlur(12)))
    pen = ImageDraw.Draw(paper)
    pen.polygon(edge, fill=colour)
    _veins(pen, outline, turn, tuple(min(255, channel + 42) for channel in colour))
    grain = random.normal(0, 7, (side, side, 1))
    pixels = np.clip(np.asarray(paper, dtype=np.float64) + grain, 0, 255).astype(np.uint8)
    return Image.fromarray(pixels).resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def _place(along: float, across: float, turn: float) -> Point:
    """Leaf coordinates (along the midrib 0–1, across it) to pixels."""
    angle = np.deg2rad(turn)
    x, y = across, 0.42 - 0.84 * along
    side = SIZE * SCALE
    return (
        side * (0.5 + x * np.cos(angle) - y * np.sin(angle)),
        side * (0.5 + x * np.sin(angle) + y * np.cos(angle)),
    )


def _edge(outline: Outline, turn: float, random: np.random.Generator) -> list[Point]:
    along = np.linspace(0, 1, 400)
    wobble = 1 + 0.05 * np.convolve(random.normal(0, 1, 400), np.ones(40) / 40, "same")
    width = outline(along) * wobble
    right = [_place(a, w, turn) for a, w in zip(along, width, strict=True)]
    left = [_place(a, -w, turn) for a, w in zip(along, width, strict=True)]
    return right + left[::-1]


def _veins(pen: ImageDraw.ImageDraw, outline: Outline, turn: float, colour: tuple[int, ...]) -> None:
    pen.line([_place(-0.09, 0, turn), _place(0.97, 0, turn)], fill=colour, width=8)
    for start in np.linspace(0.12, 0.82, 8):
        end = start + 0.1
        reach = 0.82 * float(outline(np.array([end]))[0])
        for side in (-1, 1):
            pen.line([_place(start, 0, turn), _place(end, side * reach, turn)], fill=colour, width=4)
