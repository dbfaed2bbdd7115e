"""`metrics.json`: the figures of a checkpoint, kept beside it, and refused for any other."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from training.errors import DataError

PUBLISHED = ("imagenet", "published")  # weights that are not a file of ours


@dataclass(frozen=True)
class Figures:
    """What every `metrics.json` holds; a model's own kind of figures adds to it."""

    metrics: dict[str, float]
    weights: str = ""  # sha256 of the checkpoint they belong to

    def keep(self, weights: str) -> Self:
        """Write them beside the checkpoint they were measured with."""
        figures = replace(self, weights=sha256_of(weights))
        figures.write(metrics_file(weights))
        return figures

    def write(self, file: Path) -> None:
        """Write them as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def of(cls, weights: str) -> Self:
        """The figures beside a checkpoint; refuses those of another."""
        file = metrics_file(weights)
        figures = cls.read(file)
        if figures.weights != sha256_of(weights):
            raise DataError(f"{file} holds the figures of other weights; run `readleaf evaluate` on {weights}")
        return figures

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what `write` wrote."""
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{file} holds no figures ({error}); `readleaf evaluate` writes them") from error


def metrics_file(weights: str) -> Path:
    """Where the figures of a checkpoint (or of published weights) are kept: beside it."""
    return (Path("runs") / weights if weights in PUBLISHED else Path(weights).parent) / "metrics.json"


def sha256_of(weights: str) -> str:
    """What tells a checkpoint from another; published weights are themselves."""
    if weights in PUBLISHED:
        return weights
    with Path(weights).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
