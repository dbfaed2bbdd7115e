"""One data folder, one owner: two services on the same folder would undo each other's work."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving.errors import DataFolderInUse, DataFolderUnusable
from serving.store.database import prepare_data_folder

LOCK = "in-use"


@contextmanager
def hold_data_folder(folder: Path, owner: str) -> Iterator[None]:
    """Keep others off a folder; the system lets go of it when the process ends, however it ends."""
    prepare_data_folder(folder)
    file = folder / LOCK
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DataFolderUnusable(f"{file} cannot be written ({error.strerror}); set READLEAF_DATA_DIR") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            raise DataFolderInUse(
                f"the data folder {folder} is in use by {holder}; stop that, or choose another folder with --data-dir "
                "or READLEAF_DATA_DIR"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{owner} (process {os.getpid()})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
