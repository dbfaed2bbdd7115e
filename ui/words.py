"""Little scenes with words to try the page with, drawn by the code so that none has to be shipped."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Colour = tuple[int, int, int]
Line = tuple[str, int]  # what it says, and the size of its letters in pixels
SIZE = 960, 720  # drawn at one and a half times the size that is saved: smooth edges
SAVED = 640, 480
CREAM, INK, PAPER = (248, 242, 222), (38, 34, 30), (250, 249, 244)


def draw_words(folder: Path) -> list[Path]:
    """Draw every scene into `folder`; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, scene in SCENES.items():
        files.append(folder / f"{name}.jpg")
        photographed(scene()).save(files[-1], quality=88)
    return files


def shop() -> Image.Image:
    """A sign with two lines that hangs askew on bricks."""
    wall = Image.new("RGB", SIZE, (196, 186, 174))
    pen, random = ImageDraw.Draw(wall), np.random.default_rng(3)
    for row, top in enumerate(range(-4, SIZE[1], 40)):
        for left in range(-90 + 45 * (row % 2), SIZE[0], 92):
            light = random.uniform(0.86, 1.08)
            pen.rounded_rectangle((left, top, left + 85, top + 33), 4, fill=_lit((150, 74, 56), light))
    sign = board((760, 330), (28, 74, 52), 26, rim=CREAM)
    centred(sign, [("THE GREEN LEAF", 74), ("Books & Coffee", 68)], CREAM)
    return hung(wall, sign, (480, 360), 9)


def receipt() -> Image.Image:
    """What was bought and what it cost, on a table."""
    table = Image.new("RGB", SIZE, (92, 62, 44))
    pen = ImageDraw.Draw(table)
    for top in range(0, SIZE[1], 90):
        pen.rectangle((0, top, SIZE[0], top + 86), fill=_lit((104, 70, 48), 0.92 + top % 4 * 0.05))
    paper = board((500, 650), PAPER, 2)
    centred(paper, [("CORNER MARKET", 50)], INK, (0, 20, 500, 100))
    pen = ImageDraw.Draw(paper)
    bought = (("Apples", "2.40"), ("Bread", "3.15"), ("Coffee", "7.90"), ("Honey", "5.60"), ("Total", "19.05"))
    for number, (name, price) in enumerate(bought):
        y, font = 165 + 78 * number, ImageFont.load_default(44)
        pen.text((48, y), name, INK, font, anchor="lm")
        pen.text((452, y), price, INK, font, anchor="rm")
    pen.line((48, 440, 452, 440), INK, 3)
    centred(paper, [("Thank you!", 46)], INK, (0, 540, 500, 630))
    return hung(table, paper, (480, 360), -4)


def sideways() -> Image.Image:
    """A banner that is read from bottom to top."""
    house = Image.new("RGB", SIZE, (206, 198, 184))
    pen = ImageDraw.Draw(house)
    for left in (60, 640):
        for top in (70, 410):
            pen.rectangle((left, top, left + 250, top + 240), fill=(236, 232, 222))
            pen.rectangle((left + 14, top + 14, left + 236, top + 226), fill=(74, 98, 120))
            pen.line((left + 125, top + 14, left + 125, top + 226), (236, 232, 222), 10)
    banner = board((660, 260), (150, 38, 40), 10)
    centred(banner, [("LIBRARY", 112), ("open every day", 52)], (252, 250, 246))
    return hung(house, banner, (475, 360), 90)


def parcel() -> Image.Image:
    """A label upside down, as it happens to parcels."""
    card = Image.new("RGB", SIZE, (190, 148, 100))
    ImageDraw.Draw(card).rectangle((0, 590, SIZE[0], 690), fill=(214, 184, 138))
    label = board((640, 380), PAPER, 14, rim=(196, 40, 36))
    centred(label, [("FRAGILE", 112), ("This side up", 72)], (176, 30, 28))
    return hung(card, label, (480, 320), 180)


def poster() -> Image.Image:
    """A heading above two columns."""
    sheet = Image.new("RGB", SIZE, (24, 44, 84))
    pen = ImageDraw.Draw(sheet)
    for radius in range(330, 30, -60):
        pen.circle((480, 70), radius, outline=_lit((60, 96, 150), 1.1 - radius / 600), width=12)
    centred(sheet, [("SPRING CONCERT", 92)], (255, 214, 92), (0, 90, 960, 250))
    pen.line((480, 330, 480, 640), (120, 150, 200), 4)
    centred(sheet, [("Friday", 68), ("Town Hall", 56), ("19:30", 56)], PAPER, (60, 310, 460, 660))
    centred(sheet, [("Sunday", 68), ("Old Barn", 56), ("11:00", 56)], PAPER, (500, 310, 900, 660))
    return sheet


SCENES: dict[str, Callable[[], Image.Image]] = {
    "shop": shop,
    "receipt": receipt,
    "sideways": sideways,
    "parcel": parcel,
    "poster": poster,
}


def board(size: tuple[int, int], ground: Colour, corner: int, rim: Colour | None = None) -> Image.Image:
    """Something to write on, transparent around its corners."""
    made = Image.new("RGBA", size)
    pen = ImageDraw.Draw(made)
    pen.rounded_rectangle((0, 0, size[0] - 1, size[1] - 1), corner, fill=ground)
    if rim:
        pen.rounded_rectangle((14, 14, size[0] - 15, size[1] - 15), max(2, corner - 8), outline=rim, width=6)
    return made


def centred(
    picture: Image.Image, lines: list[Line], ink: Colour, area: tuple[int, int, int, int] | None = None
) -> None:
    """Write lines below one another into the middle of an area (left, top, right, bottom)."""
    left, top, right, bottom = area or (0, 0, *picture.size)
    pen, height = ImageDraw.Draw(picture), sum(1.45 * size for _, size in lines)
    y = (top + bottom - height) / 2
    for text, size in lines:
        middle = ((left + right) / 2, y + 0.725 * size)
        spread = text.replace(" ", "  ")  # the font's own blanks are narrow for a sign
        pen.text(middle, spread, ink, ImageFont.load_default(size), anchor="mm", stroke_width=size / 60)
        y += 1.45 * size


def hung(ground: Image.Image, thing: Image.Image, middle: tuple[int, int], turn: float) -> Image.Image:
    """Lay a thing onto a ground, turned by degrees against the clock, with its shadow."""
    turned = thing.rotate(turn, Image.Resampling.BICUBIC, expand=True)
    place = middle[0] - turned.width // 2, middle[1] - turned.height // 2
    shadow = Image.new("L", ground.size)
    shadow.paste(turned.getchannel("A").point(lambda value: value * 0.55), (place[0] + 8, place[1] + 14))
    ground.paste((20, 16, 12), mask=shadow.filter(ImageFilter.BoxBlur(9)))
    ground.paste(turned, place, turned)
    return ground


def photographed(picture: Image.Image) -> Image.Image:
    """With the softness, the light from one side and the grain of a photograph."""
    pixels = np.asarray(picture.resize(SAVED, Image.Resampling.BOX), dtype=np.float32)
    light = np.linspace(1.08, 0.86, SAVED[0], dtype=np.float32)[None, :, None]
    grain = np.random.default_rng(1).standard_normal((*pixels.shape[:2], 1), dtype=np.float32) * 4
    return Image.fromarray(np.clip(pixels * light + grain, 0, 255).astype(np.uint8))


def _lit(colour: Colour, light: float) -> Colour:
    red, green, blue = (min(255, round(channel * light)) for channel in colour)
    return red, green, blue
