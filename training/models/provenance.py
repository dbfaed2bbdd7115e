"""What the weights of a model were learned from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """Data and losses, first things first."""

    data: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()  # of our own training
