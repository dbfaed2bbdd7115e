"""What tests share: a running service, pictures made on the spot, and the size of long campaigns."""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from serving.client import Client

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run campaigns in full (make soak)")


@pytest.fixture(scope="session")
def rounds(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """`rounds(small, full)`: how often a campaign repeats, in `make test` and in `make soak`."""
    soak = request.config.getoption("--soak")
    return lambda small, full: full if soak else small


@dataclass
class Service:
    """A `readleaf serve` in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    client: Client
    http: httpx.Client
    log: list[str]


@contextmanager
def _run_service(data_dir: Path, **settings: object) -> Iterator[Service]:
    """Start the service on a free port, wait until it says that it is ready, stop it at the end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    given = {"port": 0, "ui": False, "starter": False, "data_dir": data_dir, "log_format": "json", **settings}
    environment |= {f"READLEAF_{name.upper()}": str(value) for name, value in given.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "readleaf", "serve"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    log: list[str] = []
    try:
        url = ""
        for line in process.stderr:
            log.append(line)
            if line.startswith("{") and (event := json.loads(line))["event"] == "ready":
                url = event["url"]
                break
        assert url, "the service did not start:\n" + "".join(log)
        reader = threading.Thread(target=log.extend, args=(process.stderr,))
        reader.start()
        with Client(url) as client, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            yield Service(url, process, client, http, log)
        process.terminate()
        process.wait(timeout=30)
        reader.join()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="session")
def run_service():
    """`with run_service(data_dir, ui=True) as service`, for fixtures of wider scope."""
    return _run_service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests that do not need their own."""
    with _run_service(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start a service with settings of one's own: `start_service(max_waiting=0)`."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(_run_service(tmp_path / "data", **settings))


@pytest.fixture(scope="session")
def kinds(photo) -> Callable[[int, int], Image.Image]:
    """`kinds(2, 5)`: the fifth picture of the second kind; pictures of one kind look alike."""

    def draw(kind: int, number: int) -> Image.Image:
        return photo(90, 70, seed=100 + kind).point(lambda value: value * (1 - 0.03 * (number % 12)))

    return draw


@pytest.fixture(scope="session")
def trees_models(tmp_path_factory, kinds) -> Path:
    """The shipped models, and beside them a classifier named `trees` that knows ash, elm and oak."""
    import torch
    from torch.nn import functional as F

    from export.classifier import export_classifier
    from export.evaluate_classifier import ClassifierFigures
    from training.data.pixels import normalised
    from training.models.classifier import ClassifierShape, imagenet_classifier
    from training.models.provenance import Provenance

    repository = tmp_path_factory.mktemp("models")
    for folder in (ROOT / "models").iterdir():
        (repository / folder.name).symlink_to(folder)
    model = imagenet_classifier(ClassifierShape(), ("ash", "elm", "oak"), cosine=True)
    model.provenance = Provenance(("trees: 3 pictures of 3 classes",), ("esupcon",))
    pixels = np.stack([np.asarray(kinds(kind, 0).resize((64, 64))) for kind in range(3)])
    with torch.no_grad():
        features = model.body.backbone.forward_features(normalised(torch.from_numpy(pixels)))
        model.weights.data = F.normalize(model.body.pooled(features), dim=1)
    figures = ClassifierFigures(
        {"val/accuracy": 1.0}, size=64, temperature=0.2, unsure_below=0.6, prior=[0.2, 0.3, 0.5], before=[], after=[]
    )
    export_classifier(model, figures, repository, "trees")
    return repository


@pytest.fixture
def models(tmp_path) -> Path:
    """The shipped models in a folder of the test's own, which may be added to."""
    for file in (ROOT / "models").rglob("*"):
        place = tmp_path / "models" / file.relative_to(ROOT / "models")
        if file.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file) if file.suffix in (".onnx", ".npz") else shutil.copy(file, place)
    return tmp_path / "models"


