"""Where a surrogate's training pairs come from."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]  # predictions z [N, …] and truths y [N, …]


@dataclass(frozen=True)
class ModelBatch:
    """One batch of the model that is tuned: its predictions, with a graph, and what they should have been."""

    prediction: Tensor
    truth: Tensor
    # The part of the model's loss that the surrogate does not replace (a detector's classification, say).
    rest: Tensor | float = 0.0


@dataclass(frozen=True)
class Sources:
    """A generator (global pairs), the model itself (local pairs), or both (local-global, what the thesis found best).

    The generator should be uniform over the range of the metric: a surrogate that has seen mostly right
    predictions answers 0.
    """

    generator: Callable[[], Pair] | None = None
    model: Callable[[], ModelBatch] | None = None

    def __post_init__(self) -> None:
        if self.generator is None and self.model is None:
            raise ValueError("sources need a generator, a model, or both")

    def pairs(self) -> list[Pair]:
        """One batch from each source, without a graph."""
        found = [] if self.generator is None else [self.generator()]
        if self.model is not None:
            with torch.no_grad():
                batch = self.model()
            found.append((batch.prediction, batch.truth))
        return found
