"""Trains the embedder with one loss after another, and at several batch sizes. Writes embedder.md and batch_size.png.

python benchmarks/embedder.py ../shared/data/plants ../shared/data/retrieval

It takes hours. What is measured is kept in embedder.json and not measured again; a training that was stopped goes on.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from training.comparison import Comparison, compare
from training.evaluate_embedder import EmbedderFigures
from training.figures import metrics_file

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/embedder"
RESULTS = ROOT / "benchmarks/embedder.json"
CONFIG = "training/configs/embedder.toml"
SHIPPED = {"loss": "recall_at_k_mixed", "epochs": 2, "rate": 1.5e-4, "start": RUNS / "cross_entropy-0/best.pt"}


@dataclass(frozen=True)
class Arm:
    """A loss, for how long and how often."""

    title: str
    epochs: float
    seeds: int


ARMS = {
    "cross_entropy": Arm("cross-entropy", 4.6, 3),  # embeds a batch once, the others twice: sees more in the same time
    "smooth_ap": Arm("Smooth-AP", 4, 1),
    "recall_at_k": Arm("RS@k", 4, 1),
    "recall_at_k_mixed": Arm("RS@k + SiMix", 4, 3),
}
BATCHES = (16, 64, 256, 512)
BATCH_LOSSES = ("smooth_ap", "recall_at_k", "recall_at_k_mixed")
SMALL = {"size": 112, "test_size": 160}


def main() -> None:
    """Measure what is missing, write the tables."""
    if len(sys.argv) > 1:
        measure([part for folder in sys.argv[1:] for part in ("--data", str(Path(folder).resolve()))])
    write_tables()
    draw_batches()


def measure(data: Sequence[str]) -> None:
    """Train and evaluate, one after the other; each result is kept at once."""
    keep("imagenet", lambda: evaluated("imagenet", data))
    for loss, arm in ARMS.items():
        for seed in range(arm.seeds):
            name = f"{loss}-{seed}"
            settings = {"loss": loss, "epochs": arm.epochs, "seed": seed}
            keep(name, lambda name=name, settings=settings: trained(name, data, settings, evaluate=True))
    keep("shipped", lambda: trained("shipped", data, SHIPPED, evaluate=True))
    # One start for all batch sizes: whitened ImageNet features, moved by nothing.
    start = {"loss": "recall_at_k", "epochs": 0.01, "rate": 1e-12, **SMALL}
    keep("batch/start", lambda: trained("batch/start", data, start))
    for batch in BATCHES:
        for loss in BATCH_LOSSES:
            if not (RUNS / "batch/start/best.pt").exists():  # measured elsewhere
                trained("batch/start", data, start)
            name, rate = f"batch/{loss}-{batch}", float(f"{3e-4 * (batch / 384) ** 0.5:.3g}")
            settings = {"loss": loss, "epochs": 1, "batch": batch, "rate": rate, **SMALL}
            settings["start"] = RUNS / "batch/start/best.pt"
            keep(name, lambda name=name, settings=settings: trained(name, data, settings))


def keep(name: str, measured: Any) -> None:
    """Add a result to embedder.json, unless it is there."""
    results = read_results()
    if name not in results:
        results[name] = measured()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def read_results() -> dict[str, Any]:
    """What was measured so far."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def trained(name: str, data: Sequence[str], settings: dict[str, Any], *, evaluate: bool = False) -> dict[str, Any]:
    """One training: its minutes, its last r@1, and on request the figures of its best weights."""
    out = RUNS / name
    resume = ["--resume"] if (out / "config.json").exists() else []
    changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    readleaf("train", "embedder", CONFIG, *data, "--out", str(out), *resume, *changes)
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    result = {"core minutes": last["core minutes"], "last r@1": last["r@1"]}
    return result | (evaluated(str(out / "best.pt"), data) if evaluate else {})


def evaluated(weights: str, data: Sequence[str]) -> dict[str, Any]:
    """The figures of a checkpoint."""
    readleaf("evaluate", "embedder", *data, "--weights", weights)
    return {"metrics": EmbedderFigures.read(ROOT / metrics_file(weights)).metrics}


def readleaf(*words: str) -> None:
    """The command, as a user would type it."""
    subprocess.run([sys.executable, "-m", "readleaf", *words], cwd=ROOT, check=True)


def write_tables() -> None:
    """embedder.md, and its first table alone for the model's card."""
    results = read_results()
    rows = {"ImageNet features, average pooled, no training": [results["imagenet"]["metrics"]]}
    minutes = {}
    for loss, arm in ARMS.items():
        known = [results[f"{loss}-{seed}"] for seed in range(arm.seeds) if f"{loss}-{seed}" in results]
        rows[f"{arm.title}, {len(known)} seed{'s' if len(known) > 1 else ''}"] = [each["metrics"] for each in known]
        minutes[arm.title] = sum(each["core minutes"] for each in known) / len(known)
    rows["shipped: cross-entropy, then RS@k + SiMix, 1 seed"] = [results["shipped"]["metrics"]]
    minutes["shipped"] = sum(results[name]["core minutes"] for name in ("cross_entropy-0", "shipped"))
    table = compare(rows).markdown()
    RUNS.mkdir(parents=True, exist_ok=True)
    (RUNS / "table.md").write_text(table)
    spent = ", ".join(f"{name} {value:.0f}" for name, value in minutes.items())
    Path(__file__).with_suffix(".md").write_text(f"""# The embedder, by loss

`python benchmarks/embedder.py`: the same start, data, batches of 384, pictures of 160 px and budget for all but the
shipped one; figures by `readleaf evaluate embedder` at 224 px, mean ± standard deviation over seeds.
Core minutes of training: {spent}.

{table}
## r@1 on unseen classes against the batch size

One epoch each at 112 px from one start, one seed, rate 3e-4 × √(batch / 384): the same pictures seen, fewer and larger
steps to the right. A batch comes from one source; where it has too few classes for 4 pictures of each, more of each
are taken (from 256 up).

![r@1 against the batch size for three losses](batch_size.png)

{batch_table(results)}""")


def batch_table(results: dict[str, Any]) -> str:
    """The plot's figures."""
    header = ["batch", *(ARMS[loss].title for loss in BATCH_LOSSES)]
    rows = [[str(batch), *(f"{value:.4f}" for value in recalls(results, batch))] for batch in measured_batches(results)]
    return Comparison(header, rows).markdown()


def draw_batches() -> None:
    """batch_size.png."""
    results = read_results()
    batches = measured_batches(results)
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for place, (loss, colour) in enumerate(zip(BATCH_LOSSES, ("#a8a29e", "#5fa56b", "#24572f"), strict=True)):
        values = [recalls(results, batch)[place] for batch in batches]
        axes.plot(batches, values, marker="o", color=colour, label=ARMS[loss].title)
    axes.axhline(results["batch/start"]["last r@1"], linestyle=":", color="gray", label="the start")
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.set(xlabel="batch", ylabel="r@1, mean of flowers and birds")
    axes.legend()
    figure.savefig(Path(__file__).with_name("batch_size.png"), dpi=110)


def measured_batches(results: dict[str, Any]) -> list[int]:
    """Batch sizes for which every loss has been measured."""
    return [batch for batch in BATCHES if all(f"batch/{loss}-{batch}" in results for loss in BATCH_LOSSES)]


def recalls(results: dict[str, Any], batch: int) -> list[float]:
    """r@1 after the last step, not the best on the way, for each loss."""
    return [results[f"batch/{loss}-{batch}"]["last r@1"] for loss in BATCH_LOSSES]


if __name__ == "__main__":
    main()
