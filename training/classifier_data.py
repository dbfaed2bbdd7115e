"""The pictures a classifier learns from, looked at before anything is learned: what cannot be is said at once."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import track

from training.data.hard_settings import HardSetting
from training.data.labelled import LabelledFile, hold_out, read_labels
from training.errors import DataError

NAMED = 5  # files that an error names before it counts the rest


@dataclass(frozen=True)
class ClassifierData:
    """Training pictures, validation pictures, and the classes of both, in the order of their numbers."""

    classes: tuple[str, ...]
    all_train: list[LabelledFile]  # before a hard setting takes some away
    train: list[LabelledFile]
    val: list[LabelledFile]

    @property
    def train_labels(self) -> NDArray[np.int64]:
        """Class numbers of `train`."""
        return self._numbers(self.train)

    @property
    def val_labels(self) -> NDArray[np.int64]:
        """Class numbers of `val`."""
        return self._numbers(self.val)

    def _numbers(self, files: Sequence[LabelledFile]) -> NDArray[np.int64]:
        numbers = {name: number for number, name in enumerate(self.classes)}
        return np.array([numbers[file.class_name] for file in files])


def classifier_data(
    folders: Sequence[Path],
    sources: Sequence[str] = (),
    setting: HardSetting | None = None,
    seed: int = 0,
    *,
    skip_unreadable: bool = False,
) -> ClassifierData:
    """Read and check the sets `train` and `val`; a class is known by its name, whatever its source."""
    files = [file for folder in folders for file in read_labels(folder) if file.set_name in ("train", "val")]
    known = {file.source for file in files}
    if missing := sorted(set(sources) - known):
        raise DataError(f"no picture of the source {missing[0]}; the data have {', '.join(sorted(known))}")
    files = [file for file in files if not sources or file.source in sources]
    names = {file.class_name for file in files}
    check_names(names)
    files = readable(files, skip=skip_unreadable)
    if gone := sorted(names - {file.class_name for file in files}):
        raise DataError(f"no picture of the class {gone[0]} can be read; mend them, or leave the class out")
    if all(file.set_name == "train" for file in files):  # of a table that has no val
        files = hold_out(sorted(files, key=lambda file: zlib.crc32(file.path.name.encode())))
    train, val = ([file for file in files if file.set_name == name] for name in ("train", "val"))
    classes = tuple(sorted({file.class_name for file in train}))
    if len(classes) < 2:
        raise DataError(
            f"a classifier needs two classes, not {len(classes)}: put the pictures of each into a folder of its own"
        )
    if strangers := sorted({file.class_name for file in val} - set(classes)):
        raise DataError(
            f"the class {strangers[0]} has pictures of the set val, but none of train that can be read; add some"
        )
    if not val:
        raise DataError(
            "no picture is left for validation: a class needs five pictures, or the data a folder named val"
        )
    lonely = [name for name, count in Counter(file.class_name for file in train).items() if count < 2]
    if lonely:
        raise DataError(f"the class {min(lonely)} has one picture to train on; add some, or leave it out")
    return ClassifierData(classes, train, (setting or HardSetting()).applied_to(train, seed), val)


def check_names(names: set[str]) -> None:
    """Raise DataError for names that cannot be shown, or differ in case or blanks alone: most probably one class."""
    for name in sorted(names):
        if not name.isprintable() or not name.strip():
            raise DataError(f"{name!r} cannot be the name of a class; give it one of visible characters")
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        alike[" ".join(name.casefold().split())].append(name)
    for several in alike.values():
        if len(several) > 1:
            written = " and ".join(map(repr, several))
            raise DataError(
                f"the classes {written} differ in case or blanks alone; give them one name, or clearer ones"
            )


def readable(files: Sequence[LabelledFile], *, skip: bool) -> list[LabelledFile]:
    """Files that are pictures; raises DataError naming those that are not, unless they are to be skipped."""
    with ThreadPoolExecutor(2) as readers:
        looked = readers.map(_is_picture, (file.path for file in files))
        found = list(track(looked, description="checking pictures", total=len(files), transient=True))
    broken = [file.path for file, fine in zip(files, found, strict=True) if not fine]
    if broken and not skip:
        more = f" and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
        raise DataError(
            f"{', '.join(map(str, broken[:NAMED]))}{more} cannot be read as pictures; "
            "delete or mend them, or leave them out with --skip-unreadable"
        )
    if broken:
        Console(stderr=True).print(f"{len(broken)} files are no pictures and left out", highlight=False)
    return [file for file, fine in zip(files, found, strict=True) if fine]


@cache  # a training and its evaluation ask about the same files
def _is_picture(path: Path) -> bool:
    try:
        with Image.open(path) as picture:
            picture.draft(None, (64, 64))  # a JPEG is still read to its end, but eight times as fast
            picture.load()
    except Exception:  # Pillow raises whatever a damaged file provokes
        return False
    return True
