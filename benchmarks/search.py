"""Search among 100,000 items end to end, beside embedding alone and beside FAISS alone. Writes search.md.

python benchmarks/search.py
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from PIL import Image

from serving.client import Client
from serving.library import Library
from serving.repository import load_repository
from serving.store.database import open_database

ITEMS = 100_000
CALLS = 60
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Fill, start, ask, write the table."""
    manifest = load_repository(ROOT / "models")["embedder"].manifest
    random = np.random.default_rng(0)
    vectors = random.normal(size=(ITEMS, manifest.dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        with open_database(data_dir / "readleaf.db") as database:
            library = Library(database, data_dir, model=manifest.sha256, dim=manifest.dim)
            library.create_collection("many", "")
            for start in range(0, ITEMS, 10_000):
                part = vectors[start : start + 10_000]
                library.add_vectors("many", part, [f"label {row % 500}" for row in range(len(part))])
        without = start_and_ask(data_dir, pictures=[])[0]  # no snapshot yet; a clean stop writes one
        picture = io.BytesIO()
        Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((640, 480)).save(picture, "JPEG")
        ready, embed, search, memory = start_and_ask(data_dir, pictures=[picture.getvalue()])
    alone = faiss_alone(vectors)
    table = [
        f"# Search among {ITEMS:,} items of {manifest.dim} dimensions",
        "",
        f"A picture of 640 × 480 a call, one at a time, median of {CALLS}. `make bench` on {os.cpu_count()} cores.",
        "",
        "| | |",
        "|---|---|",
        f"| `/v1/embed`, end to end | {embed * 1000:.1f} ms |",
        f"| `/v1/collections/many/search`, end to end | {search * 1000:.1f} ms |",
        f"| ratio | {search / embed:.2f} |",
        f"| FAISS flat alone | {alone * 1000:.1f} ms |",
        f"| start to ready, from the database | {without:.1f} s |",
        f"| start to ready, from a snapshot | {ready:.1f} s |",
        f"| memory of the service | {memory / 1e6:,.0f} MB, of which vectors {vectors.nbytes / 1e6:,.0f} MB |",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


def start_and_ask(data_dir: Path, pictures: list[bytes]) -> tuple[float, float, float, float]:
    """Seconds to ready, of an embedding, of a search, and bytes of memory."""
    settings = {"PORT": "0", "UI": "false", "DATA_DIR": str(data_dir), "LOG_FORMAT": "json"}
    environment = os.environ | {f"READLEAF_{name}": value for name, value in settings.items()}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "readleaf", "serve"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        url = next(
            event["url"]
            for event in (json.loads(line) for line in process.stderr if line.startswith("{"))
            if event["event"] == "ready"
        )
        ready = time.perf_counter() - started
        embed = search = 0.0
        with Client(url) as client:
            for picture in pictures:
                embed = median_seconds(lambda picture=picture: client.embed([picture]))
                search = median_seconds(lambda picture=picture: client.search("many", picture))
        status = Path(f"/proc/{process.pid}/status").read_text()
        memory = 1024.0 * int(status.partition("VmRSS:")[2].split()[0])
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
    return ready, embed, search, memory


def faiss_alone(vectors: np.ndarray) -> float:
    """One query after another, in this process."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return median_seconds(lambda: index.search(vectors[:1], 10))


def median_seconds(call: Callable[[], object]) -> float:
    """The median duration of a call, after a few to warm up."""
    for _ in range(5):
        call()
    durations = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        durations.append(time.perf_counter() - started)
    return float(np.median(durations))


if __name__ == "__main__":
    main()
