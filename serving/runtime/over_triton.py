"""Models on a Triton server over gRPC: the same graphs, the same answers."""

import threading
import time
import weakref
from typing import Any

import numpy as np
import structlog
import tritonclient.grpc as grpc
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from serving.errors import NOT_NOW, ModelRefused, Overloaded, ReadleafError, RuntimeUnavailable, TritonUnusable
from serving.manifest import Manifest, Tensor
from serving.metrics import Metrics, ModelServerStatistics
from serving.repository import StoredModel
from serving.runtime import Arrays
from serving.runtime.breaker import Breaker
from serving.runtime.probe import check_answers
from serving.runtime.triton_facts import CHECK_SECONDS, TYPES, compare_with_manifest, read_statistics, sentence_of
from serving.timing import Timings

log = structlog.get_logger()

NAME = "triton"
START_SECONDS = 10.0  # that a Triton may need to come up while the service starts
SILENT = "it does not answer"
LOOK_SECONDS = 0.05  # how often a waiting run looks whether anybody still waits for it
# A connection that broke is tried again at once and then every half second, instead of after up to two minutes; an
# attempt has two seconds, as a server far away or busy needs a moment.
CHANNEL = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # so that a new client makes a new connection, and looks up the name anew
]
# What Triton says of a model that it does not have, or no more.
GONE = ("unknown model", "is not ready", "not at ready state")


