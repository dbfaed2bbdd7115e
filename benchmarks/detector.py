"""Tunes the detector in all ways of the thesis from one start. Writes detector.md.

python benchmarks/detector.py ../shared/data/text_detection runs/detector/dense/best.pt

It takes an hour. What is measured is kept in detector.json and not measured again.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training.models.detectors import load_detector

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/detector/arms"
RESULTS = ROOT / "benchmarks/detector.json"
CONFIG = "training/configs/detector_tuning.toml"
# title: settings, and how many seeds
ARMS: dict[str, tuple[dict[str, Any], int]] = {
    "smooth-L1, continued (control)": ({"loss": "proxy"}, 2),
    "KFIoU (hand-made)": ({"loss": "kfiou"}, 1),
    "LS-IoU, global": ({"loss": "ls_iou", "pairs": "global"}, 1),
    "LS-IoU, local": ({"loss": "ls_iou", "pairs": "local"}, 1),
    "LS-IoU, local-global": ({"loss": "ls_iou", "pairs": "local_global"}, 2),
}
KINDS = ("recall", "precision", "f1")
DECILES = [f"{tenth / 10:.1f}" for tenth in range(10)]


def main() -> None:
    """Measure what is missing, write the table."""
    if len(sys.argv) > 2:
        measure(
            Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), [Path(each).resolve() for each in sys.argv[3:]]
        )
        for name in ("learning", "band_start", "band_end"):
            shutil.copy(RUNS / f"ls_iou-local_global-0/{name}.png", Path(__file__).parent / f"detector_{name}.png")
    Path(__file__).with_suffix(".md").write_text(report(read_results()))


def measure(data: Path, start: Path, grounds: list[Path]) -> None:
    """Tune and evaluate, one after the other; each result is kept at once."""
    keep("start", lambda: {"metrics": evaluated(start, data)})
    keep("start learned by", lambda: {"losses": list(load_detector(str(start)).provenance.losses)})
    for seed in range(max(seeds for _, seeds in ARMS.values())):  # every arm once before any of them twice
        for title, (settings, seeds) in ARMS.items():
            if seed < seeds:
                out = RUNS / f"{'-'.join(map(str, settings.values()))}-{seed}"
                changes = {**settings, "start": start, "seed": seed, "validate_start": "false"}
                keep(f"{title}/{seed}", lambda out=out, changes=changes: tuned(out, changes, data, grounds))


def keep(name: str, measured: Callable[[], dict[str, Any]]) -> None:
    """Add a result to detector.json, unless it is there."""
    results = read_results()
    if name not in results:
        results[name] = measured()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def read_results() -> dict[str, Any]:
    """What was measured so far."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def tuned(out: Path, changes: dict[str, Any], data: Path, grounds: list[Path]) -> dict[str, Any]:
    """One tuning: the figures of its weights, and how far its surrogate is from 1 − IoU."""
    quality = out / "quality_end.json"
    if not (out / "best.pt").exists():
        words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
        words += [word for folder in grounds for word in ("--grounds", str(folder))]
        shutil.rmtree(out, ignore_errors=True)  # of a run that was stopped
        readleaf("train", "tune-detector", CONFIG, "--data", str(data), "--out", str(out), *words)
    known = json.loads(quality.read_text()) if quality.exists() else None
    return {"metrics": evaluated(out / "best.pt", data), "quality": known}


def evaluated(weights: Path, data: Path) -> dict[str, float]:
    """The figures of a checkpoint, the detector alone."""
    readleaf("evaluate", "detector", "--alone", "--data", str(data), "--weights", str(weights))
    metrics: dict[str, float] = json.loads((weights.parent / "metrics.json").read_text())["metrics"]
    return metrics


def readleaf(*words: str) -> None:
    """The command, as a user would type it."""
    subprocess.run([sys.executable, "-m", "readleaf", *words], cwd=ROOT, check=True)


def report(results: dict[str, Any]) -> str:
    """The thesis' table in form, and the surrogates' errors."""
    losses = results.get("start learned by", {}).get("losses")
    learned = f"\nThe start was trained with {', then '.join(losses)}." if losses else ""
    lines = ["| | recall | precision | F1 | F1 against the control |\n|---|---|---|---|---|\n"]
    if "start" in results:
        lines.append(row("the start", [results["start"]["metrics"]], None))
    control = None
    for arm, (_, seeds) in ARMS.items():
        runs = [results[name]["metrics"] for seed in range(seeds) if (name := f"{arm}/{seed}") in results]
        if runs:
            control = control or runs
            lines.append(row(f"{arm}, {len(runs)} seed{'s' if len(runs) > 1 else ''}", runs, control))
    return f"""# The detector, tuned on rotated IoU

`python benchmarks/detector.py`: words found in validation photographs by the ICDAR'15 protocol, the detector alone,
weights after the last step, thresholds of each arm at its best F1.{learned}
All arms tune the same layers (what joins the backbone's stages, and the head) for the same number of steps on the same
views; the score's loss is the same in all.

{"".join(lines)}
How far each surrogate is from 1 − IoU on the model's own boxes at the end, |ê − e| by e:

{errors(results)}
The surrogate's error while it learns before the first round (local-global), and ê against e before and after all
rounds:

![Error over steps](detector_learning.png) ![ê over e, before](detector_band_start.png)
![ê over e, after](detector_band_end.png)
"""


def row(title: str, runs: list[dict[str, float]], control: list[dict[str, float]] | None) -> str:
    """One arm, mean and deviation over seeds."""
    cells = [spread([run[f"detection/{kind}"] for run in runs]) for kind in KINDS]
    change = "–"
    if control is not None:
        own, theirs = (sum(run["detection/f1"] for run in part) / len(part) for part in (runs, control))
        change = f"{100 * (own - theirs) / theirs:+.2f} %"
    return f"| {title} | {' | '.join(cells)} | {change} |\n"


def spread(values: list[float]) -> str:
    """The mean, and ± the standard deviation where there are several."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.4f}"
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.4f} ± {deviation:.4f}"


def errors(results: dict[str, Any]) -> str:
    """One row an arm that has a surrogate."""
    lines = [f"| e from | {' | '.join(DECILES)} | unweighted mean |\n|{'---|' * (len(DECILES) + 2)}\n"]
    for arm in ARMS:
        quality = results.get(f"{arm}/0", {}).get("quality")
        if quality:
            values = [*quality["by overlap"], quality["mean"]]
            lines.append(f"| {arm} | {' | '.join(f'{value:.3f}' for value in values)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
