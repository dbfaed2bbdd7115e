"""Tunes the recogniser in all ways of the thesis from one start, with and without TPS. Writes recognizer.md.

python benchmarks/recognizer.py ../shared/data/text_recognition

It takes an hour or two. What is measured is kept in recognizer.json and not measured again.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/recognizer"
RESULTS = ROOT / "benchmarks/recognizer.json"
CONFIG = "training/configs/recognizer_tuning.toml"
STARTS = {"text + CTC": "mixed", "TPS + text + CTC": "tps"}
SHIPPED = "mixed"  # is measured with several seeds; of the other start, only the main arms, once
# title: settings, and how many seeds; the main arms have three
ARMS: dict[str, tuple[dict[str, Any], int]] = {
    "the proxy, continued (control)": ({"loss": "proxy"}, 3),
    "LS-ED, global": ({"loss": "ls_ed", "pairs": "global"}, 1),
    "LS-ED, local": ({"loss": "ls_ed", "pairs": "local"}, 1),
    "LS-ED, local-global": ({"loss": "ls_ed", "pairs": "local_global"}, 3),
    "FEDS, towards 0": ({"loss": "feds", "target": "zero"}, 3),
    "FEDS, towards e": ({"loss": "feds", "target": "metric"}, 1),
    "FEDS beside the proxy": ({"loss": "feds", "target": "zero", "proxy_weight": 1.0}, 3),
}
SETS = ("icdar15", "iiit5k", "wordart", "all")


def main() -> None:
    """Measure what is missing, write the tables."""
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]).resolve())
        for when in ("early", "late"):
            shutil.copy(RUNS / SHIPPED / f"arms/feds-zero-0/band_{when}.png", Path(__file__).parent)
    Path(__file__).with_suffix(".md").write_text(tables(read_results()))


def measure(data: Path) -> None:
    """Tune and evaluate, one after the other; each result is kept at once."""
    for start in STARTS.values():
        weights = RUNS / start / "best.pt"
        keep(start, lambda weights=weights: evaluated(weights, data))
        for title, (settings, seeds) in ARMS.items():
            for seed in range(seeds if start == SHIPPED else seeds // 3):
                name = f"{start}/{title}/{seed}"
                out = RUNS / start / "arms" / f"{'-'.join(map(str, settings.values()))}-{seed}"
                changes = {**settings, "start": weights, "seed": seed}
                keep(name, lambda out=out, changes=changes: tuned(out, changes, data))


def keep(name: str, measured: Callable[[], dict[str, Any]]) -> None:
    """Add a result to recognizer.json, unless it is there."""
    results = read_results()
    if name not in results:
        results[name] = measured()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def read_results() -> dict[str, Any]:
    """What was measured so far."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def tuned(out: Path, changes: dict[str, Any], data: Path) -> dict[str, Any]:
    """One tuning: its figures, and how far its surrogate is from edit distance."""
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    readleaf("train", "tune-recognizer", CONFIG, "--data", str(data), "--out", str(out), *words)
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    quality = out / "quality_end.json"
    return {"metrics": last, "quality": json.loads(quality.read_text()) if quality.exists() else None}


def evaluated(weights: Path, data: Path) -> dict[str, Any]:
    """The figures of a checkpoint."""
    readleaf("evaluate", "recognizer", "--data", str(data), "--weights", str(weights))
    return {"metrics": json.loads((weights.parent / "metrics.json").read_text())["metrics"]}


def readleaf(*words: str) -> None:
    """The command, as a user would type it."""
    subprocess.run([sys.executable, "-m", "readleaf", *words], cwd=ROOT, check=True)


def tables(results: dict[str, Any]) -> str:
    """One table a start: accuracy, NED and TED of each set, and the change against the control."""
    parts = [
        "# The recogniser, tuned on edit distance\n\n"
        "`python benchmarks/recognizer.py`: accuracy, NED and TED on [0-9a-z], validation crops, letter by letter (no\n"
        "language), weights after the last step. All arms of one seed see the same views.\n\n"
    ]
    for title, start in STARTS.items():
        if start not in results:
            continue
        parts.append(f"## {title}\n\n{header()}{row('the start', [results[start]['metrics']], None)}")
        control = None
        for arm, (_, seeds) in ARMS.items():
            known = [results[name] for seed in range(seeds) if (name := f"{start}/{arm}/{seed}") in results]
            if not known:
                continue
            figures = [each["metrics"] for each in known]
            control = control or figures
            parts.append(row(f"{arm}, {len(known)} seed{'s' if len(known) > 1 else ''}", figures, control))
        parts.append("\n" + errors(results, start))
    parts.append(
        "ê against e on the shipped configuration's own answers, FEDS, early and at the end of its learning:\n\n"
    )
    parts.append("![Scatter of ê over e, early](band_early.png) ![The same, late](band_late.png)\n")
    return "".join(parts)


def header() -> str:
    """The head of a table."""
    names = [f"{name} {kind}" for name in SETS for kind in ("acc", "NED", "TED")]
    return f"| | {' | '.join(names)} | TED against the control |\n|{'---|' * (len(names) + 2)}\n"


def row(title: str, runs: list[dict[str, float]], control: list[dict[str, float]] | None) -> str:
    """One arm, mean and deviation over seeds."""
    cells = [
        spread([run[f"{name}/{kind}"] for run in runs], places)
        for name in SETS
        for kind, places in (("accuracy", 4), ("ned", 4), ("ted", 0))
    ]
    change = "–"
    if control is not None:
        own, theirs = (sum(run["all/ted"] for run in part) / len(part) for part in (runs, control))
        change = f"{100 * (own - theirs) / theirs:+.1f} %"
    return f"| {title} | {' | '.join(cells)} | {change} |\n"


def spread(values: list[float], places: int) -> str:
    """The mean, and ± the standard deviation where there are several."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{places}f}"
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.{max(places, 1)}f} ± {deviation:.{max(places, 1)}f}"


def errors(results: dict[str, Any], start: str) -> str:
    """The surrogates' errors on the model's own answers to validation crops."""
    lines = [
        "| error of the surrogate at e = | 0 | 1 | 2 | 3 and more | unweighted mean |\n|---|---|---|---|---|---|\n"
    ]
    for arm in ARMS:
        quality = results.get(f"{start}/{arm}/0", {}).get("quality")
        if quality:
            values = [*quality["by distance"], quality["mean"]]
            lines.append(f"| {arm} | {' | '.join(f'{value:.3f}' for value in values)} |\n")
    return "".join(lines) + "\n"


if __name__ == "__main__":
    main()
