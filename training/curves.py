"""How a training went, as a picture."""

import json
from pathlib import Path


def draw_curves(log: Path, out: Path) -> None:
    """Draw what `log.jsonl` holds: the loss, and the validation figures, over the steps."""
    from matplotlib.figure import Figure

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    learned = [line for line in lines if line.get("mean loss")]  # before the first step there is none
    left.plot([line["step"] for line in learned], [line["mean loss"] for line in learned], marker="o", color="#24572f")
    left.set(title="loss", xlabel="step")
    figures = sorted(name for name in lines[-1] if "/" in name)
    distances = [name for name in figures if name.endswith("/ted")]  # of readings; shares would lie flat beside them
    for name in distances or figures:
        measured = [line for line in lines if name in line]
        right.plot([line["step"] for line in measured], [line[name] for line in measured], marker="o", label=name)
    right.set(title="validation", xlabel="step")
    if figures:
        right.legend(fontsize="small")
    figure.savefig(out)
