"""Another embedder for all collections: its vectors are made beside those in use, and put into use in one moment."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import structlog
from numpy.typing import NDArray

from serving.errors import PICTURE_AT_FAULT, VersionRefused
from serving.index.keeper import IndexKeeper
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.starter import Starter
from serving.store.bulk import renew_starters
from serving.store.models_in_use import note_versions
from serving.store.prepared import keep_prepared, note_changes, pictures_to_prepare, use_prepared

log = structlog.get_logger()

LISTED = 2000  # pictures looked up at once
KEPT = 64  # vectors written at once
Embed = Callable[[bytes], NDArray[np.float32]]
GoOn = Callable[[], bool]


@dataclass
class ReEmbedding:
    """One embedder's way into use. Each step may be taken again, after a restart or when Triton was away."""

    library: Library
    manifest: EmbedderManifest
    embed: Embed
    starter: Starter | None
    unreadable: dict[str, str] = field(default_factory=dict)  # picture → why
    made: set[str] = field(default_factory=set)  # pictures whose vectors were kept

    def prepare(self, go_on: GoOn) -> bool:
        """Look at every picture; False if `go_on`, asked before each, says no."""
        while found := self._list():
            made = {}
            for number, picture in enumerate(found, start=1):
                if not go_on():
                    return False
                try:
                    made[picture] = self.embed(self.library.pictures.read(picture))
                # What else may go wrong is no fault of the picture.
                except (FileNotFoundError, *PICTURE_AT_FAULT) as error:
                    log.warning("a picture that cannot be embedded", picture=picture, reason=str(error))
                    self.unreadable[picture] = str(error)
                if len(made) == KEPT or number == len(found):
                    with self.library.write() as session:
                        keep_prepared(session, self.manifest.sha256, made)
                    self.made |= made.keys()
                    made = {}
        return True

    def _list(self) -> list[str]:
        with self.library.read() as session:
            listed = pictures_to_prepare(session, self.manifest.sha256, LISTED + len(self.unreadable))
        return [picture for picture in listed if picture not in self.unreadable]

    def open_indexes(self) -> IndexKeeper:
        """The index of what is prepared; what comes later it follows."""
        return self.library.open_indexes(self.manifest.sha256, self.manifest.dim)

    def switch(self, indexes: IndexKeeper, go_on: GoOn, use: Callable[[], None]) -> bool:
        """Put the vectors into use, and with them whatever `use` does; False if `go_on` says no at the last moment.

        Writes wait meanwhile, searches go on in the index before. That the version is in use is noted in the same
        transaction as its vectors: a start after a crash finds either the state before or the one after.
        """
        with self.library.held():
            self.made.clear()
            if not self.prepare(go_on) or not go_on():  # pictures that came since they were all prepared
                return False
            with self.library.write() as session:
                use_prepared(session, self.manifest.sha256, self.library.model)
                note_changes(session, self.made)  # `indexes` may have passed them by when they had no vector yet
                if self.starter is not None:
                    renew_starters(session, self.manifest.sha256, self.starter.vectors)
                note_versions(session, {self.manifest.name: self.manifest.version})
            try:
                indexes.follow_all()
            finally:  # it is committed, so there is no way back
                self.library.adopt(self.manifest.sha256, indexes)
                use()
        return True

    def refuse_losses(self) -> None:
        """Raise VersionRefused if pictures could not be looked at: no search would find their items any more."""
        if self.unreadable:
            name = self.manifest.name
            raise VersionRefused(
                f"{len(self.unreadable):,} pictures cannot be read any more, so {name} version {self.manifest.version} "
                "would find their items no longer; they are listed with this job: delete them, or force the switch"
            )
