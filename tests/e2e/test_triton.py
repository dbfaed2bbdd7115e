"""The service over a real Triton, from the wheel: the same answers as in process, and what happens when it goes."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from PIL import Image, ImageDraw, ImageFont

from serving.manifest import read_manifest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)  # the first test installs Triton
WORDS = ["leaf", "oak", "moss", "birch", "Bakery", "OPEN", "24h", "Platform", "Fresh-Bread", "50%", "exit", "Tea"]
COLLECTION = "flowers and leaves"
REQUESTS = 200
CLIENTS = 8
CLOSE = 1e-4
PIXEL = 0.15  # coordinates are rounded to a tenth


@pytest.fixture(scope="module")
def triton(run_triton, tmp_path_factory):
    with run_triton(tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture(scope="module")
def over_triton(triton, run_service, tmp_path_factory):
    _, server = triton
    folder = tmp_path_factory.mktemp("over-triton")
    with run_service(folder, runtime="triton", triton_url=server.url, starter=True) as running:
        yield running


@pytest.fixture(scope="module")
def in_process(run_service, tmp_path_factory):
    with run_service(tmp_path_factory.mktemp("in-process"), starter=True) as running:
        yield running


@dataclass(frozen=True)
class Question:
    """One request, and the model that it is there to try."""

    model: str
    path: str
    files: list
    form: dict

    def ask(self, service, **headers):
        return service.http.post(self.path, files=self.files, data=self.form, headers=headers)


def sign(words, chance, encoded):
    """A picture with some words, a little aslant."""
    picture = Image.new("RGB", (chance.randint(280, 640), chance.randint(160, 400)), (240, 236, 225))
    pen = ImageDraw.Draw(picture)
    for number, word in enumerate(words):
        font = ImageFont.load_default(chance.randint(22, 44))
        pen.text((chance.randint(5, 60), 10 + 55 * number), word, (30, 40, 60), font)
    return encoded(picture.rotate(chance.uniform(-12, 12), Image.Resampling.BICUBIC, fillcolor=(240, 236, 225)))


def crop(word, chance, encoded):
    """A picture of one word; short ones and long ones lie on canvases of different widths."""
    font = ImageFont.load_default(40)
    width = round(font.getlength(word)) + 16
    picture = Image.new("RGB", (width, 56), (235, 235, 235))
    ImageDraw.Draw(picture).text((8, 2), word, (20, 20, 20), font)
    return encoded(picture.resize((max(8, round(width * chance.uniform(0.5, 1.5))), 56)), "PNG")


@pytest.fixture(scope="module")
def questions(photo, encoded):
    """Many different ones, always the same."""
    chance = random.Random(1)
    gallery = [file.read_bytes() for file in sorted((ROOT / "ui/gallery").glob("*.jpg"))]

    def picture():
        return chance.choice(
            [*gallery, encoded(photo(chance.randint(60, 500), chance.randint(60, 400), chance.randint(0, 99)))]
        )

    def make(kind):
        if kind == "read":
            return Question("detector", "/v1/read", [("image", sign(chance.sample(WORDS, 2), chance, encoded))], {})
        if kind == "recognize":
            crops = [crop("".join(chance.sample(WORDS, chance.randint(1, 3))), chance, encoded) for _ in range(6)]
            return Question("recognizer", "/v1/recognize", [("images", each) for each in crops], {"details": "true"})
        if kind == "embed":
            return Question("embedder", "/v1/embed", [("images", picture()) for _ in range(3)], {})
        if kind == "classify":
            return Question("classifier", "/v1/classify", [("image", picture())], {"explain": "true", "top": "20"})
        if kind == "search":
            return Question("embedder", f"/v1/collections/{COLLECTION}/search", [("image", picture())], {"k": "10"})
        files = [("images", picture()) for _ in range(chance.randint(1, 3))]
        return Question("classifier", f"/v1/collections/{COLLECTION}/identify", files, {})

    kinds = ["read", "recognize", "embed", "classify", "search", "identify"]
    return [make(kinds[number % len(kinds)]) for number in range(REQUESTS)]


def apart(one, other, where=""):
    """The largest difference between numbers of two answers; everything else must be equal."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        return max((apart(one[key], other[key], f"{where}.{key}") for key in one), default=0.0)
    if isinstance(one, list):
        assert len(one) == len(other), where
        return max((apart(*pair, where) for pair in zip(one, other, strict=True)), default=0.0)
    if isinstance(one, float):
        if "polygon" in where or "angle" in where:
            assert abs(one - other) < PIXEL, where
            return 0.0
        return abs(one - other)
    assert one == other, where
    return 0.0


