"""Writes one model into a repository: graph, Triton's config, manifest and card, all or nothing."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.triton_config import triton_config
from serving.manifest import Manifest


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill; it takes `folder`'s place when the block ends well, and vanishes when it fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    new, old = scratch / "new", scratch / "old"
    try:
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(scratch)


def sha256_of(file: Path) -> str:
    """The checksum that the manifest names."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_descriptions(folder: Path, manifest: Manifest, card: str) -> None:
    """Write all that stands beside the graph."""
    manifest.write(folder)
    (folder / "config.pbtxt").write_text(triton_config(manifest))
    (folder / "CARD.md").write_text(card)
