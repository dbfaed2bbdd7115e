"""The fonts of this machine that can write Latin letters, and what each can write."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont
from rapidfuzz.distance import Levenshtein
from rich.progress import track

from training.alphabet import PRINTABLE

FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path.home() / ".fonts")
OWN = Path(matplotlib.get_data_path()) / "fonts/ttf"  # there wherever we can train
NOT_LETTERS = ("dingbat", "symbol", "math", "emoji", "icon", "braille", "music", "cmex", "cmsy", "stix", "d050000l")
LEAST = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
SAMPLES = ("HANDGLOVES", "jumpquick", "FIXTUREWB", "1234567890")
MOST_WRONG = 0.3  # of a sample's characters
CASED = "abdeghnqrt"  # letters whose small form is another shape, not another size


@dataclass(frozen=True)
class Font:
    """A font file, and the characters it is used for."""

    path: str
    characters: str

    def can_write(self, text: str) -> bool:
        """Is there a shape for every character?"""
        return set(text) <= set(self.characters)

    def at(self, size: int) -> ImageFont.FreeTypeFont:
        """The font in pixels."""
        return _opened(self.path, size)


@lru_cache(maxsize=4096)
def _opened(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def find_fonts(cache: Path | None = None) -> list[Font]:
    """Look at every font file once; `cache` keeps what was found as long as the list of files is the same."""
    files = sorted(
        str(file)
        for folder in (*FOLDERS, OWN)
        for file in folder.rglob("*")
        if file.suffix.lower() in {".ttf", ".otf"} and not any(word in file.name.lower() for word in NOT_LETTERS)
    )
    if cache is not None and cache.exists():
        known = json.loads(cache.read_text())
        if known["files"] == files:
            return [Font(**entry) for entry in known["fonts"]]
    fonts = [font for font in map(_look_at, track(files, description="looking at fonts", transient=True)) if font]
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial = cache.with_suffix(f".{os.getpid()}.part")
        partial.write_text(json.dumps({"files": files, "fonts": [asdict(font) for font in fonts]}))
        partial.replace(cache)
    return fonts


def legible_fonts(fonts: Sequence[Font], read: Callable[[list[np.ndarray]], list[str]]) -> list[Font]:
    """Fonts of which a reader can make out a plain sample: skulls and ruins in place of letters teach nothing."""
    samples = [(font, text) for font in fonts for text in SAMPLES if font.can_write(text)]
    readings = read([plainly_written(text, font) for font, text in samples])
    wrong: dict[Font, int] = {}
    length: dict[Font, int] = {}
    for (font, text), reading in zip(samples, readings, strict=True):
        wrong[font] = wrong.get(font, 0) + Levenshtein.distance(reading.lower(), text.lower())
        length[font] = length.get(font, 0) + len(text)
    return [font for font in fonts if font in wrong and wrong[font] <= MOST_WRONG * length[font]]


def plainly_written(text: str, font: Font) -> np.ndarray:
    """Black on white: [H, W, 3]."""
    face = font.at(40)
    left, top, right, bottom = face.getbbox(text)
    picture = Image.new("RGB", (int(right - left) + 12, int(bottom - top) + 12), "white")
    ImageDraw.Draw(picture).text((6 - left, 6 - top), text, fill="black", font=face)
    return np.asarray(picture)


def _look_at(file: str) -> Font | None:
    """What a font can write; None if it is no Latin font. Small letters drawn as capitals are left out."""
    try:
        with Path(file).open("rb") as stream, TTFont(stream, lazy=True, fontNumber=0) as font:
            known = set(font.getBestCmap() or ())
        characters = {character for character in PRINTABLE if ord(character) in known}
        if not characters >= LEAST:
            return None
        shapes = {character: _shape(file, character) for character in characters}
    except Exception:  # fontTools and FreeType raise many kinds on odd fonts
        return None
    characters = {character for character in characters if shapes[character] is not None}
    if not characters >= LEAST:
        return None
    small = [letter for letter in CASED if letter in characters]
    alike = sum(_alike(shapes[letter], shapes[letter.upper()]) for letter in small)
    if 2 * alike > len(small):
        characters -= set("abcdefghijklmnopqrstuvwxyz")
    return Font(file, "".join(sorted(characters)))


def _shape(file: str, character: str) -> np.ndarray | None:
    """A character in a frame of 24 × 24, whatever its size; None if nothing is drawn."""
    font = _opened(file, 40)
    picture = Image.new("L", (120, 120))
    ImageDraw.Draw(picture).text((30, 30), character, fill=255, font=font)
    frame = picture.getbbox()
    return None if frame is None else np.asarray(picture.crop(frame).resize((24, 24))) > 127


def _alike(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    assert first is not None  # characters without a shape are gone
    assert second is not None
    return bool((first & second).sum() > 0.85 * (first | second).sum())
