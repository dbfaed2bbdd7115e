"""What every training has in common: steps, validations, checkpoints, a bar that shows how far it is.

A training says what a batch is (`load`), what is learned from it (`learn`) and how good it has become (`validate`), and
names its parts with a state: with these, a training that was stopped goes on as if it had not been.
"""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

import torch

from training.errors import DataError
from training.run_folder import RunFolder
from training.schedule import training_bar

Batch = TypeVar("Batch")


class Part(Protocol):
    """A network, an optimizer, an average of weights."""

    def state_dict(self) -> dict[str, Any]:
        """All that must be kept."""

    def load_state_dict(self, state: dict[str, Any], /) -> Any:
        """Take back what was kept."""


class StepByStep(ABC, Generic[Batch]):
    """A training; `begin` is called once its parts are there, then `go`."""

    def __init__(self, run: RunFolder, *, best: float) -> None:
        self.run = run
        self.state = run.load()  # of a training that was stopped
        self.step, self.best, self.seconds = 0, best, 0.0  # seconds of all cores: what else runs here does not count
        self.losses: list[dict[str, float]] = []  # since the last validation
        self.parts: Mapping[str, Part] = {}

    @abstractmethod
    def load(self, step: int) -> Batch:
        """The batch of a step; called in another thread, ahead of time. It depends on the step alone."""

    @abstractmethod
    def learn(self, batch: Batch) -> dict[str, float]:
        """One step on one batch; returns its losses by name."""

    @abstractmethod
    def validate(self) -> None:
        """Measure, log, and keep the weights if they are to be kept."""

    @abstractmethod
    def note(self) -> str:
        """What the bar says beside the losses."""

    def begin(
        self, parts: Mapping[str, Part], *, steps: int, validate_every: int, checkpoint_every: int, data: Any = None
    ) -> None:
        """Take in what the training consists of; go on from the last checkpoint, if there is one.

        `data` describes what is learned from: a training does not go on with other data.
        """
        self.parts, self.steps = parts, steps
        self.validate_every, self.checkpoint_every = validate_every, checkpoint_every
        self.data_digest = hashlib.sha256(json.dumps(data).encode()).hexdigest()
        if self.state is None:
            return
        if "progress" not in self.state:
            raise DataError(f"{self.run.folder} was begun by another version of Readleaf; start anew in another folder")
        if self.state["data"] != self.data_digest:
            raise DataError(f"{self.run.folder} was begun with other data; start anew in another folder")
        for name, part in parts.items():
            part.load_state_dict(self.state[name])
        torch.set_rng_state(self.state["torch"])
        for name, value in self.state["progress"].items():
            setattr(self, name, value)

    def progress(self) -> dict[str, Any]:
        """Attributes that a checkpoint keeps; a training may add its own."""
        return {name: getattr(self, name) for name in ("step", "best", "seconds", "losses")}

    def is_enough(self) -> bool:
        """Is nothing left to do?"""
        return self.step >= self.steps

    def go(self) -> None:
        """All steps that are left."""
        with training_bar() as shown, ThreadPoolExecutor(1) as ahead:
            bar = shown.add_task("training", total=self.steps, completed=self.step, note="")
            waiting: Future[Batch] | None = None
            while not self.is_enough():
                started = time.process_time()
                batch = (waiting or ahead.submit(self.load, self.step)).result()
                waiting = ahead.submit(self.load, self.step + 1)
                losses = self.learn(batch)
                self.step += 1
                self.seconds += time.process_time() - started
                self.losses.append(losses)
                self.run.board.add_scalar("loss", sum(losses.values()), self.step)
                parts = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
                shown.update(bar, completed=self.step, note=f"{parts}, {self.note()}")
                due = self.step % self.validate_every == 0 or self.step == self.steps
                if due:
                    self.validate()
                if due or self.step % self.checkpoint_every == 0:
                    self._save()

    def log(self, figures: Mapping[str, float]) -> None:
        """Log figures of a validation beside what was learned since the last one."""
        count = len(self.losses)
        means = {name: sum(each[name] for each in self.losses) / count for name in (self.losses or [{}])[0]}
        learned = {"mean loss": sum(means.values())} if means else {}
        apart = {f"{name} loss": value for name, value in means.items()} if len(means) > 1 else {}
        self.losses = []
        self.run.log(self.step, {"core minutes": round(self.seconds / 60, 2), **learned, **apart, **figures})

    def _save(self) -> None:
        kept = {name: part.state_dict() for name, part in self.parts.items()}
        known = {"torch": torch.get_rng_state(), "progress": self.progress(), "data": self.data_digest}
        self.run.save({**kept, **known})