def test_texts_neighbours_and_probabilities_are_those_of_the_process(
    questions, triton, over_triton, in_process, capsys
):
    def both(question):
        answers = [question.ask(service) for service in (over_triton, in_process)]
        assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        return question.model, apart(*(answer.json() for answer in answers))

    with ThreadPoolExecutor(CLIENTS) as clients:
        found = list(clients.map(both, questions))
    worst = {name: max(value for model, value in found if model == name) for name, _ in found}
    assert worst.keys() == {"detector", "recognizer", "embedder", "classifier"}
    assert apart({"a": [0.5, "b"]}, {"a": [0.25, "b"]}) == 0.25  # it would have been seen
    assert max(worst.values()) < CLOSE
    served = {info.name: info.runtime for info in over_triton.client.models().models}
    assert set(served.values()) == {f"triton ({triton[1].url})"}
    metrics = over_triton.http.get("/metrics").text
    with capsys.disabled():
        for name, value in sorted(worst.items()):
            sizes = batch_sizes(metrics, name)
            assert sum(sizes.values()) >= sum(model == name for model, _ in found)
            count = sum(model == name for model, _ in found)
            print(f"\n{name} on Triton: {count} answers as in process, apart by at most {value:.1g}")  # noqa: T201
            print(f"  images in a run, and how often: {sizes}", end="")  # noqa: T201
    assert max(batch_sizes(metrics, "embedder")) > 2  # what one request asks for at a time: so requests were joined


def batch_sizes(metrics, model):
    """Triton's own count of runs by images in a run."""
    found = {}
    for line in metrics.splitlines():
        if line.startswith("readleaf_model_server_runs_total{") and f'model="{model}"' in line:
            found[int(line.partition('batch="')[2].partition('"')[0])] = int(float(line.split()[-1]))
    return found


def test_work_behind_the_page_uses_triton_too(over_triton, kinds, encoded):
    """Items are kept with vectors that Triton made, and are found by them."""
    client = over_triton.client
    client.create_collection("trees")
    for kind in range(3):
        for number in range(3):
            client.add_item("trees", encoded(kinds(kind, number)), f"kind {kind}")
    found = client.search("trees", encoded(kinds(1, 7)), 1)
    assert found.neighbours[0].label == "kind 1"


@pytest.mark.campaign
def test_triton_is_killed_under_load(run_triton, start_service, tmp_path, rounds, photo, encoded, capsys):
    """Every request gets an answer or a 503 within its deadline, and soon after Triton's return all get answers."""
    deadline, done = 5.0, threading.Event()
    answers, slowest, problems = Counter(), [0.0], Counter()
    pictures = [encoded(photo(200, 150, seed)) for seed in range(8)]
    with run_triton(tmp_path / "first") as (triton, server):
        service = start_service(runtime="triton", triton_url=server.url, max_running=8, max_waiting=64)

        def visit(number):
            while not done.is_set():
                path, field = [("/v1/embed", "images"), ("/v1/read", "image"), ("/v1/classify", "image")][number % 3]
                started = time.monotonic()
                answer = service.http.post(
                    path, files=[(field, pictures[number])], headers={"X-Request-Timeout": str(deadline)}
                )
                slowest[0] = max(slowest[0], time.monotonic() - started)
                answers[answer.status_code] += 1
                if answer.status_code != 200:
                    problems[answer.json()["type"].rpartition(":")[2]] += 1
                    time.sleep(0.02)

        back = []
        with ThreadPoolExecutor(CLIENTS) as clients:
            visits = [clients.submit(visit, number) for number in range(CLIENTS)]
            for _ in range(rounds(2, 20)):
                wait_for(lambda before=answers[200]: answers[200] > before + 20)
                os.kill(server.pid, signal.SIGKILL)
                before = answers[503]
                wait_for(lambda before=before: answers[503] > before)
                assert service.http.get("/health/ready").status_code == 503
                server = triton.start(ROOT / "models", server.ports, str)[0]
                returned, before = time.monotonic(), answers[200]
                wait_for(lambda before=before: answers[200] > before + CLIENTS)
                back.append(time.monotonic() - returned)
                assert service.http.get("/health/ready").status_code == 200
            done.set()
            for each in visits:
                each.result()
        with capsys.disabled():
            print(f"\nTriton killed {len(back)} times: {dict(answers)} {dict(problems)}")  # noqa: T201
            print(f"  slowest answer {slowest[0]:.2f} s, back after {max(back):.2f} s", end="")  # noqa: T201
    assert set(answers) == {200, 503}
    assert set(problems) <= {"runtime-unavailable", "deadline-exceeded"}
    assert slowest[0] < deadline + 1
    assert max(back) < 5


