"""What runs a model: one Protocol, so that pipelines do not know where their graph is executed."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from serving.repository import StoredModel
from serving.timing import Timings

Arrays = Mapping[str, NDArray[Any]]


class Network(Protocol):
    """One loaded version of a model. It lives as long as somebody holds it: a request keeps the one it began with."""

    def run(
        self, inputs: Arrays, timings: Timings | None = None, *, alone: bool = False
    ) -> dict[str, NDArray[np.float32]]:
        """Run on named inputs [batch, …]; returns outputs by name. May be called from many threads at once.

        `timings` says by when it must be done. `alone` says that the caller waits for this run and has no other: it
        should end soon, whatever it takes.
        """
        ...

    def trouble(self) -> str | None:
        """Why it cannot answer at present; None if it can."""
        ...

    @property
    def place(self) -> str:
        """What runs it, and where, in a few words."""
        ...


class Runtime(Protocol):
    """Loads models."""

    def load(self, model: StoredModel) -> Network:
        """A version of a model, warm; raises a SetupError if it does not answer as its manifest says."""
        ...

    def trouble(self) -> str | None:
        """Why no model can answer at present; None if they can."""
        ...

    def close(self) -> None:
        """Let go of connections and threads."""
        ...
