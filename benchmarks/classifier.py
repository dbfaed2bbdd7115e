"""Trains classifiers in all seven ways of the thesis, on good data and on hard ones. Writes classifier.md.

python benchmarks/classifier.py ../shared/data/plants

It takes hours. What is measured is kept in classifier.json and not measured again.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from export.evaluate_classifier import ClassifierFigures, evaluate_classifier
from export.reliability_diagram import draw_reliability
from training.classifier_methods import METHODS
from training.config import read_config
from training.data.hard_settings import HardSetting
from training.models.classifier import load_classifier
from training.train_classifier import ClassifierTraining, train_classifier

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/classifier/table"
RESULTS = ROOT / "benchmarks/classifier.json"
CONFIG = ROOT / "training/configs/classifier_table.toml"
FULL = "all pictures"
TABLES: dict[str, dict[str, HardSetting]] = {
    "Full": {FULL: HardSetting()},
    "Few pictures of each class": {f"{count} a class": HardSetting(few=count) for count in (4, 8, 16)},
    "Imbalance: half of the classes keep this share": {
        f"imbalance {share}": HardSetting(imbalance=share) for share in (0.05, 0.1, 0.5)
    },
    "Noise: this share of the labels is shuffled": {
        f"noise {share}": HardSetting(noise=share) for share in (0.2, 0.3, 0.5)
    },
}
RATES = {"spce": 3e-4}  # with that of the others its features die
SEEDS = {"ce": 3, "esupcon": 3}  # of the others one
# Methods whose backbone is that of another, trained once.
SHARED = {"supcon_ce": "supcon_tt", "supcon_ce_n": "supcon_tt", "spce_m": "spce"}
ORDER = ("ce", "esupcon", "supcon_tt", "supcon_ce", "supcon_ce_n", "spce", "spce_m")  # of training
Results = dict[str, dict[str, Any]]
DRAWN = {"CE": "ce", "ESupCon": "esupcon"}  # in the reliability diagram


def main() -> None:
    """Measure what is missing, write the tables."""
    if len(sys.argv) > 1:
        for name, config in wanted():
            measure(name, config, [Path(each).resolve() for each in sys.argv[1:]])
    results = read_results()
    if all(name_of(method, FULL, 0) in results for method in DRAWN.values()):
        drawn = {title: ClassifierFigures(**results[name_of(method, FULL, 0)]) for title, method in DRAWN.items()}
        draw_reliability(drawn, Path(__file__).with_name("classifier_reliability.png"))
    Path(__file__).with_suffix(".md").write_text(report(results))


def wanted() -> Iterator[tuple[str, ClassifierTraining]]:
    """Every run, the full setting first, and one seed of each before any has two."""
    for seed in range(max(SEEDS.values())):
        for table, settings in TABLES.items():
            for label, setting in settings.items():
                for method in ORDER:
                    if seed >= SEEDS.get(method, 1) or (method == "spce_m" and table != "Full"):
                        continue
                    rate = RATES.get(method, common().rate)
                    config = replace(common(), method=method, setting=setting, seed=seed, rate=rate)
                    if method in SHARED:
                        start = RUNS / name_of(SHARED[method], label, seed) / "best.pt"
                        config = replace(config, start=str(start), epochs=0.0)
                    yield name_of(method, label, seed), config


def name_of(method: str, setting: str, seed: int) -> str:
    """The name of a run, and of its result."""
    return f"{method}/{setting}/{seed}"


def measure(name: str, config: ClassifierTraining, data: list[Path]) -> None:
    """Train and evaluate, unless it was done; the result is kept at once."""
    results = read_results()
    if name in results:
        return
    print(name, flush=True)
    if config.epochs == 0 and not Path(config.start).exists():  # its result is kept, but its weights are gone
        shared = str(Path(config.start).parent.relative_to(RUNS))
        first = shared.partition("/")[0]
        rate = RATES.get(first, common().rate)
        train(shared, replace(config, method=first, start="imagenet", epochs=common().epochs, rate=rate), data)
    best = train(name, config, data)
    model = load_classifier(best)
    figures = evaluate_classifier(model, data, config.test_size, sources=config.sources, strangers=False).keep(best)
    kept = asdict(figures)
    if name not in (name_of(method, FULL, 0) for method in DRAWN.values()):
        kept = {"metrics": kept["metrics"]}
    keep(read_results() | {name: kept})  # another process may have measured others meanwhile


def keep(results: Results) -> None:
    """A line a run."""
    lines = (f"{json.dumps(name)}: {json.dumps(kept)}" for name, kept in results.items())
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def train(name: str, config: ClassifierTraining, data: list[Path]) -> str:
    """One run; returns its weights."""
    out = RUNS / name
    shutil.rmtree(out, ignore_errors=True)  # of a run that was stopped
    return str(train_classifier(config, data, out))


def common() -> ClassifierTraining:
    """What all runs share."""
    return read_config(ClassifierTraining, CONFIG)


def read_results() -> Results:
    """What was measured so far."""
    results: Results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def report(results: Results) -> str:
    """The thesis' four tables in form, and the calibration of all methods."""
    config = common()
    tables = "\n".join(f"## {title}\n\n{table(results, list(settings))}" for title, settings in TABLES.items())
    return f"""# Seven ways to learn a classifier

`python benchmarks/classifier.py`: accuracy in percent on the validation pictures of 64 kinds of flowers (4 each, 256 in
all: one picture is 0.4), weights after the last step. {config.shape.backbone} from ImageNet, {config.frozen_stages}
stages and the stem frozen, {config.kept_views} views of {config.size} pixels kept for each picture,
{config.epochs:g} epochs ({config.least_steps} steps at least) of {config.batch} pictures in two views, seed by seed the
same; rate {config.rate:g}, of 0.001, 0.003 and 0.01 the best both for CE and for ESupCon (all pictures, first seed);
the others were not tuned, and SPCE, whose features die at that rate, has {RATES["spce"]:g}: their rows say less. ± is
the standard deviation over three seeds where three were run; with every seed other pictures are left out or
mislabelled. In brackets the difference to CE, of the same seeds.

{tables}
## Over all hard settings

{summary(results)}
## Can the probabilities be believed?

Expected calibration error in the full setting, before and after scaling by a temperature that is fitted on the other
half of the validation pictures.

{calibration(results)}
![Reliability diagrams of CE and of ESupCon, before and after calibration](classifier_reliability.png)
"""


