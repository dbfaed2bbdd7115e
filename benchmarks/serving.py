"""Every model in process and over a real Triton, against onnxruntime called directly, in one run.

    python benchmarks/serving.py [--seconds 5] [--rounds 3]

The direct calls get pixels that are decoded and laid out already; the services get JPEG files over HTTP, decode, run,
and make words or JSON of the answers. All share this machine's cores, the sender included, which sends bytes that were
made beforehand. Direct calls are made in two ways, and the faster counts: as onnxruntime comes (each run on all cores),
and with one thread a run. Rounds of all alternate. Writes serving.md.
"""

import argparse
import http.client
import io
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:] = [each for each in sys.path if Path(each).name != "benchmarks"]  # there, `serving` is this very file

import httpx
import numpy as np
import onnxruntime as ort
from PIL import Image, ImageDraw, ImageFont

from serving.images import ImageLimits, decode, fit
from serving.local_triton.server import LocalTriton, Ports
from serving.manifest import Manifest
from serving.pipelines.recognize import place
from serving.repository import StoredModel, load_repository
from ui.samples import LEAVES, draw_leaf

ROOT = Path(__file__).parents[1]
CONCURRENCY = (1, 8, 32)
LIMITS = ImageLimits(max_bytes=20_000_000, max_pixels=50_000_000)
WORDS = ("Bakery", "OPEN", "Platform", "moss", "24h", "Fresh", "exit", "Ulmus", "birch", "Tea", "sale", "Books")
BOUNDARY = "----------readleaf"


@dataclass(frozen=True)
class Work:
    """What one request asks of a model, as a service and as onnxruntime gets it."""

    model: str
    what: str
    path: str
    body: bytes
    pixels: list[np.ndarray]  # a run each
    images: int


@dataclass
class Measured:
    """Requests of one way to run one model at one concurrency."""

    seconds: list[float] = field(default_factory=list)  # of each request
    rates: list[float] = field(default_factory=list)  # images a second, by round
    batches: dict[int, int] = field(default_factory=dict)  # images in a run, and how often

    def row(self, first: str, reference: float | None = None) -> str:
        """A line of the table."""
        p50, p99 = (1000 * float(np.quantile(self.seconds, share)) for share in (0.5, 0.99))
        rate = statistics.median(self.rates)
        runs = sum(self.batches.values())
        mean = f"{sum(size * count for size, count in self.batches.items()) / runs:.1f}" if runs else ""
        seen = f"{mean}, up to {max(size for size, count in self.batches.items() if count)}" if runs else ""
        ratio = f"{rate / reference:.2f}" if reference else ""
        return f"| {first} | {rate:.0f} | {ratio} | {p50:.0f} | {p99:.0f} | {seen} |"


def main() -> None:
    """Measure everything, write the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=5.0, help="of each round")
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    stored = load_repository(ROOT / "models")
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        triton_running(Path(folder)) as url,
        service(Path(folder) / "near") as near,
        service(Path(folder) / "far", runtime="triton", triton_url=url) as far,
    ):
        for work in all_work(stored):
            lines += measure(work, stored[work.model], near, far, arguments.seconds, arguments.rounds)
    table = f"""# In process, and over Triton, against onnxruntime alone

`python benchmarks/serving.py` on {os.cpu_count()} cores, no GPU; {arguments.rounds} rounds of {arguments.seconds:g} s,
in turns. Direct calls get pixels that are ready; the services get JPEG files over HTTP and answer in JSON, and their
sender runs on the same cores. Triton is the wheel's with its backend in Python, so pictures travel to another process,
and again to that of the model. "Ratio" is of images a second, to onnxruntime at the same concurrency; p50 and p99 are
milliseconds a request; "images a run" is what the network got at once, on average and at most.