def wait_for(condition, seconds=60):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.02)


def test_a_triton_that_stops_answering(run_triton, start_service, tmp_path, photo, encoded):
    """It is there, but frozen: a request with a deadline is answered by it, one without by the service's own limit."""
    with run_triton(tmp_path / "frozen") as (_, server):
        service = start_service(runtime="triton", triton_url=server.url, triton_timeout=3)
        picture = [("images", encoded(photo()))]
        assert service.http.post("/v1/embed", files=picture).status_code == 200
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with ThreadPoolExecutor() as clients:  # while Triton is asked for its figures, the service goes on
                scrape = clients.submit(service.http.get, "/metrics")
                for _ in range(5):
                    assert service.http.get("/health/live", timeout=1).status_code == 200
                assert scrape.result().status_code == 200
            for headers, kind, limit in (
                ({"X-Request-Timeout": "0.5"}, "deadline-exceeded", 1.5),
                ({}, "runtime-unavailable", 5),
            ):
                started = time.monotonic()
                answer = service.http.post("/v1/embed", files=picture, headers=headers)
                assert time.monotonic() - started < limit
                assert (answer.status_code, answer.json()["type"]) == (503, f"urn:readleaf:problem:{kind}")
            # The hurried caller made the service look, and it found that nobody answers.
            wait_for(lambda: service.http.get("/health/ready").status_code == 503, 10)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        wait_for(lambda: service.http.post("/v1/embed", files=picture).status_code == 200, 10)


def take_the_trees(models, trees_models, add_version):
    shutil.copytree(trees_models / "trees", models / "trees")
    return "does not serve trees version 1"


def take_a_new_version(models, trees_models, add_version):
    add_version(models, "recognizer")
    return "does not serve recognizer version 2"


def take_another_shape(models, trees_models, add_version):
    shutil.rmtree(models / "classifier/1")
    shutil.copytree(trees_models / "trees/1", models / "classifier/1")
    manifest = read_manifest(trees_models / "trees/1")
    manifest.model_copy(update={"name": "classifier"}).write(models / "classifier/1")
    return "classifier version 1 has the inputs"


@pytest.mark.parametrize("change", [take_the_trees, take_a_new_version, take_another_shape])
def test_a_triton_that_serves_something_else_is_refused_at_the_start(
    triton, models, trees_models, add_version, tmp_path, change
):
    said = change(models, trees_models, add_version)
    settings = {"DATA_DIR": tmp_path, "MODELS_DIR": models, "RUNTIME": "triton", "TRITON_URL": triton[1].url, "PORT": 0}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    run = subprocess.run(
        [sys.executable, "-m", "readleaf", "serve"],
        cwd=ROOT,
        env=clean | {f"READLEAF_{name}": str(value) for name, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    [line] = [line for line in run.stderr.splitlines() if line.startswith("readleaf: ")]
    assert f"Triton at {triton[1].url}" in line
    assert said in line
    assert "Traceback" not in run.stderr


def test_two_tritons_on_one_data_folder(triton, tmp_path):
    local, server = triton
    again, started = local.start(ROOT / "models", server.ports, str)
    assert (again, started) == (server, False)  # the one that runs, with the models given anew


def test_a_connection_that_goes_away_stops_the_work(over_triton, encoded):
    """A client that hangs up in the middle of a large page: what was not begun is not done."""
    page = Image.new("RGB", (6000, 6000), (245, 245, 240))
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(60)
    for row in range(60):
        pen.text((40, 20 + 98 * row), " ".join(WORDS), (20, 20, 20), font)
    data = encoded(page, "PNG")

    def runs():
        return sum(batch_sizes(over_triton.http.get("/metrics").text, "detector").values())

    before = runs()
    over_triton.http.post("/v1/read", files={"image": data}, timeout=300).raise_for_status()
    whole, before = runs() - before, runs()
    assert whole > 10
    with pytest.raises(httpx.ReadTimeout):
        over_triton.http.post("/v1/read", files={"image": data}, timeout=httpx.Timeout(60, read=2))
    settled = [runs()]
    while len(settled) < 3 or settled[-1] != settled[-3]:
        time.sleep(0.5)
        settled.append(runs())
    assert settled[-1] - before < whole / 2
    assert over_triton.http.get("/health/ready").status_code == 200
