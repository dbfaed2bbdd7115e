"""What the neighbours of a picture say it is."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from serving.library import Neighbour


@dataclass(frozen=True)
class Vote:
    """A label's part of the vote."""

    label: str
    share: float  # of all votes, weighted by similarity
    votes: int


def score_of(similarity: float) -> float:
    """A cosine similarity as a number from 0 to 1."""
    return (1 + similarity) / 2


def vote(neighbours: Sequence[Neighbour], power: float = 1.0) -> list[Vote]:
    """Each labelled neighbour votes with the weight of its cosine similarity, below 0 with none; best label first.

    With a higher `power` near ones count more.
    """
    weights: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for neighbour in neighbours:
        if neighbour.item.label is not None:
            weights[neighbour.item.label] += max(0.0, neighbour.similarity) ** power
            counts[neighbour.item.label] += 1
    total = sum(weights.values())
    ranked = sorted(weights, key=lambda label: (-weights[label], label))
    return [Vote(label, weights[label] / total if total else 0.0, counts[label]) for label in ranked]


def reason_to_reject(neighbours: Sequence[Neighbour], reject_below: float | None) -> str | None:
    """Why the picture should be called none of the known, in words; None if it need not be."""
    if not neighbours:
        return "there is nothing here to compare the picture with"
    best = neighbours[0].similarity
    if reject_below is not None and best < reject_below:
        return (
            f"nothing here looks enough like it: the nearest item scores {score_of(best):.2f}, "
            f"and {score_of(reject_below):.2f} is what pictures of the same kind usually reach"
        )
    return None