def table(results: Results, labels: list[str]) -> str:
    """A method a row, a setting a column."""
    lines = [f"| | {' | '.join(labels)} |\n|{'---|' * (len(labels) + 1)}\n"]
    for method, known in METHODS.items():
        cells = [cell(results, method, label) for label in labels]
        if any(cells):
            lines.append(f"| {known.title} | {' | '.join(each or '–' for each in cells)} |\n")
    return "".join(lines)


def accuracies(results: Results, method: str, label: str) -> list[float]:
    """In percent, seed by seed, as far as they were measured."""
    names = (name_of(method, label, seed) for seed in range(SEEDS.get(method, 1)))
    return [100 * results[name]["metrics"]["val/accuracy"] for name in names if name in results]


def cell(results: Results, method: str, label: str) -> str:
    """Mean, deviation, and difference to CE."""
    own, control = accuracies(results, method, label), accuracies(results, "ce", label)
    if not own:
        return ""
    shown = f"{mean(own):.1f}" + (f" ± {stdev(own):.1f}" if len(own) > 1 else "")
    return shown if method == "ce" else f"{shown} ({mean(own) - mean(control[: len(own)]):+.1f})"


def summary(results: Results) -> str:
    """The mean difference to CE over the nine hard settings."""
    labels = [label for title, settings in TABLES.items() if title != "Full" for label in settings]
    lines = ["| | mean accuracy | difference to CE | better than CE in |\n|---|---|---|---|\n"]
    for method, known in METHODS.items():
        own = [accuracies(results, method, label) for label in labels]
        if not all(own):
            continue
        control = [accuracies(results, "ce", label)[: len(each)] for label, each in zip(labels, own, strict=True)]
        differences = [mean(one) - mean(other) for one, other in zip(own, control, strict=True)]
        better = sum(difference > 0 for difference in differences)
        lines.append(
            f"| {known.title} | {mean([mean(each) for each in own]):.1f} | {mean(differences):+.1f} "
            f"| {better} of {len(labels)} |\n"
        )
    return "".join(lines)


def calibration(results: Results) -> str:
    """ECE of every method, first seed."""
    lines = ["| | before | after |\n|---|---|---|\n"]
    for method, known in METHODS.items():
        found = results.get(name_of(method, FULL, 0), {}).get("metrics")
        if found:
            lines.append(f"| {known.title} | {found['val/ece before calibration']:.3f} | {found['val/ece']:.3f} |\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
