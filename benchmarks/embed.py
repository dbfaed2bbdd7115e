"""`POST /v1/embed` against onnxruntime called directly on the same decoded pixels, in one run.

    python benchmarks/embed.py [--pictures FOLDER] [--rounds 20]

The direct call is onnxruntime as it comes (all cores, one batch of 32) and pays for no decoding, no HTTP and
no JSON. Rounds of both alternate, so that a noisy moment of the machine hits both. Writes embed.md.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import onnxruntime as ort
from PIL import Image

from serving.client import Client, ServiceUnreachable
from serving.images import ImageLimits, decode, fit
from serving.manifest import EmbedderManifest
from serving.repository import load_repository, manifest_as, model_of
from ui.samples import LEAVES, draw_leaf

ROOT = Path(__file__).parents[1]
BATCH = 32
LIMITS = ImageLimits(max_bytes=20_000_000, max_pixels=50_000_000)


def main() -> None:
    """Measure every size of picture and write the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pictures", type=Path, help="a folder of JPEGs to use beside the drawn ones")
    options.add_argument("--rounds", type=int, default=20)
    arguments = options.parse_args()
    cases = {f"drawn, {side}×{side}": drawn(side) for side in (160, 480, 1600)}
    if arguments.pictures:
        files = sorted(arguments.pictures.glob("*.jpg"))
        cases["photographs given"] = [file.read_bytes() for file in files[:: max(1, len(files) // BATCH)][:BATCH]]
    with running_service() as url, Client(url) as client, httpx.Client(base_url=url, trust_env=False) as http:
        wait_until_ready(client)
        rows = [measure(name, pictures, client, http, arguments.rounds) for name, pictures in cases.items()]
    table = "\n".join(
        [
            f"# Embedding {BATCH} pictures: the service against onnxruntime alone",
            "",
            f"`make bench` on {os.cpu_count()} cores, median of {arguments.rounds} rounds, images a second.",
            "The direct call gets decoded pixels; the service decodes, embeds and answers over HTTP.",
            "",
            "| pictures | onnxruntime alone | service, 1 client | ratio | service, 4 clients | ratio |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
    (ROOT / "benchmarks" / "embed.md").write_text(table)
    print(table)


def drawn(side: int) -> list[bytes]:
    """Leaves of three kinds, as JPEG files."""
    kinds = list(LEAVES.values())
    pictures = []
    for number in range(BATCH):
        outline, colour, _, _ = kinds[number % len(kinds)]
        leaf = draw_leaf(outline, colour, turn=11.0 * number, seed=number)
        stream = io.BytesIO()
        leaf.resize((side, side), Image.Resampling.LANCZOS).save(stream, "JPEG", quality=90)
        pictures.append(stream.getvalue())
    return pictures


def measure(name: str, pictures: list[bytes], client: Client, http: httpx.Client, rounds: int) -> str:
    """One row of the table."""
    model = model_of(load_repository(ROOT / "models"), "embedder")
    side = manifest_as(model, EmbedderManifest).preprocessing.width
    pixels = np.stack([fit(decode(data, LIMITS, min_side=side), side, side) for data in pictures])
    session = ort.InferenceSession(model.file, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"images": pixels})[0]
    worst = np.abs(np.array(client.embed(pictures).embeddings) - expected).max()
    assert worst < 1e-4, f"the service answers something else: {worst}"

    def post(pictures: list[bytes]) -> None:
        parts = [("images", ("leaf.jpg", data)) for data in pictures]
        http.post("/v1/embed", files=parts).raise_for_status()

    def direct() -> None:
        session.run(None, {"images": pixels})

    def service() -> None:
        post(pictures)

    def service_four() -> None:
        with ThreadPoolExecutor(4) as clients:
            list(clients.map(lambda _: post(pictures), range(4)))

    alone, one, four = alternate([direct, service, service_four], rounds)
    rates = [BATCH / alone, BATCH / one, 4 * BATCH / four]
    return (
        f"| {name} | {rates[0]:.0f} | {rates[1]:.0f} | {rates[1] / rates[0]:.2f} "
        f"| {rates[2]:.0f} | {rates[2] / rates[0]:.2f} |"
    )


def alternate(calls: list[Callable[[], None]], rounds: int) -> list[float]:
    """Median seconds of each call, after one round to warm up."""
    seconds: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + 1):
        for call, record in zip(calls, seconds, strict=True):
            started = time.perf_counter()
            call()
            if number:
                record.append(time.perf_counter() - started)
    return [statistics.median(record) for record in seconds]


@contextmanager
def running_service() -> Iterator[str]:
    """`readleaf serve` as users run it, on a free port."""
    port = 8765
    with tempfile.TemporaryDirectory() as data_dir:
        command = [sys.executable, "-m", "readleaf", "serve", "--port", str(port), "--data-dir", data_dir]
        server = subprocess.Popen(command, cwd=ROOT)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_until_ready(client: Client) -> None:
    """Up to a minute for the models to load."""
    for _ in range(240):
        try:
            client.ready()
            return
        except ServiceUnreachable:
            time.sleep(0.25)
    raise TimeoutError("the service did not start")


if __name__ == "__main__":
    main()
