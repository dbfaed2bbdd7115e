"""What the votes on an observation amount to.

Under `one_expert` the latest vote decides. Under `two_thirds` a taxon needs two people who name it, or something below
it, and more than two thirds of all who say what the organism is; who names an ancestor does not contradict. So of a
species, the same species and its genus the species is taken; of a species and its genus the genus, as one person alone
knows better. The most exact taxon that fits is taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from serving.store.review_tables import Rule, Status

Lineage = Callable[[int], Sequence[int]]  # a taxon, its parent, and so on up to the root

LEAST_VOTES = 2
MOST_VOTES = 6  # people who disagree: it stays uncertain, as asking more would not help


@dataclass(frozen=True)
class Ballot:
    """What one person says; of several votes only the latest counts."""

    kind: str
    taxon: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What becomes of an observation."""

    status: Status
    taxon: int | None = None


OPEN, REJECTED, UNCERTAIN = Outcome("needs_review"), Outcome("rejected"), Outcome("uncertain")


def decide(ballots: Sequence[Ballot], rule: Rule, lineage: Lineage) -> Outcome:
    """The outcome of ballots of different people, the latest last."""
    if not ballots:
        return OPEN
    if rule == "one_expert":
        return _word_of(ballots[-1])
    return _agreement(ballots, lineage)


def _word_of(ballot: Ballot) -> Outcome:
    if ballot.kind == "cannot_tell":
        return UNCERTAIN
    if ballot.kind == "not_an_organism":
        return REJECTED
    return Outcome("verified", ballot.taxon)


def _agreement(ballots: Sequence[Ballot], lineage: Lineage) -> Outcome:
    """Who cannot tell stands aside, unless that is what nearly all say."""
    asides = sum(ballot.kind == "cannot_tell" for ballot in ballots)
    if asides >= LEAST_VOTES and _are_enough(asides, len(ballots)):
        return UNCERTAIN
    speaking = len(ballots) - asides
    nothing = sum(ballot.kind == "not_an_organism" for ballot in ballots)
    if nothing >= LEAST_VOTES and _are_enough(nothing, speaking):
        return REJECTED
    lines = [list(lineage(ballot.taxon)) for ballot in ballots if ballot.taxon is not None]
    candidates = sorted({taxon for line in lines for taxon in line}, key=lambda taxon: (-len(lineage(taxon)), taxon))
    for taxon in candidates:  # the most exact first
        above = set(lineage(taxon))
        naming = sum(taxon in line for line in lines)
        agreeing = sum(taxon in line or line[0] in above for line in lines)
        if naming >= LEAST_VOTES and _are_enough(agreeing, speaking):
            return Outcome("verified", taxon)
    return UNCERTAIN if len(ballots) >= MOST_VOTES else OPEN


def _are_enough(some: int, everyone: int) -> bool:
    return 3 * some > 2 * everyone
