"""onnxruntime inside this process: the default, needs no other service."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

import numpy as np
import onnxruntime as ort
import structlog
from numpy.typing import NDArray

from serving.errors import ManifestInvalid, SetupError
from serving.manifest import Manifest
from serving.metrics import Metrics
from serving.repository import StoredModel
from serving.runtime import Arrays

log = structlog.get_logger()

GPU_PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider")
CPU = "CPUExecutionProvider"


class InProcessRuntime:
    """Loads every model once and warms it up; a model that does not fit its manifest is refused.

    A run uses one thread on a CPU: callers run as many batches side by side as there are cores, which
    gives more images a second than one run spread over all cores. A run that is alone is spread over all cores.
    """

    def __init__(self, models: Mapping[str, StoredModel], device: str, metrics: Metrics) -> None:
        providers = choose_providers(device, ort.get_available_providers())
        self._metrics = metrics
        self._sessions: dict[str, ort.InferenceSession] = {}
        self._spread: dict[str, ort.InferenceSession] = {}  # over all cores; opened when first wanted
        self._models, self._providers = models, providers
        self._lock = Lock()
        self._running = 0
        for name, model in models.items():
            session = _open_session(model, providers)
            _check_signature(session, model.manifest)
            self._sessions[name] = session
            started = time.perf_counter()
            self.run(name, warm_up_inputs(model.manifest))
            log.info(
                "model loaded",
                model=name,
                version=model.manifest.version,
                runtime=self.describe(name),
                warm_up_ms=round(1000 * (time.perf_counter() - started)),
            )

    def run(self, model: str, inputs: Arrays, *, alone: bool = False) -> dict[str, NDArray[np.float32]]:
        """Run `model` on named inputs [batch, …]; returns its outputs by name."""
        self._metrics.batch_size.labels(model).observe(len(next(iter(inputs.values()))))
        with self._session(model, alone=alone) as session, self._metrics.inference_seconds.labels(model).time():
            names = [output.name for output in session.get_outputs()]
            return dict(zip(names, session.run(names, dict(inputs)), strict=True))

    @contextmanager
    def _session(self, model: str, *, alone: bool) -> Iterator[ort.InferenceSession]:
        """The session for one run: spread over all cores if nothing else runs."""
        with self._lock:
            spread = alone and not self._running and self._providers == [CPU]
            if spread and model not in self._spread:
                self._spread[model] = _open_session(self._models[model], self._providers, threads=0)
            session = self._spread[model] if spread else self._sessions[model]
            self._running += 1
        try:
            yield session
        finally:
            with self._lock:
                self._running -= 1

    def describe(self, model: str) -> str:
        """What runs the model, and where, in a few words."""
        return f"onnx ({self._sessions[model].get_providers()[0]})"


def choose_providers(device: str, available: list[str]) -> list[str]:
    """onnxruntime's execution providers for `auto`, `cpu` or `cuda`, best first."""
    gpu = [provider for provider in GPU_PROVIDERS if provider in available]
    if device == "cuda" and not gpu:
        raise SetupError(
            f"READLEAF_DEVICE=cuda, but this onnxruntime offers only {', '.join(available)}; "
            "install the gpu extra, or set READLEAF_DEVICE to auto or cpu"
        )
    return [*([] if device == "cpu" else gpu), CPU]


def warm_up_inputs(manifest: Manifest) -> dict[str, NDArray[np.uint8]]:
    """One black picture."""
    [tensor] = manifest.inputs
    return {tensor.name: np.zeros([1, *manifest.example_shape], dtype=tensor.dtype)}


def _open_session(model: StoredModel, providers: list[str], *, threads: int = 1) -> ort.InferenceSession:
    """A session on so many threads; 0: one a core."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
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
