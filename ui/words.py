"""Words to try the page with, drawn by the code so that none has to be shipped."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIZE = 96  # of the letters, in pixels
# name: text, ink, ground, turn in degrees, blur
WORDS: dict[str, tuple[str, tuple[int, int, int], tuple[int, int, int], float, float]] = {
    "sign": ("Botanic", (250, 247, 235), (32, 84, 58), 0, 0.8),
    "tilted": ("Espresso!", (60, 34, 20), (226, 205, 170), 7, 1.2),
    "plate": ("N17-4GU", (20, 20, 24), (246, 200, 40), 0, 1.6),
    "sideways": ("LIBRARY", (245, 245, 245), (140, 40, 36), 90, 0.8),
}


def draw_words(folder: Path) -> list[Path]:
    """Draw every word into `folder`; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, (text, ink, ground, turn, blur) in WORDS.items():
        file = folder / f"{name}.jpg"
        draw_word(text, ink, ground, turn, blur).save(file, quality=88)
        files.append(file)
    return files


def draw_word(
    text: str, ink: tuple[int, int, int], ground: tuple[int, int, int], turn: float, blur: float
) -> Image.Image:
    """One word on a plain sign, with the shade and the grain of a photograph."""
    font = ImageFont.load_default(SIZE)
    left, top, right, bottom = font.getbbox(text)
    margin = SIZE // 3
    size = int(right - left) + 2 * margin, int(bottom - top) + 2 * margin
    picture = Image.new("RGB", size, ground)
    ImageDraw.Draw(picture).text((margin - left, margin - top), text, fill=ink, font=font)
    picture = picture.rotate(turn, Image.Resampling.BICUBIC, expand=turn % 90 == 0, fillcolor=ground)
    pixels = np.asarray(picture.filter(ImageFilter.GaussianBlur(blur)), dtype=np.float64)
    shade = np.linspace(1.08, 0.86, pixels.shape[1])[None, :, None]
    grain = np.random.default_rng(1).normal(0, 4, pixels.shape)
    return Image.fromarray(np.clip(pixels * shade + grain, 0, 255).astype(np.uint8))
