"""onnxruntime inside this process: the default, needs no other service."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy as np
import onnxruntime as ort
import structlog
from numpy.typing import NDArray

from serving.errors import ManifestInvalid, ModelRefused, SetupError
from serving.manifest import Manifest
from serving.metrics import Metrics
from serving.repository import StoredModel, check_files
from serving.runtime import Arrays
from serving.runtime.devices import CPU, Provider, choose_providers, providers_for
from serving.runtime.probe import check_answers
from serving.timing import Timings

log = structlog.get_logger()
NAME = "onnx"


class InProcessRuntime:
    """Loads models into this process.

    A run uses one thread on a CPU: callers run as many batches side by side as there are cores, which
    gives more images a second than one run spread over all cores. A run that is alone is spread over all cores.
    """

    def __init__(self, device: str, metrics: Metrics, engines: Path | None = None) -> None:
        """`engines` is a folder for what TensorRT has compiled; without one, TensorRT is not used."""
        self._device, self._metrics = device, metrics
        self._providers = choose_providers(device, ort.get_available_providers(), engines)
        self._running = _Running()

    def load(self, model: StoredModel) -> "InProcessNetwork":
        """Open, compare with its manifest, warm up, check its answers; raises a SetupError."""
        started = time.perf_counter()
        providers = providers_for(model.manifest, self._providers)
        network = InProcessNetwork(model, providers, self._metrics, self._running)
        if self._device == "cuda" and network.provider == CPU:
            raise SetupError(
                f"READLEAF_DEVICE=cuda, but onnxruntime could not use the GPU for {model.manifest.name} and fell back "
                "to the CPU; its log above says why: often a driver or CUDA library is missing"
            )
        try:
            check_answers(model.manifest, network.run)
        except SetupError:
            raise
        except Exception as error:  # onnxruntime's own exception classes share no public base
            raise ModelRefused(f"{model.manifest.name}: its graph cannot be run ({error})") from error
        log.info(
            "model loaded",
            model=model.manifest.name,
            version=model.manifest.version,
            runtime=network.place,
            load_ms=round(1000 * (time.perf_counter() - started)),
        )
        return network

    def trouble(self) -> str | None:
        """Nothing can be in the way."""
        return None

    def close(self) -> None:
        """Sessions go with whoever holds them."""


class _Running:
    """How many runs are under way, of all models."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0


class InProcessNetwork:
    """A session for runs side by side, and one spread over all cores, opened when first wanted."""

    def __init__(self, model: StoredModel, providers: list[Provider], metrics: Metrics, running: _Running) -> None:
        self._model, self._providers, self._metrics, self._running = model, providers, metrics, running
        self._session = _open_session(model, providers)
        self._spread: ort.InferenceSession | None = None
        _check_signature(self._session, model.manifest)
        self._outputs = [tensor.name for tensor in model.manifest.outputs]
        self.provider: str = self._session.get_providers()[0]

    def run(
        self, inputs: Arrays, timings: Timings | None = None, *, alone: bool = False
    ) -> dict[str, NDArray[np.float32]]:
        """Run on named inputs [batch, …]; returns outputs by name."""
        if timings is not None:
            timings.check()
            alone = alone and timings.is_alone()
        batch = len(next(iter(inputs.values())))
        with self._metrics.run(self._model.manifest.name, NAME, batch), self._chosen(alone=alone) as session:
            return dict(zip(self._outputs, session.run(self._outputs, dict(inputs)), strict=True))

    @contextmanager
    def _chosen(self, *, alone: bool) -> Iterator[ort.InferenceSession]:
        """The session for one run: spread over all cores if nothing else runs."""
        running = self._running
        with running.lock:
            spread = alone and not running.count and self.provider == CPU
            if spread and self._spread is None:
                self._spread = self._open_spread()
            session = self._spread if spread else self._session
            running.count += 1
        try:
            yield session
        finally:
            with running.lock:
                running.count -= 1

    def _open_spread(self) -> ort.InferenceSession:
        """The same graph on all cores; if its file has become another one since, the session that is there does."""
        try:
            check_files(self._model)
            return _open_session(self._model, self._providers, threads=0)
        except SetupError as error:
            log.warning("runs are not spread over all cores", reason=error.message)
            return self._session

    def trouble(self) -> str | None:
        """Nothing can be in the way."""
        return None

    @property
    def place(self) -> str:
        """What runs it, and where, in a few words."""
        return f"{NAME} ({self.provider})"


def _open_session(model: StoredModel, providers: list[Provider], *, threads: int = 1) -> ort.InferenceSession:
    """A session on so many threads; 0: one a core."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # threads that spin keep others waiting
    try:
        return ort.InferenceSession(model.file, options, providers=providers)
    except Exception as error:  # onnxruntime's own exception classes share no public base
        raise SetupError(f"{model.manifest.name}: onnxruntime cannot load {model.file}: {error}") from error


def _check_signature(session: ort.InferenceSession, manifest: Manifest) -> None:
    for kind, wanted, actual in (
        ("inputs", manifest.inputs, session.get_inputs()),
        ("outputs", manifest.outputs, session.get_outputs()),
    ):
        promised = {tensor.name: tensor.shape for tensor in wanted}
        found = {node.name: [d if isinstance(d, int) else -1 for d in node.shape] for node in actual}
        if promised != found:
            raise ManifestInvalid(
                f"{manifest.name}: the manifest's {kind} are {promised}, the graph's are {found}; "
                "export the model again"
            )
