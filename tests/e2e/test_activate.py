"""Switching to another version of a model while requests come in, on both runtimes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from serving.manifest import read_manifest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)
A_SECOND = 20  # requests
COLLECTION = "trees"
PATHS = {
    "embedder": (f"/v1/collections/{COLLECTION}/search", "image"),
    "classifier": ("/v1/classify", "image"),
    "recognizer": ("/v1/recognize", "images"),
    "detector": ("/v1/read", "image"),
}


class Stream:
    """Requests at a steady pace, whatever becomes of them; each answer is kept."""

    def __init__(self, ask, pace=A_SECOND):
        self._ask, self._pace = ask, pace
        self.answers = []
        self._done = threading.Event()
        self._clients = ThreadPoolExecutor(16)
        self._timer = threading.Thread(target=self._run)

    def _run(self):
        started = time.monotonic()
        while not self._done.is_set():
            self.answers.append(self._clients.submit(self._ask, len(self.answers)))
            time.sleep(max(0.0, started + len(self.answers) / self._pace - time.monotonic()))

    def __enter__(self):
        self._timer.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._timer.join()
        self._clients.shutdown()

    def wait_for(self, more):
        """Until so many more requests were sent."""
        goal = len(self.answers) + more
        while len(self.answers) < goal:
            time.sleep(0.02)


def readleaf(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "readleaf", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(params=["onnx", "triton"])
def serve(request, tmp_path, models, start_service, run_triton):
    """`service, sync = serve()`: a service on `models`; `sync()` lets its Triton, if any, see what is new on disk."""
    if request.param == "onnx":
        yield lambda: (start_service(models_dir=models, max_running=8), lambda: None)
        return
    from serving.local_triton.value_check import check_values

    with run_triton(tmp_path / "triton-data", models) as (triton, server):

        def sync():
            triton.start(models, server.ports, str)
            list(check_values(server.url, models, reload=True))  # what `readleaf triton start` does

        yield lambda: (start_service(models_dir=models, max_running=8, runtime="triton", triton_url=server.url), sync)


def word(encoded):
    picture = Image.new("RGB", (220, 90), (240, 240, 240))
    ImageDraw.Draw(picture).text((20, 20), "Bakery", (10, 10, 10), ImageFont.load_default(44))
    return encoded(picture, "PNG")


def fill(service, kinds, encoded):
    service.client.create_collection(COLLECTION)
    for kind in range(4):
        for number in range(4):
            service.client.add_item(COLLECTION, encoded(kinds(kind, number)), f"kind {kind}")


def version_of(answer, name):
    refs = answer.get("models") or [answer["model"]]
    [version] = [ref["version"] for ref in refs if ref["name"] == name]
    return version


@pytest.mark.parametrize("name", sorted(PATHS))
def test_no_request_fails_while_a_model_is_switched(serve, name, models, add_version, kinds, encoded):
    service, sync = serve()
    fill(service, kinds, encoded)
    path, field = PATHS[name]
    pictures = [word(encoded)] if name in ("recognizer", "detector") else [encoded(kinds(kind, 9)) for kind in range(4)]

    def ask(number):
        kind = number % len(pictures)
        answer = service.http.post(path, files=[(field, pictures[kind])])
        assert answer.status_code == 200, answer.text
        content = answer.json()
        if name == "embedder":
            assert content["neighbours"][0]["label"] == f"kind {kind}"
        if name == "recognizer":
            assert content["results"][0]["text"] == "Bakery"
        if name == "detector":
            assert content["text"] == "Bakery"
        return version_of(content, name)

    add_version(models, name)
    assert {info.name: info.versions for info in service.client.models().models}[name] == [1, 2]
    sync()
    with Stream(ask) as stream:
        for version in (2, 1, 2):
            stream.wait_for(12)
            run = readleaf("models", "activate", name, version, "--url", service.url)
            assert run.returncode == 0, run.stderr
            assert f"{name} version {version} is in use; before it was version {3 - version}" in run.stderr
        stream.wait_for(12)
    seen = [answer.result() for answer in stream.answers]  # raises what a request raised
    assert [seen[0], seen[-1]] == [1, 2]
    assert sum(before != after for before, after in pairwise(seen)) >= 3
    assert {info.name: info.version for info in service.client.models().models}[name] == 2


def damage_the_graph(version):
    graph = (version / "model.onnx").read_bytes()
    (version / "model.onnx").write_bytes(graph[: len(graph) // 2])


def take_a_field(version):
    text = (version / "manifest.json").read_text()
    (version / "manifest.json").write_text(text.replace('"dim":', '"dimension":'))


def promise_other_answers(version):
    manifest = read_manifest(version)
    answers = [value + 0.01 for value in manifest.probe.answers]
    manifest.model_copy(update={"probe": manifest.probe.model_copy(update={"answers": answers})}).write(version)


def promise_another_output(version):
    manifest = read_manifest(version)
    [output] = manifest.outputs
    wrong = output.model_copy(update={"name": "vectors"})
    manifest.model_copy(update={"outputs": [wrong]}).write(version)


def be_worse(version):
    manifest = read_manifest(version)
    halves = {name: value / 2 for name, value in manifest.metrics.items()}
    manifest.model_copy(update={"metrics": halves}).write(version)


def be_unmeasured(version):
    read_manifest(version).model_copy(update={"metrics": {}}).write(version)


def forget_the_starter(version):
    (version / "starter.npz").unlink()


def write_half(version):
    (version / "model.onnx").unlink()


WAYS = {
    damage_the_graph: r"sha256 .* its manifest says",
    take_a_field: r"manifest\.json: embed\.dim|manifest\.json: .*dim",
    promise_other_answers: "answers otherwise than at its export",
    promise_another_output: r"outputs",
    be_worse: r"is worse than version 1: 0\.\d+ against 0\.\d+",
    be_unmeasured: "has no figure to compare with version 1",
    forget_the_starter: "items are known by their vectors alone",
    write_half: r"model\.onnx is missing",
}


def test_a_broken_version_is_refused_and_the_old_one_goes_on(
    tmp_path, models, add_version, run_triton, run_service, kinds, encoded
):
    """Both runtimes, one after the other, on the same broken versions."""
    numbers = {way: add_version(models, "embedder") for way in WAYS}
    for way, number in numbers.items():
        way(models / "embedder" / str(number))
    picture = encoded(kinds(0, 9))
    with run_triton(tmp_path / "triton-data", ROOT / "models") as (triton, server):
        for settings in ({}, {"runtime": "triton", "triton_url": server.url}):
            folder = tmp_path / f"data-{len(settings)}"
            with run_service(folder, models_dir=ROOT / "models", starter=True, **settings):
                pass  # this data folder remembers version 1 from here on
            if settings:
                triton.start(models, server.ports, str)
            with run_service(folder, models_dir=models, starter=True, **settings) as service:
                before = np.array(service.client.embed([picture]).embeddings)
                for way, number in numbers.items():
                    answer = service.http.post("/v1/models/embedder/activate", json={"version": number})
                    assert (answer.status_code, answer.json()["type"]) == (409, "urn:readleaf:problem:version-refused")
                    assert re.search(WAYS[way], answer.json()["detail"]), (way, answer.json()["detail"])
                    assert "version 1 stays in use" in answer.json()["detail"]
                run = readleaf("models", "activate", "embedder", numbers[be_worse], "--url", service.url)
                assert (run.returncode, "is worse than version 1" in run.stderr) == (1, True)
                answer = service.http.post("/v1/models/embedder/activate", json={"version": 77})
                assert (answer.status_code, answer.json()["type"]) == (404, "urn:readleaf:problem:version-missing")
                answer = service.http.post("/v1/models/moth/activate", json={"version": 1})
                assert (answer.status_code, answer.json()["type"]) == (404, "urn:readleaf:problem:model-missing")
                np.testing.assert_allclose(service.client.embed([picture]).embeddings, before, atol=1e-6)
                assert service.http.get("/health/ready").status_code == 200


def test_a_new_classifier_joins_a_running_service(models, trees_models, start_service, kinds, encoded):
    service = start_service(models_dir=models)
    shutil.copytree(trees_models / "trees", models / "trees")
    run = readleaf("models", "activate", "trees", 1, "--url", service.url)
    assert (run.returncode, run.stderr) == (0, "trees version 1 is in use\n")
    assert service.client.classify(encoded(kinds(1, 0)), model="trees").predictions[0].label == "elm"


def test_the_version_before_may_be_taken_from_triton(tmp_path, models, add_version, run_triton, start_service):
    """What is not in use any more is not waited for when Triton comes back without it."""
    add_version(models, "classifier")
    shutil.move(models / "classifier/2", tmp_path / "classifier-2")
    with run_triton(tmp_path / "triton-data", models) as (triton, server):
        service = start_service(models_dir=models, runtime="triton", triton_url=server.url)
        shutil.move(tmp_path / "classifier-2", models / "classifier/2")
        triton.start(models, server.ports, str)
        assert service.client.activate("classifier", 2).previous == 1
        shutil.rmtree(models / "classifier/1")
        os.kill(server.pid, signal.SIGKILL)
        triton.start(models, server.ports, str)
        ends = time.monotonic() + 20
        while service.http.get("/health/ready").status_code != 200:
            assert time.monotonic() < ends, service.http.get("/health/ready").json()
            time.sleep(0.1)
