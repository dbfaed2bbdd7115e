"""Trains the embedder with one loss after another, and at several batch sizes. Writes embedder.md and batch_size.png.

python benchmarks/embedder.py ../shared/data/plants ../shared/data/retrieval      # hours; goes on where it was stopped
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from training.comparison import Comparison, compare
from training.evaluate import EmbedderFigures

ROOT = Path(__file__).parents[1]
RUNS = Path("runs/embedder")
CONFIG = "training/configs/embedder.toml"
NAMES = {
    "cross_entropy": "cross-entropy",
    "smooth_ap": "Smooth-AP",
    "recall_at_k": "RS@k",
    "recall_at_k_mixed": "RS@k + SiMix",
}
# Cross-entropy embeds a batch once, the others twice: in the same time it sees more pictures.
EPOCHS = {"cross_entropy": 4.6, "smooth_ap": 4, "recall_at_k": 4, "recall_at_k_mixed": 4}
SEEDS = {"cross_entropy": 3, "smooth_ap": 1, "recall_at_k": 3, "recall_at_k_mixed": 3}
BATCHES = (16, 32, 64, 128, 256, 512)
BATCH_LOSSES = ("smooth_ap", "recall_at_k", "recall_at_k_mixed")
SMALL = {"size": 112, "test_size": 160}


def main() -> None:
    """Train what is missing, evaluate all, write the tables."""
    data = [part for folder in sys.argv[1:] for part in ("--data", folder)]
    if not data:
        sys.exit(__doc__)
    arms = {
        f"{loss}-{seed}": {"loss": loss, "epochs": EPOCHS[loss], "seed": seed}
        for loss in NAMES
        for seed in range(SEEDS[loss])
    }
    for name, settings in arms.items():
        train(RUNS / name, data, settings)
    missing = [
        name for name in ("imagenet", *(str(RUNS / arm / "best.pt") for arm in arms)) if not figures_file(name).exists()
    ]
    if missing:
        readleaf("evaluate", "embedder", *data, *(part for name in missing for part in ("--weights", name)))
    start = RUNS / "batch/start"  # one start for all: whitened ImageNet features, moved by nothing
    train(start, data, {"loss": "recall_at_k", "epochs": 0.01, "rate": 1e-12, **SMALL})
    for batch in BATCHES:
        for loss in BATCH_LOSSES:
            rate = float(f"{3e-4 * (batch / 384) ** 0.5:.3g}")
            settings = {"loss": loss, "epochs": 1, "batch": batch, "rate": rate, "start": start / "best.pt", **SMALL}
            train(RUNS / f"batch/{loss}-{batch}", data, settings)
    write_table()
    draw_batches()


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


def figures_file(weights: str) -> Path:
    """Where `readleaf evaluate` puts the figures."""
    return Path("runs/imagenet/metrics.json") if weights == "imagenet" else Path(weights).with_name("metrics.json")


def write_table() -> Comparison:
    """embedder.md: one row a loss, the mean over its seeds."""
    rows = {"ImageNet features, average pooled, no training": [EmbedderFigures.read(figures_file("imagenet"))]}
    minutes = {}
    for loss, name in NAMES.items():
        folders = [RUNS / f"{loss}-{seed}" for seed in range(SEEDS[loss])]
        seeds = f"{len(folders)} seeds" if len(folders) > 1 else "1 seed"
        rows[f"{name}, {seeds}"] = [EmbedderFigures.read(folder / "metrics.json") for folder in folders]
        minutes[name] = sum(log(folder)[-1]["core minutes"] for folder in folders) / len(folders)
    comparison = compare(rows)
    spent = ", ".join(f"{name} {value:.0f}" for name, value in minutes.items())
    (ROOT / "benchmarks/embedder.md").write_text(f"""# The embedder, by loss

`python benchmarks/embedder.py`: the same start, data, batches of 384, pictures of 160 px and budget for all; figures by
`readleaf evaluate embedder` at 224 px, mean ± standard deviation over seeds. Core minutes of training: {spent}.

{comparison.markdown()}
## r@1 on unseen classes against the batch size

One epoch each at 112 px from one start, one seed, rate 3e-4 × √(batch / 384): the same pictures seen, fewer and larger
steps to the right. A batch comes from one source; where it has too few classes for 4 pictures of each, more of each
are taken (flowers and plant leaves above 256 and 108).

![r@1 against the batch size for three losses](batch_size.png)

{batch_table()}""")
    return comparison


def batch_table() -> str:
    """The plot's figures."""
    header = ["batch", *(NAMES[loss] for loss in BATCH_LOSSES)]
    rows = [[str(batch), *(f"{last_recall(loss, batch):.4f}" for loss in BATCH_LOSSES)] for batch in BATCHES]
    return Comparison(header, rows).markdown()


def draw_batches() -> None:
    """batch_size.png."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for loss, colour in zip(BATCH_LOSSES, ("#a8a29e", "#5fa56b", "#24572f"), strict=True):
        axes.plot(BATCHES, [last_recall(loss, batch) for batch in BATCHES], marker="o", color=colour, label=NAMES[loss])
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
