"""The runtime against a real Triton: what it refuses, and how a run ends that cannot be answered."""

import contextlib
import re
import shutil
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient

from serving.errors import (
    DeadlineExceeded,
    ModelRefused,
    Overloaded,
    RequestAbandoned,
    RuntimeUnavailable,
    TritonUnusable,
)
from serving.metrics import Metrics
from serving.repository import StoredModel, load_repository, versions_of
from serving.runtime import over_triton
from serving.runtime.over_triton import TritonRuntime
from serving.settings import Settings
from serving.timing import Timings

SHIPPED = Settings.model_fields["models_dir"].default
pytestmark = pytest.mark.timeout(900)  # the first test installs Triton


@pytest.fixture(scope="module")
def triton(run_triton, tmp_path_factory):
    with run_triton(tmp_path_factory.mktemp("triton")) as (local, server):
        yield local.folder / "models", server.url


@pytest.fixture
def runtime(triton):
    with closing(TritonRuntime(triton[1], 20, Metrics())) as opened:
        yield opened


@pytest.fixture
def doctored(triton):
    """`doctored("embedder", file, change)`: Triton serves a model with a file altered; whole again afterwards."""
    folder, url = triton
    before = {}
    with closing(InferenceServerClient(url)) as client:

        def doctor(name, file, change):
            place = folder / name / file
            before[place] = name, place.read_text()
            place.write_text(change(before[place][1]))
            client.unload_model(name)  # a version whose files changed is loaded anew; this makes sure of it
            wait_until(lambda: not client.is_model_ready(name, "1"))
            client.load_model(name)

        yield doctor
        for place, (name, text) in before.items():
            place.write_text(text)
            client.unload_model(name)
            wait_until(lambda name=name: not client.is_model_ready(name, "1"))
            client.load_model(name)


def wait_until(condition):
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.fixture
def embedder():
    return load_repository(SHIPPED)["embedder"]


def pictures(count):
    return {"images": np.random.default_rng(0).integers(0, 256, (count, 224, 224, 3), dtype=np.uint8)}


def test_a_run(runtime, embedder):
    network = runtime.load(embedder)
    assert re.fullmatch(r"triton \(127\.0\.0\.1:\d+\)", network.place)
    vectors = network.run(pictures(3))["embeddings"]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    labels = {"model": "embedder", "runtime": "triton"}
    assert runtime._metrics.registry.get_sample_value("readleaf_inference_seconds_count", labels) == 3  # and two probes


@pytest.mark.parametrize("url", ["nowhere", "http://127.0.0.1:8001", "127.0.0.1:1", ""])
def test_nobody_there(url, monkeypatch):
    monkeypatch.setattr(over_triton, "START_SECONDS", 0.3)
    with pytest.raises(TritonUnusable, match=re.escape(url) + r".*(READLEAF_TRITON_URL|host:port)"):
        TritonRuntime(url, 10, Metrics())


def test_a_model_that_triton_lacks(runtime, embedder):
    other = StoredModel(embedder.manifest.model_copy(update={"name": "moths"}), embedder.folder)
    with pytest.raises(TritonUnusable, match=r"does not serve moths version 1 .*readleaf triton start"):
        runtime.load(other)


def test_a_version_that_triton_lacks(runtime, models, add_version):
    assert add_version(models, "embedder") == 2
    with pytest.raises(TritonUnusable, match=r"does not serve embedder version 2 "):
        runtime.load(versions_of(models / "embedder")[2])


def test_another_shape(runtime, embedder, doctored):
    doctored("embedder", "config.pbtxt", lambda text: text.replace("dims: [ 512 ]", "dims: [ 256 ]"))
    with pytest.raises(TritonUnusable, match=r"embedder version 1 has the outputs .*256.*its manifest says .*512"):
        runtime.load(embedder)


def test_another_graph(runtime, embedder, doctored):
    sha256 = embedder.manifest.sha256
    doctored("embedder", "config.pbtxt", lambda text: text.replace(sha256, "0" * 64))
    with pytest.raises(TritonUnusable, match=r"embedder version 1 is another graph: sha256 000000000000"):
        runtime.load(embedder)


def test_tensors_that_arrive_empty(runtime, embedder, doctored):
    """As they do with numpy 2 in Triton's environment: the answers have the right form."""
    doctored(
        "embedder", "1/model.py", lambda text: text.replace("np.concatenate(batches)", "np.concatenate(batches) * 0")
    )
    with pytest.raises(ModelRefused, match=r"embedder version 1: .*answers otherwise than at its export"):
        runtime.load(embedder)


