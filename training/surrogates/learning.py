"""The alternating loop: learn a surrogate of any decomposable metric, and tune a model on it (thesis, chapter 3).

A *decomposable* metric compares one prediction with one truth; its surrogate is the distance of their embeddings.
What differs between metrics stands in a `Surrogate` and in the `Sources` of pairs; the loop is the same for all.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from training.losses.filtered import Target, filtered
from training.losses.surrogate_loss import surrogate_distance, surrogate_loss
from training.surrogates.pairs import Pair, Sources


def as_they_are(prediction: Tensor, truth: Tensor) -> Pair:
    """The frame of a metric without symmetries."""
    return prediction, truth


@dataclass(frozen=True)
class Surrogate:
    """ê(z, y) = |h(z) − h(y)| in place of a metric e(z, y)."""

    embed: nn.Module  # h
    metric: Callable[[Tensor, Tensor], Tensor]  # e, exact: [N, …], [N, …] → [N]
    # What the metric does not see (where a pair lies, which letters it is made of) is taken out of both before h.
    frame: Callable[[Tensor, Tensor], Pair] = as_they_are

    def __call__(self, prediction: Tensor, truth: Tensor) -> Tensor:
        """ê of each pair: [N]."""
        return surrogate_distance(self.embed, *self.frame(prediction, truth))

    def loss(self, prediction: Tensor, truth: Tensor, gradient_weight: float) -> Tensor:
        """How far ê is from e, to be minimised over h."""
        exact = self.metric(prediction, truth)
        return surrogate_loss(self.embed, *self.frame(prediction, truth), exact, gradient_weight)


@dataclass(frozen=True)
class Schedule:
    """How long each side learns in turn, and what the model minimises."""

    rounds: int
    surrogate_steps: int  # I_a of the thesis
    model_steps: int = 0  # I_b
    gradient_weight: float = 0.1
    filter_threshold: float | None = None  # FEDS' λ; None minimises ê everywhere
    filter_target: Target = "metric"


@dataclass(frozen=True)
class Round:
    """What one round came to."""

    number: int  # from 1
    steps: int  # of the surrogate, so far
    error: float  # mean |ê − e| on fresh pairs, after the surrogate's steps
    surrogate_loss: float
    model_loss: float | None  # None without model steps


def alternate(
    surrogate: Surrogate,
    sources: Sources,
    schedule: Schedule,
    surrogate_optimizer: Optimizer,
    model_optimizer: Optimizer | None = None,
    *,
    surrogate_scheduler: LRScheduler | None = None,
    start: int = 0,
) -> Iterator[Round]:
    """Rounds of surrogate steps and model steps; the caller looks at each, saves, and may stop at any.

    `start` rounds are taken as done: load the states of networks and optimisers first to go on after a stop.
    """
    if schedule.model_steps and (sources.model is None or model_optimizer is None):
        raise ValueError("model_steps need a model among the sources, and its optimizer")
    for number in range(start, schedule.rounds):
        losses = []
        for _ in range(schedule.surrogate_steps):
            pairs = sources.pairs()
            loss = torch.stack([surrogate.loss(*pair, schedule.gradient_weight) for pair in pairs]).sum()
            _descend(loss, surrogate_optimizer)
            if surrogate_scheduler is not None:
                surrogate_scheduler.step()
            losses.append(float(loss.detach()))
        error = _error(surrogate, sources)
        yield Round(
            number=number + 1,
            steps=(number + 1) * schedule.surrogate_steps,
            error=error,
            surrogate_loss=sum(losses) / max(len(losses), 1),
            model_loss=_tune(surrogate, sources, schedule, model_optimizer),
        )


def learn(
    surrogate: Surrogate,
    sources: Sources,
    *,
    steps: int,
    rate: float = 2e-3,
    gradient_weight: float = 0.1,
    steps_a_round: int = 100,
) -> Iterator[Round]:
    """Rounds of the surrogate alone: Adam, its rate up to `rate` and down to nothing over `steps`."""
    rounds = -(-steps // steps_a_round)
    optimizer = Adam(surrogate.embed.parameters(), lr=rate)
    scheduler = OneCycleLR(optimizer, rate, total_steps=rounds * steps_a_round + 1, pct_start=0.1)
    schedule = Schedule(rounds, steps_a_round, gradient_weight=gradient_weight)
    return alternate(surrogate, sources, schedule, optimizer, surrogate_scheduler=scheduler)


def _tune(surrogate: Surrogate, sources: Sources, schedule: Schedule, optimizer: Optimizer | None) -> float | None:
    """The model's steps of one round, h standing still."""
    if not schedule.model_steps or sources.model is None or optimizer is None:
        return None
    losses = []
    with _still(surrogate.embed):
        for _ in range(schedule.model_steps):
            batch = sources.model()
            distance = surrogate(batch.prediction, batch.truth)
            if schedule.filter_threshold is None:
                loss = distance.mean()
            else:
                exact = surrogate.metric(batch.prediction.detach(), batch.truth)
                loss = filtered(distance, exact, schedule.filter_threshold, schedule.filter_target)
            _descend(loss + batch.rest, optimizer)
            losses.append(float(loss.detach()))
    return sum(losses) / len(losses)


def _descend(loss: Tensor, optimizer: Optimizer) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _error(surrogate: Surrogate, sources: Sources) -> float:
    with torch.no_grad():
        errors = [(surrogate(*pair) - surrogate.metric(*pair)).abs() for pair in sources.pairs()]
    return float(torch.cat(errors).mean())


@contextmanager
def _still(network: nn.Module) -> Iterator[None]:
    """No gradients for the network's own parameters: those through it are cheaper then."""
    wanted = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter in wanted:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in wanted:
            parameter.requires_grad_(True)
