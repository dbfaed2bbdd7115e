"""How a training went, as a picture."""

import json
from pathlib import Path


def draw_curves(log: Path, out: Path) -> None:
    """Draw what `log.jsonl` holds: the loss, and the validation figures, over the steps."""
    from matplotlib.figure import Figure

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [line["step"] for line in lines]
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(steps, [line["mean loss"] for line in lines], marker="o", color="#24572f")
    left.set(title="loss", xlabel="step")
    for name in sorted(name for name in lines[0] if "/" in name):
        right.plot(steps, [line[name] for line in lines], marker="o", label=name)
    right.set(title="validation", xlabel="step")
    right.legend(fontsize="small")
    figure.savefig(out)
