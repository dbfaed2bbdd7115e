"""Where a surrogate's training pairs come from."""

from collections.abc import Callable, Sequence
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
    # Local pairs that the model made a little earlier, in place of new ones: a model may be slow, and mostly right.
    recent: Callable[[], Pair] | None = None
    local: bool = True  # False: learn from the generator alone, whatever model is tuned

    def __post_init__(self) -> None:
        if self.generator is None and self.model is None:
            raise ValueError("sources need a generator, a model, or both")

    def pairs(self) -> list[Pair]:
        """One batch from each source, without a graph."""
        found = [] if self.generator is None else [self.generator()]
        if self.local and self.recent is not None:
            found.append(self.recent())
        elif self.local and self.model is not None:
            with torch.no_grad():
                batch = self.model()
            found.append((batch.prediction, batch.truth))
        return found


class RecentPairs:
    """The last pairs that a model made; draws as many right ones as wrong ones by a little, by much, and so on."""

    def __init__(
        self,
        capacity: int,
        metric: Callable[[Tensor, Tensor], Tensor],
        *,
        batch: int,
        edges: Sequence[float] = (1, 2, 3),
        dtype: torch.dtype = torch.float16,
        seed: int = 0,
    ) -> None:
        """`edges` lie between the values of the metric that are drawn equally often; pairs are kept as `dtype`."""
        self.capacity, self.metric, self.batch = capacity, metric, batch
        self.edges, self.dtype = torch.tensor(edges, dtype=torch.float32), dtype
        self.random = torch.Generator().manual_seed(seed)
        self.prediction = self.truth = torch.empty(0)
        self.exact = torch.empty(0)  # the metric of each pair
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, prediction: Tensor, truth: Tensor) -> None:
        """Take in pairs; the oldest go when there is no room."""
        if not self.added:
            self.prediction, self.truth = (
                torch.empty(self.capacity, *side.shape[1:], dtype=self.dtype) for side in (prediction, truth)
            )
            self.exact = torch.empty(self.capacity)
        places = (torch.arange(len(truth)) + self.added) % self.capacity
        self.prediction[places] = prediction.detach().to(self.dtype)
        self.truth[places] = truth.to(self.dtype)
        self.exact[places] = self.metric(prediction.detach(), truth).float()
        self.added += len(truth)

    def __call__(self) -> Pair:
        """A batch, even over the ranges of the metric that `edges` make."""
        values = torch.bucketize(self.exact[: len(self)], self.edges, right=True)
        weights = (1.0 / torch.bincount(values, minlength=len(self.edges) + 1).clamp(min=1))[values]
        chosen = torch.multinomial(weights, self.batch, replacement=True, generator=self.random)
        return self.prediction[chosen].float(), self.truth[chosen].float()
