"""What runs a model: one Protocol, so that pipelines do not know where their graph is executed."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class Runtime(Protocol):
    """Runs loaded models. `run` may be called from many threads at once."""

    def run(self, model: str, inputs: Arrays, *, alone: bool = False) -> dict[str, NDArray[np.float32]]:
        """Run `model` on named inputs [batch, …]; returns its outputs by name.

        `alone` says that the caller waits for this run and has no other: it should end soon, whatever it takes.
        """
        ...

    def describe(self, model: str) -> str:
        """What runs the model, and where, in a few words."""
        ...
