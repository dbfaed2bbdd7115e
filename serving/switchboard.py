"""Switches to another version of a model while requests go on: checked first, then in use in one moment."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import structlog
from numpy.typing import NDArray

from serving.answering import EMBEDDER, Answering, Surroundings, answer_with
from serving.errors import ModelMissing, RuntimeUnavailable, SetupError, VersionMissing, VersionRefused
from serving.index.keeper import IndexKeeper
from serving.manifest import ClassifierManifest, EmbedderManifest, Manifest
from serving.pipelines.embed import Embedder
from serving.pipelines.upload import Upload
from serving.re_embedding import GoOn, ReEmbedding
from serving.repository import StoredModel, Versions, manifest_as, version_numbers, versions_of
from serving.runtime import Network, Runtime
from serving.starter import Starter, read_starter
from serving.store.models_in_use import note_versions
from serving.store.prepared import count_to_prepare, vectors_alone

log = structlog.get_logger()

STARTER_FILE = "starter.npz"  # beside an embedder
Vector = NDArray[np.float32]
SLACK = 0.01  # by which a new version's figures may be worse


@dataclass(frozen=True)
class Candidate:
    """A version that passed its checks, loaded and warm."""

    model: StoredModel
    network: Network

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""
        return self.model.manifest


class Switchboard:
    """`current` answers. Whoever has taken it may go on with it for as long as they like."""

    def __init__(
        self, models: Mapping[str, StoredModel], runtime: Runtime, around: Surroundings, models_dir: Path
    ) -> None:
        """Load and check every model; raises a SetupError."""
        self._runtime, self._around, self._models_dir = runtime, around, models_dir
        self._lock = threading.Lock()
        networks = {name: runtime.load(model) for name, model in models.items()}
        self.current: Answering = answer_with(models, networks, around, around.library.indexes)

    def trouble(self) -> str | None:
        """Why some model in use cannot answer at present; None if all can."""
        reasons = (network.trouble() for network in self.current.networks.values())
        return next((reason for reason in reasons if reason is not None), None)

    def versions(self, name: str) -> Versions:
        """What lies in the model repository now; raises ModelMissing."""
        folder = self._models_dir / name
        if name not in self.current.models and not folder.is_dir():
            raise ModelMissing(f"there is no model named {name!r:.60}; there are {', '.join(self.current.models)}")
        try:
            return versions_of(folder)
        except (OSError, SetupError) as error:
            raise VersionMissing(f"the versions of {name} cannot be listed ({error})") from error

    def listed_versions(self, name: str) -> list[int]:
        """Their numbers alone, unchecked."""
        return version_numbers(self._models_dir / name)

    def examine(self, name: str, version: int, *, force: bool = False) -> Candidate:
        """Load a version and put it to the test; raises VersionMissing, VersionRefused or RuntimeUnavailable.

        `force` takes one whose figures are worse, or cannot be compared, or that cannot find all items any more.
        """
        versions = self.versions(name)
        if version not in versions.good and version not in versions.broken:
            there = ", ".join(map(str, sorted(versions.good)))
            raise VersionMissing(f"{name} has no version {version}; there is {there}")
        live = self.current.models.get(name)
        self._refuse_while_away()
        try:
            model = versions[version]
            if live is not None:
                self._check_against(model, live, force=force)
            elif not isinstance(model.manifest, ClassifierManifest):
                raise VersionRefused(f"{name} is new, and for the task {model.manifest.task}; only classifiers can be")
            return Candidate(model, self._runtime.load(model))
        except (SetupError, VersionRefused) as error:
            self._refuse_while_away()
            stays = f"version {live.manifest.version} stays in use" if live else "it is not used"
            raise VersionRefused(f"{error.message}; {stays}") from error

    def _refuse_while_away(self) -> None:
        """Raise RuntimeUnavailable if nothing can be said of a version, because what would run it is gone."""
        if (reason := self._runtime.trouble()) is not None:
            raise RuntimeUnavailable.because(reason)

    def put_to_use(self, candidate: Candidate) -> None:
        """From now on this version answers; for an embedder see `switch_embedder`. Raises VersionRefused."""
        with self._lock:
            following = self._with(candidate, self._around.library.indexes)
            with self._around.library.write() as session:
                note_versions(session, {candidate.manifest.name: candidate.manifest.version})
            self._use(following, candidate)

    def pictures_to_look_at(self, candidate: Candidate) -> int:
        """How many pictures an embedder has to look at before it can be used."""
        with self._around.library.read() as session:
            return count_to_prepare(session, candidate.manifest.sha256)

    def in_use(self, name: str) -> Candidate:
        """The version that answers now."""
        return Candidate(self.current.models[name], self.current.networks[name])

    def are_vectors_outdated(self) -> bool:
        """Whether another embedder has made some: its version is gone, or the data folder is from before versions."""
        sha256 = self.current.models[EMBEDDER].manifest.sha256
        with self._around.library.read() as session:
            return count_to_prepare(session, sha256) > 0

    def re_embedding(self, candidate: Candidate) -> ReEmbedding:
        """What has to happen before a new embedder can be used."""
        manifest = manifest_as(candidate.model, EmbedderManifest)
        embedder = Embedder(candidate.network, manifest, self._around.limits, self._around.workers)

        def embed(data: bytes) -> Vector:
            return embedder.embed_one(Upload("the picture", data))

        return ReEmbedding(self._around.library, manifest, embed, starter_of(candidate.model))

    def switch_embedder(self, candidate: Candidate, work: ReEmbedding, go_on: GoOn, *, force: bool) -> bool:
        """Let the new embedder look at all pictures, then use it; False if `go_on`, asked before each, says no.

        Raises VersionRefused, and what the runtime raises: then it may be called again.
        """
        if not work.prepare(go_on):
            return False
        if not force:
            work.refuse_losses()
        indexes = work.open_indexes()
        with self._lock:
            following = self._with(candidate, indexes)
            return work.switch(indexes, go_on, lambda: self._use(following, candidate))

    def _with(self, candidate: Candidate, indexes: IndexKeeper) -> Answering:
        """What would answer with this version; raises VersionRefused if that cannot be."""
        name, before = candidate.manifest.name, self.current
        models = {**before.models, name: candidate.model}
        networks = {**before.networks, name: candidate.network}
        try:
            return answer_with(models, networks, self._around, indexes)
        except (SetupError, OSError) as error:
            raise VersionRefused(f"{name} version {candidate.manifest.version} cannot be used: {error}") from error

    def _use(self, following: Answering, candidate: Candidate) -> None:
        name, before = candidate.manifest.name, self.current.models
        self.current = following
        log.info(
            "model switched",
            model=name,
            version=candidate.manifest.version,
            before=before[name].manifest.version if name in before else None,
            runtime=candidate.network.place,
        )

    def _check_against(self, model: StoredModel, live: StoredModel, *, force: bool) -> None:
        """Raise VersionRefused if a version cannot take the place of the one in use."""
        manifest = model.manifest
        if manifest.task != live.manifest.task:
            raise VersionRefused(f"{manifest.name} version {manifest.version} is for another task: {manifest.task}")
        if not force:
            check_figures(manifest, live.manifest)
            self._check_vectors(model)

    def _check_vectors(self, model: StoredModel) -> None:
        """Raise VersionRefused if items would be lost: those without a picture, unless the starter has them."""
        if model.manifest.name != EMBEDDER:
            return
        starter = starter_of(model)
        with self._around.library.read() as session:
            lost = vectors_alone(session, model.manifest.sha256, len(starter.labels) if starter else 0)
        if lost:
            raise VersionRefused(
                f"{lost:,} items are known by their vectors alone, and version {model.manifest.version} has no "
                "starter.npz with new ones: no search would find them; export a starter for it, or force the switch"
            )


def starter_of(model: StoredModel) -> Starter | None:
    """The starter collection beside an embedder; None if there is none that can be used."""
    manifest = manifest_as(model, EmbedderManifest)
    file = model.folder / STARTER_FILE
    if not file.exists():
        return None
    try:
        return read_starter(file, manifest.sha256, manifest.dim)
    except ValueError as error:
        log.warning("no starter collection", reason=str(error))
        return None


def check_figures(new: Manifest, live: Manifest) -> None:
    """Raise VersionRefused unless a version's figures can be compared with the live one's, and are hardly worse."""
    shared = sorted(new.figures.keys() & live.figures.keys())
    if not shared:
        measured = ", ".join(sorted(live.figures)) or "none"
        raise VersionRefused(
            f"{new.name} version {new.version} has no figure to compare with version {live.version}, which is measured "
            f"by {measured}; evaluate it on the same data, or force the switch"
        )
    mine, theirs = (sum(manifest.figures[name] for name in shared) / len(shared) for manifest in (new, live))
    if not mine >= theirs - SLACK:
        raise VersionRefused(
            f"{new.name} version {new.version} is worse than version {live.version}: {mine:.3f} against {theirs:.3f} "
            f"({', '.join(shared)}); at most {SLACK} less is accepted, unless the switch is forced"
        )