| what | images a second | ratio | p50 | p99 | images a run |
|---|---|---|---|---|---|
{chr(10).join(lines)}
"""
    (ROOT / "benchmarks/serving.md").write_text(table)
    print(table)


def all_work(stored: dict[str, StoredModel]) -> list[Work]:
    """A request for each model, and small ones for those that take many images."""
    leaves = [leaf(number) for number in range(16)]
    words = [written(word, number) for number, word in enumerate((*WORDS, *WORDS[:4]))]
    embeds, reads, classifies = (stored[name].manifest for name in ("embedder", "recognizer", "classifier"))
    one, sign = leaves[:1], page()
    return [
        Work("embedder", "16 pictures", "/v1/embed", body_of("images", leaves), [squares(leaves, embeds)], 16),
        Work("embedder", "1 picture", "/v1/embed", body_of("images", one), [squares(one, embeds)], 1),
        Work("recognizer", "16 words", "/v1/recognize", body_of("images", words), canvases(words, reads), 16),
        Work("recognizer", "1 word", "/v1/recognize", body_of("images", words[:1]), canvases(words[:1], reads), 1),
        Work(
            "classifier",
            "1 picture",
            "/v1/classify",
            body_of("image", leaves[:1]),
            [squares(leaves[:1], classifies)],
            1,
        ),
        Work("detector", "1 sign, and its words read", "/v1/read", body_of("image", [sign]), [tile(sign)], 1),
    ]


def leaf(number: int) -> bytes:
    """A picture of a leaf, 160 pixels wide."""
    outline, colour, _, _ = list(LEAVES.values())[number % len(LEAVES)]
    picture = draw_leaf(outline, colour, turn=11.0 * number, seed=number)
    return jpeg(picture.resize((160, 160), Image.Resampling.LANCZOS))


def written(word: str, number: int) -> bytes:
    """A crop of a word, 48 pixels high."""
    font = ImageFont.load_default(34)
    picture = Image.new("RGB", (round(font.getlength(word)) + 12, 48), (235, 230 - number, 220))
    ImageDraw.Draw(picture).text((6, 3), word, (20, 30, 50), font)
    return jpeg(picture)


def page() -> bytes:
    """A sign with two words."""
    picture = Image.new("RGB", (640, 448), (240, 236, 225))
    pen = ImageDraw.Draw(picture)
    for number, word in enumerate(WORDS[:2]):
        pen.text((60, 100 + 120 * number), word, (30, 40, 60), ImageFont.load_default(52))
    return jpeg(picture)


def jpeg(picture: Image.Image) -> bytes:
    """The bytes of its file."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def squares(files: list[bytes], manifest: Any) -> np.ndarray:
    """As embedder and classifier get them."""
    width, height = manifest.preprocessing.width, manifest.preprocessing.height
    return np.stack([fit(decode(data, LIMITS, min_side=max(width, height)), width, height) for data in files])


def canvases(files: list[bytes], manifest: Any) -> list[np.ndarray]:
    """As the recogniser gets them: one run for each width."""
    by_width: dict[int, list[np.ndarray]] = {}
    for data in files:
        pixels = place(np.asarray(decode(data, LIMITS)), manifest.canvas)
        by_width.setdefault(pixels.shape[1], []).append(pixels)
    return [np.stack(each) for each in by_width.values()]


def tile(data: bytes) -> np.ndarray:
    """As the detector gets it; the sign's sides are multiples of 32 already."""
    return np.asarray(decode(data, LIMITS))[None]


