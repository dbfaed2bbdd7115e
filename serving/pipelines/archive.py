"""Pictures out of a zip file, one at a time and never onto the disk."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from serving.errors import ArchiveBroken, EntryRefused
from serving.schemas import MAX_LABEL, clean

MAX_ENTRIES = 100_000


@dataclass(frozen=True)
class Entry:
    """A file in the archive; `label` is the name of the folder it lies in."""

    name: str
    label: str | None
    info: zipfile.ZipInfo


class Archive:
    """A zip file that was sent to us; nothing in it is believed."""

    def __init__(self, file: Path, max_image_bytes: int) -> None:
        self._max_image_bytes = max_image_bytes
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ArchiveBroken(f"the file is not a zip archive that can be read ({error})") from error
        entries = [info for info in self._zip.infolist() if _is_file(info)]
        if len(entries) > MAX_ENTRIES:
            self._zip.close()
            raise ArchiveBroken(f"the archive holds {len(entries):,} files; at most {MAX_ENTRIES:,} are accepted")
        self.entries = [Entry(info.filename, _label(info.filename), info) for info in entries]

    def __enter__(self) -> "Archive":
        """Close it at the end."""
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def read(self, entry: Entry) -> bytes:
        """The bytes of an entry; no more than a picture may have, whatever the archive says of itself."""
        if ".." in PurePosixPath(entry.name.replace("\\", "/")).parts:
            raise EntryRefused("its path goes up, out of the archive")
        if entry.info.flag_bits & 1:
            raise EntryRefused("it is encrypted")
        try:
            with self._zip.open(entry.info) as stream:
                data = stream.read(self._max_image_bytes + 1)
        except Exception as error:  # zipfile and its decompressors raise many kinds on a damaged file
            raise EntryRefused(f"it cannot be unpacked ({error})") from error
        if len(data) > self._max_image_bytes:
            raise EntryRefused(f"it has more than {self._max_image_bytes:,} bytes")
        return data


def _is_file(info: zipfile.ZipInfo) -> bool:
    """Not a folder, nor what a system leaves behind in every folder."""
    path = PurePosixPath(info.filename)
    return not info.is_dir() and not path.name.startswith(".") and "__MACOSX" not in path.parts


def _label(name: str) -> str | None:
    parent = PurePosixPath(name).parent.name
    try:
        label = clean(parent)
    except ValueError:
        return None
    return label if len(label) <= MAX_LABEL else None
