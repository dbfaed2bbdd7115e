"""The folder of one training: `runs/<name>/` with its config, checkpoints, log and figures.

config.json      what was asked for
checkpoint.pt    everything needed to go on after a stop; replaced whole, never half written
best.pt          the weights that did best on validation
log.jsonl        one line a validation
curves.png       the same, drawn
metrics.json     the figures of best.pt, once `readleaf evaluate` was there
tensorboard/     the same, and the loss, for TensorBoard
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter

from training.curves import draw_curves
from training.errors import DataError


class RunFolder:
    """Reads and writes one training's files."""

    def __init__(self, folder: Path, config: Any, *, resume: bool) -> None:
        self.folder = folder
        described = json.loads(json.dumps(asdict(config)))
        known = folder / "config.json"
        if known.exists() and not resume:
            raise DataError(f"{folder} holds a training already; add --resume to go on with it, or name another folder")
        if resume and not known.exists():
            raise DataError(f"{folder} holds no training to resume")
        if resume and json.loads(known.read_text()) != described:
            raise DataError(f"{folder} was begun with another config; resume with the same, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(described, indent=1) + "\n")
        self.board = SummaryWriter(str(folder / "tensorboard"))

    @property
    def best(self) -> Path:
        """Where the best weights go."""
        return self.folder / "best.pt"

    def save(self, state: dict[str, Any]) -> None:
        """Replace the checkpoint."""
        file = self.folder / "checkpoint.pt"
        partial = file.with_suffix(".part")
        with partial.open("wb") as stream:
            torch.save(state, stream)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint, if there is one."""
        file = self.folder / "checkpoint.pt"
        if not file.exists():
            return None
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        return state

    def log(self, step: int, figures: dict[str, float]) -> None:
        """Add a line to the log, to TensorBoard and to the curves."""
        log = self.folder / "log.jsonl"
        with log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"step": step, **figures}) + "\n")
        for name, value in figures.items():
            self.board.add_scalar(name, value, step)
        draw_curves(log, self.folder / "curves.png")
