"""Photographs with words in them: a folder with `labels.tsv`, or ICDAR'15 in the form in which it is published."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.table import read_table
from training.data.words import SETS, Pixels
from training.errors import DataError

DONT_CARE = "###"
CORNERS = [f"{axis}{number}" for number in range(1, 5) for axis in "xy"]
COLUMNS = {"file", *CORNERS, "text", "set"}
TRUTH = re.compile(r"gt_(.+)\.txt")  # gt_img_1.txt holds the words of img_1.jpg
PICTURES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Scene:
    """One photograph and its words."""

    file: Path
    quads: NDArray[np.float64]  # [M, 4, 2], clockwise from the text's own top left
    texts: tuple[str, ...]
    set_name: str

    @property
    def ignored(self) -> NDArray[np.bool_]:
        """Words that nobody has to find: [M]."""
        return np.array([text == DONT_CARE for text in self.texts], dtype=bool)

    def load(self) -> Pixels:
        """Its pixels: [H, W, 3], RGB."""
        data = np.frombuffer(self.file.read_bytes(), dtype=np.uint8)
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB) if data.size else None
        if pixels is None:
            raise DataError(f"{self.file} is not a picture that can be read")
        return np.asarray(pixels, dtype=np.uint8)


def read_scenes(folder: Path) -> list[Scene]:
    """All photographs of a data folder; says what is missing.

    ICDAR'15 as published: pictures img_1.jpg … and texts gt_img_1.txt … with a word a line, `x1,y1,…,x4,y4,text`, in
    folders whose names hold train or test.
    """
    if not folder.is_dir():
        raise DataError(f"there is no data folder at {folder}")
    if (folder / "labels.tsv").is_file():
        return list(_read_table(folder, folder / "labels.tsv"))
    truths = sorted(file for file in folder.rglob("gt_*.txt"))
    if not truths:
        raise DataError(f"{folder} holds neither labels.tsv nor files like gt_img_1.txt")
    pictures = {
        (_set_name(file, folder), file.stem): file for file in folder.rglob("*") if file.suffix.lower() in PICTURES
    }
    return [_read_published(file, folder, pictures) for file in truths]


def _read_table(folder: Path, table: Path) -> Iterator[Scene]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in read_table(table, COLUMNS):
        found.setdefault(row["file"], []).append(row)
    for name, rows in found.items():
        try:
            corners = [[float(row[column]) for column in CORNERS] for row in rows]
        except (ValueError, TypeError) as error:
            raise DataError(f"{table}: a corner of {name} is not a number ({error})") from error
        quads = np.array(corners).reshape(-1, 4, 2)
        yield Scene(folder / name, quads, tuple(row["text"] for row in rows), rows[0]["set"])


def _read_published(file: Path, folder: Path, pictures: dict[tuple[str | None, str], Path]) -> Scene:
    match = TRUTH.fullmatch(file.name)
    assert match is not None  # by the pattern of the search
    set_name = _set_name(file, folder)
    if set_name is None:
        raise DataError(f"{file} lies below no folder that says train, val or test")
    # Each set has its own img_1.jpg: that of the other would be another photograph.
    picture = pictures.get((set_name, match[1])) or pictures.get((None, match[1]))
    if picture is None:
        raise DataError(f"{file} has no picture: {match[1]}.jpg or .png is missing in {folder}")
    quads, texts = [], []
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        parts = line.split(",", 8)  # a text may hold commas
        try:
            quads.append([float(part) for part in parts[:8]])
            texts.append(parts[8])
        except (ValueError, IndexError) as error:
            raise DataError(f"{file}, line {number}: eight numbers and a text are expected, not {line!r}") from error
    return Scene(picture, np.array(quads).reshape(-1, 4, 2), tuple(texts), set_name)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not written in UTF-8: {error}") from error


def _set_name(file: Path, folder: Path) -> str | None:
    """train or val or nothing, by the names of the folders around a file: `ch4_training_images` is for training."""
    for part in reversed(file.relative_to(folder.parent).parts[:-1]):
        for word in re.split("[^a-z]+", part.lower()):
            if word in SETS:
                return SETS[word]
    return None
