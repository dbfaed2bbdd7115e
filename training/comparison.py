"""Figures of several models side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHOWN = ("/r@1", "/1-nn")  # of all metrics, those that a comparison is about
PLACES = 4


@dataclass(frozen=True)
class Comparison:
    """A table: a model a row, a metric a column."""

    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def compare(models: Mapping[str, Sequence[Mapping[str, float]]]) -> Comparison:
    """One row a model, given its metrics from one or several seeds: the mean, and ± the standard deviation."""
    names = {name for runs in models.values() for run in runs for name in run if name.endswith(SHOWN)}
    # Unseen classes first, as they are what a metric is learned for.
    metrics = sorted(names, key=lambda name: (SHOWN.index("/" + name.rpartition("/")[2]), name))
    rows = [[model, *(_cell([run.get(name) for run in runs]) for name in metrics)] for model, runs in models.items()]
    return Comparison(["model", *metrics], rows)


def _cell(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = sum(known) / len(known)
    if len(known) == 1:
        return f"{mean:.{PLACES}f}"
    deviation = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5
    return f"{mean:.{PLACES}f} ± {deviation:.{PLACES}f}"
