"""Looks at fonts and crops with a reader before a training: what it finds is kept in `runs/`, and looked at once."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from training.data.canvas import place, turns
from training.data.fonts import Font, find_fonts, legible_fonts
from training.data.pixels import normalised
from training.data.word_feed import Example
from training.data.words import WordCrop
from training.kept_files import kept_file
from training.metrics.edit_distance import alphanumeric_only
from training.models.recognizer import Recognizer
from training.reading import read_crops

SIGN = re.compile("[^0-9A-Za-z]")


def legible_on_this_machine(reader: Recognizer) -> list[Font]:
    """This machine's fonts that can be read at all."""
    fonts = find_fonts(kept_file("fonts.json", "fonts of this machine"))

    def look() -> list[str]:
        found = legible_fonts(fonts, lambda crops: [reading.text for reading in read_crops(reader, crops)])
        return [font.path for font in found]

    legible = set(_once("legible", [font.path for font in fonts], look))
    return [font for font in fonts if font.path in legible]


def prepare(reader: Recognizer, crops: Sequence[WordCrop]) -> list[Example]:
    """Crops to learn from, upright, with signs and capitals where a set's labels leave them out."""

    def look() -> list[list[Any]]:
        texts = _with_signs(reader, crops)
        return [[text, _turn(reader, crop)] for crop, text in zip(crops, texts, strict=True)]

    known = _once("crops", [[str(crop.file), crop.number, crop.text] for crop in crops], look)
    return [Example(replace(crop, text=text), turn) for crop, (text, turn) in zip(crops, known, strict=True)]


def _with_signs(reader: Recognizer, crops: Sequence[WordCrop]) -> list[str]:
    """Labels of a source that never has a sign are taken from the reader wherever it agrees on letters and digits."""
    signed = {crop.source for crop in crops if SIGN.search(crop.text)}
    bare = [crop for crop in crops if crop.source not in signed]
    readings = dict(zip(bare, read_crops(reader, [crop.load() for crop in bare], quiet=False), strict=True))
    texts = []
    for crop in crops:
        reading = readings[crop].text if crop in readings else ""
        agree = alphanumeric_only(reading) == alphanumeric_only(crop.text)
        texts.append(reading if agree and reading else crop.text)
    return texts


def _turn(reader: Recognizer, crop: WordCrop) -> int:
    """The quarter turn in which a crop's word is most probable; only a tall one may need one."""
    pixels = crop.load()
    candidates = turns(pixels)
    if len(candidates) == 1 or len(crop.text) == 1:
        return 0
    losses = []
    with torch.inference_mode():
        for turn in candidates:
            canvas = torch.from_numpy(place(np.rot90(pixels, turn), reader.shape.canvas))
            losses.append(float(reader.loss(normalised(canvas[None]), [crop.text])))
    return candidates[int(np.argmin(losses))]


def _once(name: str, question: Any, answer: Callable[[], Any]) -> Any:
    """An answer that is kept for the same question."""
    file = kept_file(f"{name}.json", question)
    if not file.exists():
        found = answer()
        partial = file.with_suffix(".part")
        partial.write_text(json.dumps(found))
        partial.replace(file)
    return json.loads(file.read_text())
