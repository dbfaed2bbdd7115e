"""Trains the embedder with one loss after another, and at several batch sizes. Writes embedder.md and batch_size.png.

python benchmarks/embedder.py ../shared/data/plants ../shared/data/retrieval      # hours; goes on where it was stopped
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from training.comparison import Comparison, compare
from training.evaluate import EmbedderFigures, metrics_file

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/embedder"
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
    """Train what is missing, evaluate all, write the tables."""
    data = [part for folder in sys.argv[1:] for part in ("--data", str(Path(folder).resolve()))]
    if not data:
        sys.exit(__doc__)
    runs = [RUNS / "shipped"]
    for loss, arm in ARMS.items():
        for seed in range(arm.seeds):
            runs.append(RUNS / f"{loss}-{seed}")
            train(runs[-1], data, {"loss": loss, "epochs": arm.epochs, "seed": seed})
    train(RUNS / "shipped", data, SHIPPED)
    weights = ["imagenet", *(str(run / "best.pt") for run in runs)]
    missing = [each for each in weights if not metrics_file(each).exists()]
    if missing:
        readleaf("evaluate", "embedder", *data, *(part for each in missing for part in ("--weights", each)))
    train_batches(data)
    write_tables()
    draw_batches()


def train_batches(data: Sequence[str]) -> None:
    """The small trainings of the second table."""
    start = RUNS / "batch/start"  # one start for all: whitened ImageNet features, moved by nothing
    train(start, data, {"loss": "recall_at_k", "epochs": 0.01, "rate": 1e-12, **SMALL})
    for batch in BATCHES:
        for loss in BATCH_LOSSES:
            rate = float(f"{3e-4 * (batch / 384) ** 0.5:.3g}")
            settings = {"loss": loss, "epochs": 1, "batch": batch, "rate": rate, "start": start / "best.pt", **SMALL}
            train(RUNS / f"batch/{loss}-{batch}", data, settings)


def train(out: Path, data: Sequence[str], settings: dict[str, object]) -> None:
    """One training, unless it is done already."""
    if (out / "done").exists():
        return
    resume = ["--resume"] if (out / "config.json").exists() else []
    changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    readleaf("train", "embedder", CONFIG, *data, "--out", str(out), *resume, *changes)
    (out / "done").touch()


def readleaf(*words: str) -> None:
    """The command, as a user would type it."""
    subprocess.run([sys.executable, "-m", "readleaf", *words], cwd=ROOT, check=True)


def write_tables() -> None:
    """embedder.md, and its first table alone for the model's card."""
    rows = {"ImageNet features, average pooled, no training": [EmbedderFigures.read(metrics_file("imagenet"))]}
    minutes = {}
    for loss, arm in ARMS.items():
        folders = [RUNS / f"{loss}-{seed}" for seed in range(arm.seeds)]
        seeds = f"{arm.seeds} seeds" if arm.seeds > 1 else "1 seed"
        rows[f"{arm.title}, {seeds}"] = [EmbedderFigures.read(folder / "metrics.json") for folder in folders]
        minutes[arm.title] = sum(log(folder)[-1]["core minutes"] for folder in folders) / len(folders)
    rows["shipped: cross-entropy, then RS@k + SiMix, 1 seed"] = [EmbedderFigures.read(RUNS / "shipped/metrics.json")]
    minutes["shipped"] = log(RUNS / "cross_entropy-0")[-1]["core minutes"] + log(RUNS / "shipped")[-1]["core minutes"]
    table = compare(rows).markdown()
    (RUNS / "table.md").write_text(table)
    spent = ", ".join(f"{name} {value:.0f}" for name, value in minutes.items())
    (ROOT / "benchmarks/embedder.md").write_text(f"""# The embedder, by loss

`python benchmarks/embedder.py`: the same start, data, batches of 384, pictures of 160 px and budget for all but the
shipped one; figures by `readleaf evaluate embedder` at 224 px, mean ± standard deviation over seeds.
Core minutes of training: {spent}.

{table}
## r@1 on unseen classes against the batch size

One epoch each at 112 px from one start, one seed, rate 3e-4 × √(batch / 384): the same pictures seen, fewer and larger
steps to the right. A batch comes from one source; where it has too few classes for 4 pictures of each, more of each
are taken (from 256 up).

![r@1 against the batch size for three losses](batch_size.png)

{batch_table()}""")


def batch_table() -> str:
    """The plot's figures."""
    header = ["batch", *(ARMS[loss].title for loss in BATCH_LOSSES)]
    rows = [[str(batch), *(f"{last_recall(loss, batch):.4f}" for loss in BATCH_LOSSES)] for batch in BATCHES]
    return Comparison(header, rows).markdown()


def draw_batches() -> None:
    """batch_size.png."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for loss, colour in zip(BATCH_LOSSES, ("#a8a29e", "#5fa56b", "#24572f"), strict=True):
        axes.plot(
            BATCHES, [last_recall(loss, batch) for batch in BATCHES], marker="o", color=colour, label=ARMS[loss].title
        )
    axes.axhline(log(RUNS / "batch/start")[-1]["r@1"], linestyle=":", color="gray", label="the start")
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
    axes.set(xlabel="batch", ylabel="r@1, mean of flowers and birds")
    axes.legend()
    figure.savefig(ROOT / "benchmarks/batch_size.png", dpi=110)


def last_recall(loss: str, batch: int) -> float:
    """r@1 after the last step, not the best on the way."""
    value: float = log(RUNS / f"batch/{loss}-{batch}")[-1]["r@1"]
    return value


def log(folder: Path) -> list[dict[str, float]]:
    """The validations of a training."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