@pytest.fixture(scope="session")
def add_version() -> Callable[..., int]:
    """`add_version(models, "embedder", metrics={…})`: a next version with a graph of its own; returns its number.

    Embedders turn half of a vector around, so their vectors and those of the version before have nothing in common;
    all others answer as before.
    """
    import onnx
    from onnx import helper, numpy_helper

    from export.repository import new_version, sha256_of
    from serving.manifest import read_manifest
    from serving.starter import Starter, read_starter

    def alter(graph: onnx.GraphProto, signs: np.ndarray | None, number: int) -> None:
        name = graph.output[0].name
        for node in graph.node:
            node.output[:] = [f"{output}_before" if output == name else output for output in node.output]
            node.input[:] = [f"{each}_before" if each == name else each for each in node.input]
        if signs is None:
            graph.node.append(helper.make_node("Identity", [f"{name}_before"], [name], name=f"version {number}"))
            return
        graph.initializer.append(numpy_helper.from_array(signs, "signs"))
        graph.node.append(helper.make_node("Mul", [f"{name}_before", "signs"], [name], name=f"version {number}"))

    def add(models: Path, name: str, **changes: Any) -> int:
        before = models / name / "1"
        manifest = read_manifest(before)
        with new_version(models / name) as version:
            signs = None
            if name == "embedder":
                signs = np.where(np.random.default_rng(version.number).random(manifest.dim) < 0.5, -1, 1)
            model = onnx.load(before / "model.onnx")
            alter(model.graph, signs if signs is None else signs.astype(np.float32), version.number)
            onnx.save(model, version.graph)
            if (before / "language.npz").exists():
                shutil.copy(before / "language.npz", version.folder)
            changed = manifest.model_copy(
                update={"version": version.number, "sha256": sha256_of(version.graph), **changes}
            )
            if signs is not None:
                old = read_starter(before / "starter.npz", manifest.sha256, manifest.dim)
                new = Starter(old.name, old.description, old.vectors * signs, old.labels, old.sources)
                new.write(version.folder / "starter.npz", changed.sha256)
            version.describe(changed, "# a version of the tests")
        return version.number

    return add


@pytest.fixture(scope="session")
def triton_environment() -> Path:
    """Triton's own virtual environment, installed once for all tests."""
    from serving.local_triton.environment import TritonEnvironment

    folder = ROOT / ".venv/triton"
    folder.mkdir(parents=True, exist_ok=True)
    TritonEnvironment(folder).install(print)
    return folder


@pytest.fixture(scope="session")
def run_triton(triton_environment):
    """`with run_triton(data_dir, models) as (triton, server)`: a real Triton, in the data folder of its own."""
    from serving.local_triton.server import LocalTriton, Ports

    @contextmanager
    def run(data_dir: Path, models: Path = ROOT / "models") -> Iterator[Any]:
        (data_dir / "triton").mkdir(parents=True, exist_ok=True)
        (data_dir / "triton/venv").symlink_to(triton_environment / "venv")
        triton = LocalTriton(data_dir)
        server, _ = triton.start(models, Ports(0, 0, 0), print)
        try:
            yield triton, server
        finally:
            triton.stop(patience=0)

    return run


@pytest.fixture(scope="session")
def photo() -> Callable[..., Image.Image]:
    """A smooth, colourful picture unlike any other seed's."""

    def make(width: int = 300, height: int = 220, seed: int = 0) -> Image.Image:
        coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
        return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)

    return make


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    """`encoded(picture, "JPEG", …)`: the bytes of an image file."""

    def encode(picture: Image.Image, form: str = "JPEG", **options: object) -> bytes:
        stream = io.BytesIO()
        picture.save(stream, form, **options)
        return stream.getvalue()

    return encode


@pytest.fixture(scope="session")
def bomb() -> bytes:
    """A PNG of 30,000 × 30,000 white pixels in about 110 kB."""
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    side = 30_000
    packer = zlib.compressobj(9)
    row = b"\0" + b"\xff" * (side // 8)
    pixels = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
