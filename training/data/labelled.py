"""A folder with `labels.tsv` (file, class_name, source, set), the form of all our labelled pictures."""

import csv
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from training.errors import DataError

COLUMNS = {"file", "class_name", "source", "set"}


@dataclass(frozen=True)
class LabelledFile:
    """One picture on disk and what is known of it."""

    path: Path
    class_name: str
    source: str
    set_name: str


def read_labels(folder: Path) -> list[LabelledFile]:
    """Read `folder/labels.tsv`; names what is missing."""
    table = folder / "labels.tsv"
    if not table.is_file():
        raise DataError(f"{table} does not exist; a data folder holds labels.tsv and its images")
    with table.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        missing = COLUMNS - set(reader.fieldnames or ())
        if missing:
            raise DataError(f"{table} lacks the columns {', '.join(sorted(missing))}")
        return [LabelledFile(folder / row["file"], row["class_name"], row["source"], row["set"]) for row in reader]


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
