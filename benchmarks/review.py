"""Asks a real service for the next observation with 50,000 in the queue. Writes review.md."""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sqlalchemy import insert

from serving.client import Client, ServiceUnreachable
from serving.library import Library
from serving.manifest import EmbedderManifest
from serving.repository import load_repository, manifest_as, model_of
from serving.store.database import open_database
from serving.store.review_tables import Observation, ObservationImage, Taxon
from serving.store.tables import now

ROOT = Path(__file__).parents[1]
QUEUED, ASKED, REVIEWERS = 50_000, 25, (1, 8)
PORT = 8973


def main() -> None:
    """Fill a database, start the service on it, ask."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        environment = {
            **os.environ,
            "READLEAF_DATA_DIR": folder,
            "READLEAF_PORT": str(PORT),
            "READLEAF_UI": "false",
            "READLEAF_LOG_LEVEL": "error",
        }
        process = subprocess.Popen([sys.executable, "-m", "readleaf", "serve"], cwd=ROOT, env=environment)
        try:
            wait()
            rows = "".join(measured(people) for people in REVIEWERS)
        finally:
            process.terminate()
            process.wait()
    Path(__file__).with_suffix(".md").write_text(f"""# The review queue

`python benchmarks/review.py`: {QUEUED:,} observations wait; each reviewer asks for the next one, votes, and asks again,
{ASKED} times, through the API on {os.cpu_count()} cores. Milliseconds.

| reviewers at once | next, median | next, slowest of 20 | vote, median | vote, slowest of 20 |
|---|---|---|---|---|
{rows}""")


def fill(folder: Path) -> None:
    """Observations as the service would have kept them, with vectors at random."""
    manifest = manifest_as(model_of(load_repository(ROOT / "models"), "embedder"), EmbedderManifest)
    random = np.random.default_rng(0)
    with open_database(folder / "readleaf.db") as database:
        library = Library(database, folder, model=manifest.sha256, dim=manifest.dim)
        library.create_collection("c", "")
        number = library.get_collection_id("c")
        picture = b"not looked at"
        name = library.pictures.name_of(picture)
        library.pictures.keep(name, picture)
        with library.write() as session:
            session.add_all(
                Taxon(name=f"kind {each}", rank="species", synonyms=[], common_names=[]) for each in range(9)
            )
            session.flush()
            shares = random.dirichlet(np.ones(9), QUEUED)
            session.execute(insert(Observation), [_observation(number, row, manifest.sha256) for row in shares])
            for start in range(0, QUEUED, 5000):
                vectors = random.normal(size=(5000, manifest.dim)).astype("<f4")
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                rows = [
                    {
                        "observation_id": start + place + 1,
                        "sha256": name,
                        "media_type": "image/jpeg",
                        "width": 10,
                        "height": 10,
                        "model": manifest.sha256,
                        "embedding": vector.tobytes(),
                        "adopted": False,
                    }
                    for place, vector in enumerate(vectors)
                ]
                session.execute(insert(ObservationImage), rows)


def _observation(collection: int, shares: np.ndarray, model: str) -> dict[str, object]:
    predictions = [{"taxon": place + 1, "score": float(share), "evidence": []} for place, share in enumerate(shares)]
    return {
        "collection_id": collection,
        "status": "needs_review",
        "identification": {"predictions": predictions, "rejected": False, "reason": None, "model": model},
        "doubt": 1 - float(shares.max()),
        "sampled": bool(shares[0] < 0.01),
        "place": "",
        "observer": "",
        "notes": "",
        "submitter": "",
        "created": now(),
    }


def wait() -> None:
    """Until the service answers."""
    with Client(f"http://127.0.0.1:{PORT}") as client:
        for _ in range(240):
            try:
                client.ready()
            except ServiceUnreachable:
                time.sleep(0.5)
            else:
                return
    raise SystemExit("the service did not start")


def measured(people: int) -> str:
    """One row of the table."""
    taken: dict[str, list[float]] = {"next": [], "vote": []}

    def review(who: str) -> None:
        with Client(f"http://127.0.0.1:{PORT}", reviewer=who) as client:
            for _ in range(ASKED):
                started = time.perf_counter()
                found = client.next_observation("c")
                asked = time.perf_counter()
                assert found is not None
                client.vote(found.observation.id, "cannot_tell")
                taken["next"].append(asked - started)
                taken["vote"].append(time.perf_counter() - asked)

    threads = [threading.Thread(target=review, args=(f"{people} {number}",)) for number in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cells = [
        f"{1000 * value:.0f}"
        for times in taken.values()
        for value in (statistics.median(times), statistics.quantiles(times, n=20)[-1])
    ]
    return f"| {people} | {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
