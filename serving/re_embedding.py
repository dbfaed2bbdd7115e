"""Another embedder for all collections: its vectors are made beside those in use, and put into use in one moment."""

from collections.abc import Callable

import numpy as np
import structlog
from numpy.typing import NDArray

from serving.errors import ReadleafError
from serving.index.keeper import IndexKeeper
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.starter import Starter
from serving.store.bulk import renew_starters
from serving.store.models_in_use import note_versions
from serving.store.prepared import keep_prepared, pictures_to_prepare, use_prepared

log = structlog.get_logger()

LISTED = 2000  # pictures looked up at once
KEPT = 64  # vectors written at once
Embed = Callable[[bytes], NDArray[np.float32]]


def prepare_vectors(library: Library, model: str, embed: Embed, go_on: Callable[[], bool]) -> bool:
    """Let another embedder look at every picture; False if `go_on`, asked before each, says no."""
    unreadable: set[str] = set()
    while True:
        with library.read() as session:
            listed = pictures_to_prepare(session, model, LISTED + len(unreadable))
        found = [picture for picture in listed if picture not in unreadable]
        if not found:
            return True
        made = {}
        for number, picture in enumerate(found, start=1):
            if not go_on():
                return False
            try:
                made[picture] = embed(library.pictures.read(picture))
            except (FileNotFoundError, ReadleafError) as error:
                log.warning("a picture that cannot be embedded", picture=picture, reason=str(error))
                unreadable.add(picture)
            if len(made) == KEPT or number == len(found):
                with library.write() as session:
                    keep_prepared(session, model, made)
                made = {}


def switch_vectors(library: Library, manifest: EmbedderManifest, embed: Embed, starter: Starter | None) -> IndexKeeper:
    """Put a prepared embedder's vectors into use; returns its index. Writes wait, searches go on in the old index.

    Pictures that came since they were prepared are looked at first. That the version is in use is noted in the same
    transaction as its vectors: a start after a crash finds either the old state or the new.
    """
    with library.held():
        prepare_vectors(library, manifest.sha256, embed, lambda: True)
        with library.write() as session:
            use_prepared(session, manifest.sha256, library.model)
            if starter is not None:
                renew_starters(session, manifest.sha256, starter.vectors)
            note_versions(session, {manifest.name: manifest.version})
        return library.adopt(manifest.sha256, manifest.dim)