def test_answers_that_depend_on_the_pictures_beside(runtime, embedder, doctored):
    doctored(
        "embedder",
        "1/model.py",
        lambda text: text.replace("part[number]", "part[-1 - number] if len(ends) > 1 else part[number][::-1]"),
    )
    with pytest.raises(ModelRefused, match=r"differs by .* if another picture is run with it"):
        runtime.load(embedder)


def test_versions_that_differ_in_shape_are_served_side_by_side(run_triton, tmp_path, models, trees_models, add_version):
    """A classifier that has learned another label: one configuration of Triton's for both."""
    (models / "classifier/2").mkdir()
    for file in (trees_models / "trees/1").iterdir():
        shutil.copy(file, models / "classifier/2")
    manifest = versions_of(trees_models / "trees")[1].manifest
    manifest.model_copy(update={"name": "classifier", "version": 2}).write(models / "classifier/2")
    with run_triton(tmp_path / "data", models) as (_, server), closing(TritonRuntime(server.url, 20, Metrics())) as own:
        for version, labels, side in ((1, 91, 192), (2, 3, 64)):
            network = own.load(versions_of(models / "classifier")[version])
            answer = network.run({"images": np.zeros((1, side, side, 3), np.uint8)})
            assert answer["probabilities"].shape == (1, labels)


def test_time_that_is_up(runtime, embedder):
    network = runtime.load(embedder)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        network.run(pictures(64), Timings(0.15))
    assert time.monotonic() - started < 1
    assert runtime.trouble() is None  # a hurried caller says nothing about Triton


def test_a_caller_that_goes(runtime, embedder):
    network, timings = runtime.load(embedder), Timings()
    threading.Timer(0.15, timings.abandon).start()
    with pytest.raises(RequestAbandoned):
        network.run(pictures(64), timings)
    assert runtime.trouble() is None


def test_more_than_triton_lets_wait(runtime, embedder, doctored):
    doctored("embedder", "config.pbtxt", lambda text: text.replace("max_queue_size: 256", "max_queue_size: 1"))
    network = runtime.load(embedder)

    def run(_):
        try:
            return len(network.run(pictures(32))["embeddings"])
        except Overloaded as error:
            return error.headers["Retry-After"]

    with ThreadPoolExecutor(12) as callers:
        outcomes = Counter(callers.map(run, range(12)))
    assert outcomes.keys() == {32, "1"}
    assert runtime.trouble() is None


def test_a_model_that_is_taken_away_and_comes_back(runtime, embedder, triton):
    network = runtime.load(embedder)
    runtime.client.unload_model("embedder")
    wait_until(lambda: not runtime.client.is_model_ready("embedder", "1"))
    with pytest.raises(RuntimeUnavailable, match="try again in a second"):
        network.run(pictures(1))
    assert "embedder" in network.trouble()
    assert runtime.trouble() is None  # the others go on
    runtime.client.load_model("embedder")
    wait_until(lambda: network.trouble() is None)
    assert len(network.run(pictures(1))["embeddings"]) == 1


def test_a_batch_that_triton_refuses(runtime, embedder):
    """A bug of ours, then: said as one, and no reason to think that Triton is gone."""
    network = runtime.load(embedder)
    with pytest.raises(RuntimeError, match="Triton could not run embedder"):
        network.run(pictures(65))
    assert runtime.trouble() is None


class Wire:
    """Stands between a service and Triton; what is connected can be made silent, without being closed."""

    def __init__(self, url):
        host, _, port = url.rpartition(":")
        self._there = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._there)
                silent = threading.Event()
                self._open.append((silent, near, far))
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, target, silent), daemon=True).start()

    def _carry(self, source, target, silent):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not silent.is_set():
                    target.sendall(data)

    def silence(self):
        for silent, _, _ in self._open:
            silent.set()

    def close(self):
        for end in (self._listener, *(end for _, *ends in self._open for end in ends)):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_a_connection_that_falls_silent_is_replaced(triton, embedder):
    """As when a router between both has forgotten it: nobody is told, and new connections are fine."""
    with closing(Wire(triton[1])) as wire, closing(TritonRuntime(wire.url, 1.0, Metrics())) as runtime:
        network = runtime.load(embedder)
        wire.silence()
        refused = 0
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            try:
                assert len(network.run(pictures(1))["embeddings"]) == 1
                break
            except RuntimeUnavailable:
                refused += 1
                time.sleep(0.1)
        else:
            pytest.fail("it never came back")
        assert refused
