"""Pictures of single words: a folder with `labels.tsv` (file, text, source, set), or LMDB files in their usual form."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import lmdb
import numpy as np
from numpy.typing import NDArray

from training.data.table import read_table
from training.errors import DataError

Pixels = NDArray[np.uint8]
COLUMNS = {"file", "text", "source", "set"}
# What the folders of published LMDB sets are called.
SETS = {"train": "train", "training": "train", "val": "val", "validation": "val", "evaluation": "val", "test": "val"}


@dataclass(frozen=True)
class WordCrop:
    """One picture of a word, and what it says."""

    file: Path
    text: str
    source: str
    set_name: str
    number: int = 0  # in an LMDB file; 0: `file` is the picture itself

    def load(self) -> Pixels:
        """Its pixels: [H, W, 3], RGB."""
        data = self.file.read_bytes() if not self.number else _stored(self.file, f"image-{self.number:09d}")
        pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR_RGB) if data else None
        if pixels is None:
            where = f"picture {self.number} of {self.file}" if self.number else str(self.file)
            raise DataError(f"{where} is not a picture that can be read")
        return np.asarray(pixels, dtype=np.uint8)


def read_words(folder: Path) -> list[WordCrop]:
    """All crops of a data folder; says what is missing.

    LMDB sets lie below folders named train or training, val, validation or evaluation; the folder that holds
    `data.mdb` names the source.
    """
    if not folder.is_dir():
        raise DataError(f"there is no data folder at {folder}")
    table = folder / "labels.tsv"
    if table.is_file():
        rows = read_table(table, COLUMNS)
        return [WordCrop(folder / row["file"], row["text"], row["source"], row["set"]) for row in rows]
    databases = sorted(folder.rglob("data.mdb"))
    if not databases:
        raise DataError(f"{folder} holds neither labels.tsv nor data.mdb")
    return [crop for database in databases for crop in _read_lmdb(folder, database.parent)]


def _read_lmdb(root: Path, folder: Path) -> Iterator[WordCrop]:
    names = [part for part in (root.resolve().name, *folder.relative_to(root).parts) if part in SETS]
    if not names:
        raise DataError(f"{folder} lies below none of {', '.join(SETS)}: is it for training or for validation?")
    count = _stored(folder, "num-samples")
    if count is None or not count.isdigit():
        raise DataError(f"{folder} is not a set of words: it has no num-samples")
    for number in range(1, int(count) + 1):
        label = _stored(folder, f"label-{number:09d}")
        if label is None:
            raise DataError(f"{folder} promises {int(count)} words, but has no label {number}")
        yield WordCrop(folder, label.decode("utf-8"), folder.name, SETS[names[-1]], number)


@cache
def _open(folder: Path) -> lmdb.Environment:
    return lmdb.open(str(folder), readonly=True, lock=False, readahead=False, meminit=False)


def _stored(folder: Path, key: str) -> bytes | None:
    with _open(folder).begin() as transaction:
        value = transaction.get(key.encode())
    return None if value is None else bytes(value)
