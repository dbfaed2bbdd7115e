"""How the review goes: how much waits, how fast it is decided, how far people agree, how good the model is."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from statistics import NormalDist
from typing import get_args

from sqlalchemy import extract, func, select
from sqlalchemy.orm import Session

from serving.review.agreement import agreement
from serving.store.review_tables import Observation, Status, Taxon, Vote

DAY = timedelta(hours=24)
MOST_CONFUSIONS = 20
AT_ONCE = 500  # taxa in one query


@dataclass(frozen=True)
class Accuracy:
    """How often the first prediction was what experts decided, or something more exact."""

    right: int
    total: int  # verified observations
    silent: int  # of these, the ones for which the model had no prediction; they are not right
    left_out: int  # rejected or uncertain: there is nothing to compare with
    share: float | None
    low: float | None  # of the Wilson interval that holds the share in 95 of 100 cases
    high: float | None


@dataclass(frozen=True)
class Confusion:
    """What experts made of a prediction."""

    predicted: str
    decided: str
    count: int


@dataclass(frozen=True)
class Figures:
    """The state of a collection's review."""

    statuses: Mapping[str, int]
    waiting: int
    decisions_last_day: int
    decisions_an_hour: float | None  # over those hours of the last day in which there were any
    votes: int  # that stand
    people: int
    compared: int  # observations with two standing votes or more
    agreement: float | None  # Krippendorff's alpha over these
    accuracy: Accuracy  # on the random share: the model's own
    biased_accuracy: Accuracy  # on all that is decided: biased, as doubtful ones are decided first
    confusions: tuple[Confusion, ...]  # most frequent first


@dataclass(frozen=True)
class _Group:
    """Decided observations that are alike."""

    status: str
    sampled: bool
    predicted: int | None
    decided: int | None
    count: int


def figures(session: Session, collection_id: int, *, now: datetime) -> Figures:
    """Everything at once, as the session sees it; the last day ends `now`."""
    own = Observation.collection_id == collection_id
    counted = session.execute(select(Observation.status, func.count()).where(own).group_by(Observation.status))
    statuses: dict[str, int] = dict.fromkeys(get_args(Status), 0)
    statuses.update((status, count) for status, count in counted)
    hours = _decisions_by_hour(session, collection_id, now)
    standing = (
        select(func.count(), func.count(Vote.who.distinct()))
        .join(Observation, Observation.id == Vote.observation_id)
        .where(own, Vote.withdrawn.is_(False))
    )
    votes, people = session.execute(standing).one()
    units = _units(session, collection_id)
    groups = _decided(session, collection_id)
    named = [number for group in groups for number in (group.predicted, group.decided) if number is not None]
    taxa = _Taxa(session, named)
    return Figures(
        statuses,
        statuses["needs_review"],
        sum(hours),
        sum(hours) / len(hours) if hours else None,
        votes,
        people,
        len(units),
        agreement(units),
        _accuracy([group for group in groups if group.sampled], taxa),
        _accuracy(groups, taxa),
        _confusions(groups, taxa),
    )