def body_of(name: str, files: list[bytes]) -> bytes:
    """A multipart body, made once."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="a.jpg"\r\n'
        "Content-Type: image/jpeg\r\n\r\n".encode()
        + data
        + b"\r\n"
        for data in files
    ]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def measure(work: Work, model: StoredModel, near: str, far: str, seconds: float, rounds: int) -> list[str]:
    """The lines of one kind of request, at each concurrency."""
    lines = []
    direct = {name: directly(model, threads, work.pixels) for name, threads in (("all cores", 0), ("one thread", 1))}
    for count in CONCURRENCY:
        ways = {name: Measured() for name in (*direct, "in process", "over Triton")}
        for _ in range(rounds):
            for name, call in direct.items():
                keep_asking(lambda _call=call: _call, count, seconds, work.images, ways[name])
            for name, url in (("in process", near), ("over Triton", far)):
                before = batches(url, model.manifest, name)
                keep_asking(lambda _url=url: over_http(_url, work), count, seconds, work.images, ways[name])
                for size, runs in batches(url, model.manifest, name).items():
                    ways[name].batches[size] = ways[name].batches.get(size, 0) + runs - before.get(size, 0)
        best = max(direct, key=lambda name: statistics.median(ways[name].rates))
        reference = statistics.median(ways[best].rates)
        where = f"{work.model}, {work.what}, {count} at a time"
        lines += [
            ways[best].row(f"{where}: onnxruntime, {best}"),
            ways["in process"].row("in process", reference),
            ways["over Triton"].row("over Triton", reference),
        ]
        print("\n".join(lines[-3:]), flush=True)
    return lines


def directly(model: StoredModel, threads: int, pixels: list[np.ndarray]) -> Callable[[], None]:
    """One request's runs, with nothing around them."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.file, options, providers=["CPUExecutionProvider"])

    def call() -> None:
        for each in pixels:
            session.run(None, {"images": each})

    return call


def over_http(url: str, work: Work) -> Callable[[], None]:
    """One request over a connection that stays open."""
    address = httpx.URL(url)
    connection = http.client.HTTPConnection(address.host, address.port or 80, timeout=60)
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}

    def call() -> None:
        connection.request("POST", work.path, work.body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{work.path} answered {answer.status}")

    return call


def keep_asking(
    make: Callable[[], Callable[[], None]], count: int, seconds: float, images: int, measured: Measured
) -> None:
    """So many at a time, for so long; each asker asks once beforehand, which does not count."""
    ready = threading.Barrier(count)
    taken: list[list[tuple[float, float]]] = [[] for _ in range(count)]  # began, ended

    def ask(number: int) -> None:
        call = make()
        call()
        ready.wait()
        ends = time.perf_counter() + seconds
        while (began := time.perf_counter()) < ends:
            call()
            taken[number].append((began, time.perf_counter()))

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    began, ended = np.array([each for own in taken for each in own]).T
    measured.seconds += (ended - began).tolist()
    measured.rates.append(images * len(began) / float(ended.max() - began.min()))


def batches(url: str, manifest: Manifest, way: str) -> dict[int, int]:
    """Runs so far by images in a run; in process in classes of at most 1, 2, 4, 8 …"""
    text = httpx.get(f"{url}/metrics", trust_env=False).text
    if way == "over Triton":
        rows = re.findall(rf'runs_total{{batch="(\d+)",model="{manifest.name}",version="\d+"}} (\S+)', text)
        return {int(size): int(float(count)) for size, count in rows}
    rows = re.findall(rf'batch_size_bucket{{le="([\d.]+)",model="{manifest.name}",runtime="onnx"}} (\S+)', text)
    counts = [(int(float(size)), int(float(count))) for size, count in rows]
    return {size: count - before for (size, count), (_, before) in zip(counts, [(0, 0), *counts], strict=False)}


@contextmanager
def triton_running(folder: Path) -> Iterator[str]:
    """A real Triton; installed once, where the tests look for it, too."""
    installed = ROOT / ".venv/triton"
    (folder / "triton").mkdir(parents=True)
    (installed / "venv").mkdir(parents=True, exist_ok=True)
    (folder / "triton/venv").symlink_to(installed / "venv")
    triton = LocalTriton(folder)
    running, _ = triton.start(ROOT / "models", Ports(0, 0, 0), print)
    try:
        yield running.url
    finally:
        triton.stop()


@contextmanager
def service(data_dir: Path, **settings: str) -> Iterator[str]:
    """`readleaf serve` as users run it, on a free port."""
    given = {"port": "0", "ui": "false", "starter": "false", "data_dir": str(data_dir), **settings}
    environment = os.environ | {f"READLEAF_{name.upper()}": value for name, value in given.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "readleaf", "serve"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        url = next(found[1] for line in process.stderr if (found := re.search(r"url=.*?(http://[\d.:]+)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


if __name__ == "__main__":
    main()