class TritonRuntime:
    """One connection for all models and threads, and a breaker for when the server is gone."""

    def __init__(self, url: str, timeout: float, metrics: Metrics) -> None:
        """`timeout` is the longest that one run may take, in seconds. Raises TritonUnusable."""
        self.url, self.timeout = url, timeout
        self._metrics = metrics
        self._networks: weakref.WeakSet[TritonNetwork] = weakref.WeakSet()  # those that somebody holds
        self._sending = threading.Lock()
        self.client = self._connect()
        self.breaker = Breaker(f"Triton at {url}", self._is_well)
        self._wait_until_ready()
        metrics.server_statistics.source = self._statistics

    def _connect(self) -> grpc.InferenceServerClient:
        try:
            return grpc.InferenceServerClient(self.url, channel_args=CHANNEL)
        except Exception as error:  # grpc has no class for an address that is none
            raise TritonUnusable(
                f"READLEAF_TRITON_URL={self.url!r} is no address; write host:port ({error})"
            ) from error

    def load(self, model: StoredModel) -> "TritonNetwork":
        """Check that Triton serves this very version; it is asked to load it if it has not. Raises TritonUnusable."""
        started = time.perf_counter()
        manifest = model.manifest
        try:
            if not self.is_served(manifest):
                self._ask_to_load(manifest)
        except InferenceServerException as error:
            raise TritonUnusable(f"Triton at {self.url} does not answer ({sentence_of(error)})") from error
        compare_with_manifest(self.client, self.url, manifest)
        network = TritonNetwork(self, manifest, self._metrics)
        try:
            check_answers(manifest, network.run)
        except NOT_NOW as error:
            network.breaker.close()
            raise TritonUnusable(f"{manifest.name} version {manifest.version}: {error.message}") from error
        except RuntimeError as error:
            raise ModelRefused(f"{manifest.name} version {manifest.version} cannot be run ({error})") from error
        with self._sending:
            self._networks.add(network)
        log.info(
            "model loaded",
            model=manifest.name,
            version=manifest.version,
            runtime=network.place,
            load_ms=round(1000 * (time.perf_counter() - started)),
        )
        return network

    def trouble(self) -> str | None:
        """Why no model can answer at present."""
        return self.breaker.reason

    def send(self, *call: Any, **options: Any) -> Any:
        """Begin a call, one at a time: the client keeps the handle of a call in itself while it makes it."""
        with self._sending:
            return self.client.async_infer(*call, **options)

    def close(self) -> None:
        """Close the connection."""
        self._metrics.server_statistics.source = None
        for breaker in (self.breaker, *(network.breaker for network in self._held())):
            breaker.close()
        self.client.close()

    def _held(self) -> list["TritonNetwork"]:
        with self._sending:  # as networks are added there
            return list(self._networks)

    def _wait_until_ready(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                if self.client.is_server_ready(client_timeout=CHECK_SECONDS):
                    return
                reason = "it is there, but says that it is not ready: perhaps a model could not be loaded"
            except InferenceServerException as error:
                reason = sentence_of(error)
            if time.monotonic() > ends:
                self.client.close()
                raise TritonUnusable(
                    f"no Triton answers at {self.url} ({reason}); start one with `readleaf triton start`, or set "
                    "READLEAF_TRITON_URL to the host:port of its gRPC service"
                )
            time.sleep(0.2)

    def _is_well(self) -> bool:
        """Whether Triton is ready; over a new connection, if the one there is silent or leads to where Triton was."""
        if _is_ready(self.client):
            return True
        fresh = self._connect()
        if not _is_ready(fresh):
            return False
        with self._sending:
            self.client = fresh  # the old one is closed when nobody holds it; what waited there asks again
        return True

    def is_served(self, manifest: Manifest) -> bool:
        """Whether Triton has this version loaded."""
        return bool(self.client.is_model_ready(manifest.name, str(manifest.version), client_timeout=CHECK_SECONDS))

    def _ask_to_load(self, manifest: Manifest) -> None:
        """Take up a version that lies in Triton's repository; where that is not allowed, it is refused."""
        reason = "it was asked to load it and did not"
        try:
            self.client.load_model(manifest.name, client_timeout=max(60.0, self.timeout))
        except InferenceServerException as error:
            reason = sentence_of(error)
        if not self.is_served(manifest):
            raise TritonUnusable(
                f"Triton at {self.url} does not serve {manifest.name} version {manifest.version} ({reason}); put it "
                "into its model repository (`readleaf triton start` does, for the one on this machine)"
            )

    def _statistics(self) -> list[ModelServerStatistics.Row]:
        return [] if self.breaker.reason is not None else read_statistics(self.client)


class TritonNetwork:
    """One version of a model on a Triton server."""

    def __init__(self, runtime: TritonRuntime, manifest: Manifest, metrics: Metrics) -> None:
        self.manifest = manifest
        self._runtime, self._metrics = runtime, metrics
        self._outputs = [grpc.InferRequestedOutput(tensor.name) for tensor in manifest.outputs]
        own = weakref.ref(self)  # a version that nobody uses any more need not be looked after
        self.breaker = Breaker(
            f"{manifest.name} version {manifest.version} on Triton",
            lambda: (network := own()) is None or network._is_served(),
        )

    @property
    def place(self) -> str:
        """What runs it, and where, in a few words."""
        return f"{NAME} ({self._runtime.url})"

    def run(
        self, inputs: Arrays, timings: Timings | None = None, *, alone: bool = False
    ) -> dict[str, NDArray[np.float32]]:
        """Run on named inputs [batch, …]; returns outputs by name. `alone` is Triton's own affair."""
        timings = timings or Timings()
        timings.check()
        if (reason := self.trouble()) is not None:
            raise RuntimeUnavailable.because(reason)
        tensors = [_tensor(name, array, self.manifest.inputs) for name, array in inputs.items()]
        batch = len(next(iter(inputs.values())))
        with self._metrics.run(self.manifest.name, NAME, batch):
            result = self._ask(tensors, timings, again=True)
        self._runtime.breaker.succeeded()
        return {tensor.name: result.as_numpy(tensor.name) for tensor in self.manifest.outputs}

    def trouble(self) -> str | None:
        """Why it cannot answer at present."""
        return self._runtime.breaker.reason or self.breaker.reason

    def _is_served(self) -> bool:
        try:
            return self._runtime.is_served(self.manifest)
        except InferenceServerException:
            return False

    def _ask(self, tensors: list[grpc.InferInput], timings: Timings, *, again: bool) -> grpc.InferResult:
        """Ask once, and once more if connection or model broke: a run changes nothing, so it may be repeated."""
        try:
            return self._infer(tensors, timings)
        except InferenceServerException as error:
            failure = self._judge(error, timings)
            if not isinstance(failure, _Broken):
                raise failure from error
            if again:
                return self._ask(tensors, timings, again=False)
            failure.breaker.failed(failure.reason, surely=failure.surely)
            raise RuntimeUnavailable.because(failure.reason) from error

    def _infer(self, tensors: list[grpc.InferInput], timings: Timings) -> grpc.InferResult:
        """One call, ended when its time is up, when nobody waits for it any more, or by an answer."""
        answered = threading.Event()
        answer: list[Any] = []

        def take(result: grpc.InferResult | None, error: InferenceServerException | None) -> None:
            answer.extend((result, error))
            answered.set()

        seconds = min(timings.left, self._runtime.timeout)
        call = self._runtime.send(
            self.manifest.name,
            tensors,
            take,
            model_version=str(self.manifest.version),
            outputs=self._outputs,
            client_timeout=max(0.001, seconds),
            timeout=max(1, int(seconds * 1e6)),  # how long it may wait in Triton's queue, in microseconds
        )
        while not answered.wait(LOOK_SECONDS):
            try:
                timings.check()
            except ReadleafError:
                call.cancel()
                if timings.left <= 0:
                    self._runtime.breaker.doubted(SILENT)
                raise
        result, error = answer
        if error is not None:
            raise error
        return result

    def _judge(self, error: InferenceServerException, timings: Timings) -> Exception:
        """What a failed call means for the request."""
        status, reason = str(error.status()).rpartition(".")[2], sentence_of(error)
        server = self._runtime.breaker
        if timings.left <= 0:
            server.doubted(SILENT)
            return timings.late()
        if "queue" in reason or "timeout expired" in reason.lower():  # Triton's own limits, of queue and of waiting
            return Overloaded(
                f"{self.manifest.name} has more to do than it can; try again in a second", headers={"Retry-After": "1"}
            )
        if status == "DEADLINE_EXCEEDED":
            slow = f"it did not answer within {self._runtime.timeout:g} seconds"
            server.failed(slow)
            return RuntimeUnavailable.because(slow)
        if status in ("UNAVAILABLE", "NOT_FOUND") and any(word in reason.lower() for word in GONE):
            return _Broken(reason, self.breaker, surely=True)
        if status in ("UNAVAILABLE", "CANCELLED"):
            return _Broken(reason, server, surely=True)
        if status in ("INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED", "NOT_FOUND"):  # such as a model's process that died
            return _Broken(reason, self.breaker, surely=False)
        return RuntimeError(f"Triton could not run {self.manifest.name}: {reason}")


class _Broken(Exception):
    """The server, or this model on it, is gone; the breaker is the one that is to know."""

    def __init__(self, reason: str, breaker: Breaker, *, surely: bool) -> None:
        super().__init__(reason)
        self.reason, self.breaker, self.surely = reason, breaker, surely


def _is_ready(client: grpc.InferenceServerClient) -> bool:
    try:
        return bool(client.is_server_ready(client_timeout=CHECK_SECONDS))
    except InferenceServerException:
        return False


def _tensor(name: str, array: NDArray[Any], known: list[Tensor]) -> grpc.InferInput:
    [dtype] = [tensor.dtype for tensor in known if tensor.name == name]
    tensor = grpc.InferInput(name, list(array.shape), TYPES[dtype])
    tensor.set_data_from_numpy(np.ascontiguousarray(array, dtype=dtype))
    return tensor
