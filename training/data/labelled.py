"""Labelled pictures: a folder with `labels.tsv` (file, class_name, source, set), or with a folder for each class."""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from training.data.table import read_table
from training.errors import DataError

COLUMNS = {"file", "class_name", "source", "set"}
SETS = {"train", "val", "val_unseen_class", "test"}
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"}
FIFTH = 5  # every fifth picture of a class is kept for validation where nobody said which


@dataclass(frozen=True)
class LabelledFile:
    """One picture on disk and what is known of it."""

    path: Path
    class_name: str
    source: str
    set_name: str


def read_labels(folder: Path) -> list[LabelledFile]:
    """All pictures of a data folder; says what is missing.

    Without `labels.tsv`, `folder/rose/1.jpg` is a rose. The folders may stand below `train/` and `val/`; else every
    fifth picture of a class is for validation, always the same ones.
    """
    if not folder.is_dir():
        raise DataError(f"there is no data folder at {folder}")
    table = folder / "labels.tsv"
    if table.is_file():
        rows = read_table(table, COLUMNS)
        return [LabelledFile(folder / row["file"], row["class_name"], row["source"], row["set"]) for row in rows]
    sets = [child for child in sorted(folder.iterdir()) if child.is_dir() and child.name in SETS]
    if "train" in {child.name for child in sets}:
        return [file for child in sets for file in _read_classes(child, folder.resolve().name, child.name)]
    return _read_classes(folder, folder.resolve().name, None)


def _read_classes(folder: Path, source: str, set_name: str | None) -> list[LabelledFile]:
    classes = [child for child in sorted(folder.iterdir()) if child.is_dir() and not child.name.startswith(".")]
    if not classes:
        raise DataError(f"{folder} holds neither labels.tsv nor a folder for each class")
    found = []
    for place in classes:
        pictures = [file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file()]
        if not pictures:
            raise DataError(f"the class {place.name} has no picture in {place}; add some, or delete the folder")
        pictures.sort(key=lambda file: zlib.crc32(str(file.relative_to(place)).encode()))  # mixed, the same every time
        found += [LabelledFile(file, place.name, source, set_name or "train") for file in pictures]
    return found if set_name else hold_out(found)


def hold_out(files: Sequence[LabelledFile]) -> list[LabelledFile]:
    """Every fifth picture of a class, in the order given, goes to the set `val`."""
    seen: Counter[str] = Counter()
    found = []
    for file in files:
        seen[file.class_name] += 1
        found.append(replace(file, set_name="val") if seen[file.class_name] % FIFTH == 0 else file)
    return found


def load_pixels(path: Path, width: int, height: int) -> NDArray[np.uint8]:
    """The upright middle of a picture at width × height, exactly as the service prepares it: [height, width, 3]."""
    with Image.open(path) as stored:
        stored.draft(None, (max(width, height),) * 2)
        picture = ImageOps.exif_transpose(stored).convert("RGB")
    scale = min(picture.width / width, picture.height / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    left, top = (picture.width - size[0]) // 2, (picture.height - size[1]) // 2
    middle = np.asarray(picture)[top : top + size[1], left : left + size[0]]
    interpolation = cv2.INTER_AREA if scale > 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(middle, (width, height), interpolation=interpolation), dtype=np.uint8)
