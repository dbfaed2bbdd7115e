"""Pictures as files, named by what they hold: the sha256 of their bytes. The same picture is kept once."""

import hashlib
import io
import os
import tempfile
from pathlib import Path

from PIL import Image

THUMBNAIL_SIDE = 256


class PictureFolder:
    """`pictures/ab/abcdef…` under the data folder, and thumbnails beside, which can be made again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pictures"
        self._thumbnails = folder / "thumbnails"

    @staticmethod
    def name_of(data: bytes) -> str:
        """The name of a file with these bytes."""
        return hashlib.sha256(data).hexdigest()

    def path(self, name: str) -> Path:
        """Where a picture lies, or would."""
        return self._folder / name[:2] / name

    def keep(self, name: str, data: bytes) -> None:
        """Write a picture so that it survives a crash right after; what is there already is left."""
        path = self.path(name)
        if not path.exists():
            _write(path, data)

    def read(self, name: str) -> bytes:
        """The picture's bytes."""
        return self.path(name).read_bytes()

    def thumbnail(self, name: str, picture: Image.Image | None = None) -> Path | None:
        """A small JPEG of a picture; made from `picture`, or None if it is not there yet and none is given."""
        path = self._thumbnails / name[:2] / f"{name}.jpg"
        if path.exists():
            return path
        if picture is None:
            return None
        small = picture.copy()
        small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
        stream = io.BytesIO()
        small.save(stream, "JPEG", quality=85)
        _write(path, stream.getvalue())
        return path

    def forget(self, name: str) -> None:
        """Delete a picture and its thumbnail, if they are there."""
        self.path(name).unlink(missing_ok=True)
        (self._thumbnails / name[:2] / f"{name}.jpg").unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    """Write whole or not at all: a file of another name first, then renamed; both are flushed to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