def wilson(right: int, total: int) -> tuple[float, float]:
    """The interval that holds a share in 95 of 100 cases; unlike the plain one it is fit for few and for extremes."""
    z = NormalDist().inv_cdf(0.975)
    middle = (right + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * sqrt(right * (total - right) / total + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


class _Taxa:
    """Some taxa with what they were merged into and all that they belong to, read level by level."""

    def __init__(self, session: Session, numbers: Collection[int]) -> None:
        self._names: dict[int, str] = {}
        self._parents: dict[int, int | None] = {}
        self._merged: dict[int, int | None] = {}
        fresh = set(numbers)
        while fresh:
            ordered = sorted(fresh)
            for start in range(0, len(ordered), AT_ONCE):
                part = ordered[start : start + AT_ONCE]
                query = select(Taxon.id, Taxon.name, Taxon.parent_id, Taxon.merged_into).where(Taxon.id.in_(part))
                for number, name, parent, merged in session.execute(query):
                    self._names[number], self._parents[number], self._merged[number] = name, parent, merged
            above = {*self._parents.values(), *self._merged.values()} - {None}
            fresh = {number for number in above if number is not None} - self._names.keys() - fresh

    def now(self, number: int) -> int:
        """The taxon itself, or what it was merged into."""
        while (into := self._merged.get(number)) is not None:
            number = into
        return number

    def name(self, number: int) -> str:
        """The accepted name."""
        return self._names.get(number, f"taxon {number}")

    def is_in(self, number: int, other: int) -> bool:
        """Whether a taxon is the other one, or belongs to it."""
        seen: set[int] = set()
        at: int | None = number
        while at is not None and at not in seen:
            if at == other:
                return True
            seen.add(at)
            at = self._parents.get(at)
        return False

    def is_right(self, group: _Group) -> bool:
        """Whether the model said what was decided. Who decides on a genus does not say that the species is wrong."""
        if group.predicted is None or group.decided is None:
            return False
        return self.is_in(self.now(group.predicted), self.now(group.decided))


def _decisions_by_hour(session: Session, collection_id: int, now: datetime) -> list[int]:
    """How many in each hour of the clock that had any, of the last day."""
    hour = extract("day", Observation.decided), extract("hour", Observation.decided)
    query = (
        select(func.count())
        .where(Observation.collection_id == collection_id, Observation.status != "needs_review")
        .where(Observation.decided > now.astimezone(UTC) - DAY, Observation.decided <= now.astimezone(UTC))
        .group_by(*hour)
    )
    return list(session.scalars(query))


def _units(session: Session, collection_id: int) -> list[Counter[Hashable]]:
    """What people say of each observation that has two standing votes or more."""
    several = (
        select(Vote.observation_id)
        .join(Observation, Observation.id == Vote.observation_id)
        .where(Observation.collection_id == collection_id, Vote.withdrawn.is_(False))
        .group_by(Vote.observation_id)
        .having(func.count() > 1)
    )
    query = select(Vote.observation_id, Vote.kind, Vote.taxon_id).where(
        Vote.withdrawn.is_(False), Vote.observation_id.in_(several)
    )
    units: dict[int, Counter[Hashable]] = defaultdict(Counter)
    for observation, kind, taxon in session.execute(query):
        units[observation][kind if taxon is None else taxon] += 1
    return list(units.values())


def _decided(session: Session, collection_id: int) -> list[_Group]:
    predicted = Observation.identification[("predictions", 0, "taxon")].as_integer()
    alike = Observation.status, Observation.sampled, predicted, Observation.taxon_id
    query = (
        select(*alike, func.count())
        .where(Observation.collection_id == collection_id, Observation.status != "needs_review")
        .group_by(*alike)
    )
    return [_Group(*row) for row in session.execute(query)]


def _accuracy(groups: Iterable[_Group], taxa: _Taxa) -> Accuracy:
    right = total = silent = left_out = 0
    for group in groups:
        if group.status != "verified":
            left_out += group.count
            continue
        total += group.count
        silent += group.count if group.predicted is None else 0
        right += group.count if taxa.is_right(group) else 0
    low, high = wilson(right, total) if total else (None, None)
    return Accuracy(right, total, silent, left_out, right / total if total else None, low, high)


def _confusions(groups: Iterable[_Group], taxa: _Taxa) -> tuple[Confusion, ...]:
    counts: Counter[tuple[int, int]] = Counter()
    for group in groups:
        if group.predicted is None or group.decided is None or taxa.is_right(group):
            continue
        counts[taxa.now(group.predicted), taxa.now(group.decided)] += group.count
    found = [Confusion(taxa.name(first), taxa.name(second), count) for (first, second), count in counts.items()]
    found.sort(key=lambda each: (-each.count, each.predicted, each.decided))
    return tuple(found[:MOST_CONFUSIONS])
