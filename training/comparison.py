"""Figures of several models side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Of all metrics, those that a comparison is about, and how many places each is shown with.
NEIGHBOURS = {"r@1": 4, "1-nn": 4}
READINGS = {"accuracy": 4, "ned": 4, "ted": 0}


@dataclass(frozen=True)
class Comparison:
    """A table: a model a row, a metric a column."""

    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def compare(models: Mapping[str, Sequence[Mapping[str, float]]], shown: Mapping[str, int] = NEIGHBOURS) -> Comparison:
    """One row a model, given its metrics from one or several seeds: the mean, and ± the standard deviation."""
    kinds = list(shown)
    names = {name for runs in models.values() for run in runs for name in run if _kind(name) in kinds}
    # Unseen classes first, as they are what a metric is learned for.
    metrics = sorted(names, key=lambda name: (kinds.index(_kind(name)), name))
    rows = [
        [model, *(_cell([run.get(name) for run in runs], shown[_kind(name)]) for name in metrics)]
        for model, runs in models.items()
    ]
    return Comparison(["model", *metrics], rows)


def _kind(name: str) -> str:
    return name.rpartition("/")[2]


def _cell(values: Sequence[float | None], places: int) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = sum(known) / len(known)
    if len(known) == 1:
        return f"{mean:.{places}f}"
    places = max(places, 1)
    deviation = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5
    return f"{mean:.{places}f} ± {deviation:.{places}f}"
