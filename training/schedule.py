"""How the learning rate goes over a training, and the bar that shows how far it is."""

import math

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


def warmed_cosine(rate: float, share: float, warmup: float) -> float:
    """The rate when this share of the steps is done: up in a line over `warmup`, down to nothing along a cosine."""
    if share < warmup:
        return rate * (share + 1e-3) / warmup
    return rate * (1 + math.cos(math.pi * (share - warmup) / (1 - warmup))) / 2


def training_bar() -> Progress:
    """A progress bar with a note beside it (a task's field `note`)."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn()
    )
