"""Pictures of one organism to what it probably is, with the evidence.

Each picture's neighbours vote by similarity. Where a classifier knows labels of the collection, its calibrated
probabilities count as well, for as much of the vote as those labels have; labels that it does not know keep theirs. The
pictures' answers are averaged: of three pictures of one class that is right more often than the most confident one
(`readleaf evaluate identify`).

Whether the organism is known at all is asked of its surroundings: is it as close to its neighbours as they are to
theirs? Leaves lie farther apart than flowers, so one distance for all would call every leaf a stranger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving.library import Neighbour
from serving.pipelines.vote import reason_to_reject, vote

NEIGHBOURS = 20  # that vote on a picture
POWER = 4.0  # of their similarity: right more often than the plain one, and few that are near outvote many that are not
EVIDENCE = 3  # neighbours shown for each prediction
PREDICTIONS = 9  # as many as an expert has keys for
FEWEST, LEAST = 3, 0.01  # what is less likely than this is shown only to make up three
CLASSIFIER = 0.5  # how much the classifier counts beside the neighbours
CROWD = 10  # neighbours whose own surroundings are looked at
FIFTH = 5  # of their neighbours the one that says how crowded it is there
SURENESS = 0.1  # how much a sure answer makes an organism familiar


@dataclass(frozen=True)
class Suggestion:
    """A label, and what speaks for it."""

    label: str
    score: float  # 0…1, all of what counts
    neighbours: float  # share of the neighbours' vote
    classifier: float | None  # its probability among the collection's labels; None if it does not know the label
    evidence: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Identification:
    """What an observation probably is, or why nothing can be said."""

    suggestions: list[Suggestion]  # best first
    reason: str | None  # why it is rejected

    @property
    def rejected(self) -> bool:
        """Whether nothing known looks enough like it."""
        return self.reason is not None


@dataclass(frozen=True)
class Look:
    """What is near one picture."""

    neighbours: Sequence[Neighbour]  # nearest first
    crowding: Sequence[float]  # of the first CROWD of them: the similarity to their own fifth neighbour; may be empty
    posterior: Mapping[str, float] | None = None  # what a classifier says, if there is one


def identify(
    looks: Sequence[Look],
    labels: Mapping[str, int],
    *,
    prior: Mapping[str, float] | None = None,
    reject_below: float | None = None,
    familiar_from: float | None = None,
) -> Identification:
    """From what is near each picture; `labels` are the collection's with their items, `prior` weights of some."""
    weights = prior or {}
    votes = []
    for look in looks:
        posterior = None if look.posterior is None else among(look.posterior, list(labels), weights)
        votes.append(suggest(look.neighbours, posterior, weights))
    suggestions = averaged(votes)
    best = suggestions[0].score if suggestions else 0.0
    shown = [each for number, each in enumerate(suggestions) if number < FEWEST or each.score >= LEAST]
    if not all(tells(look, labels) for look in looks):
        familiar_from = None
    return Identification(shown[:PREDICTIONS], reason(looks, best, reject_below, familiar_from))


def reason(looks: Sequence[Look], score: float, reject_below: float | None, familiar_from: float | None) -> str | None:
    """Why the organism should be called none of the known; None if it need not be.

    The picture that is most at home counts: one that shows little must not speak against another that shows much.
    """
    if familiar_from is None:
        nearest = max((look.neighbours for look in looks), key=lambda each: each[0].similarity if each else -2.0)
        return reason_to_reject(nearest, reject_below)
    found = max(familiarity([each.similarity for each in look.neighbours], look.crowding, score) for look in looks)
    if found >= familiar_from:
        return None
    return "it is farther from everything here than pictures of one kind are from each other"


def tells(look: Look, labels: Mapping[str, int]) -> bool:
    """Whether the surroundings of a picture's neighbours say anything: most of their kinds must have five others."""
    kinds = [each.item.label for each in look.neighbours[: len(look.crowding)]]
    return 2 * sum(labels.get(kind or "", 0) > FIFTH for kind in kinds) > len(kinds)


def familiarity(similarities: Sequence[float], crowding: Sequence[float], score: float) -> float:
    """How much at home a picture is among its neighbours, compared with how they are among theirs."""
    near = np.asarray(similarities[: len(crowding)]) - np.asarray(crowding)
    return float(near.mean()) + SURENESS * score


def averaged(votes: Sequence[Sequence[Suggestion]]) -> list[Suggestion]:
    """The mean of what several pictures say, best first; evidence is the nearest of all."""
    found: dict[str, list[Suggestion]] = {}
    for each in votes:
        for suggestion in each:
            found.setdefault(suggestion.label, []).append(suggestion)
    count = max(1, sum(bool(each) for each in votes))  # a picture that says nothing has no part in it
    merged = []
    for label, own in found.items():
        believed = [each.classifier for each in own if each.classifier is not None]
        evidence = sorted((near for each in own for near in each.evidence), key=lambda near: -near.similarity)
        unique = list({near.item.id: near for near in evidence}.values())
        merged.append(
            Suggestion(
                label,
                min(1.0, sum(each.score for each in own) / count),
                min(1.0, sum(each.neighbours for each in own) / count),
                min(1.0, sum(believed) / count) if believed else None,
                tuple(unique[:EVIDENCE]),
            )
        )
    return sorted(merged, key=lambda each: (-each.score, each.label))


def among(posterior: Mapping[str, float], labels: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """A classifier's probabilities among the labels of a collection that it knows, reweighed; they sum to 1."""
    known = [label for label in labels if label in posterior]
    if not known:
        return {}
    values = np.array([posterior[label] * weights.get(label, 1.0) for label in known])
    total = values.sum()
    return {label: float(value / total) if total > 0 else 0.0 for label, value in zip(known, values, strict=True)}


def suggest(
    neighbours: Sequence[Neighbour], posterior: Mapping[str, float] | None, weights: Mapping[str, float]
) -> list[Suggestion]:
    """What one picture says, best first."""
    shares = {each.label: each.share * weights.get(each.label, 1.0) for each in vote(neighbours, POWER)}
    total = sum(shares.values())
    if total <= 0:
        return []
    shares = {label: share / total for label, share in shares.items()}
    posterior = posterior or {}
    heard = sum(share for label, share in shares.items() if label in posterior)
    part = CLASSIFIER if heard > 0 else 0.0
    suggestions = []
    for label in {*shares, *(posterior if part else ())}:
        share, believed = shares.get(label, 0.0), posterior.get(label)
        score = share if believed is None or not part else (1 - part) * share + part * heard * believed
        evidence = tuple(each for each in neighbours if each.item.label == label)[:EVIDENCE]
        suggestions.append(Suggestion(label, min(1.0, score), share, believed, evidence))
    return sorted(suggestions, key=lambda each: (-each.score, each.label))
