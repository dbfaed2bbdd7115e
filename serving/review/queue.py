"""Who looks at which observation next. Every function runs inside the caller's one transaction."""

from collections.abc import Collection as Some
from collections.abc import Mapping
from datetime import timedelta
from random import Random

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from serving.errors import LeaseMissing
from serving.review.settling import policy_of
from serving.store.review_tables import Lease, Observation, ObservationImage, Vote
from serving.store.tables import now

LEASE = timedelta(minutes=10)
POOL = 50  # most doubtful observations among which the one least like the last ones is taken
RECENT = 8  # observations that somebody decided last
SAMENESS = 0.3  # how much doubt it takes to be shown something that looks just like one of them


def lease_next(
    session: Session, collection_id: int, who: str, random: Random, skip: Some[int] = ()
) -> Observation | None:
    """The observation that `who` holds already, or else the most useful one that nobody holds; None if there is none.

    A share of all observations, chosen when they come, is shown in the order of coming, whatever the model thinks of
    them: what experts say of these tells how good it is.
    """
    held = held_by(session, collection_id, who)
    if held is not None and held.id not in skip:
        renew(session, held, who)
        return held
    if held is not None:
        session.execute(delete(Lease).where(Lease.observation_id == held.id))
    first = random.random() < policy_of(session, collection_id).random_share
    for sampled in (first, not first):
        waiting = _waiting(session, collection_id, who, sampled, skip)
        if waiting:
            chosen = next(iter(waiting)) if sampled else _most_useful(session, waiting, who)
            session.merge(Lease(observation_id=chosen, who=who, expires=now() + LEASE))
            return session.get_one(Observation, chosen)
    return None


def held_by(session: Session, collection_id: int, who: str) -> Observation | None:
    """The observation of a collection that somebody has a lease on."""
    query = (
        select(Observation)
        .join(Lease, Lease.observation_id == Observation.id)
        .where(Lease.who == who, Lease.expires > now(), Observation.collection_id == collection_id)
        .where(Observation.status == "needs_review")
    )
    return session.scalar(query.limit(1))


def check_lease(session: Session, observation: Observation, who: str) -> Lease:
    """The lease that `who` has on an observation; raises LeaseMissing."""
    lease = session.get(Lease, observation.id)
    if lease is None or lease.who != who or lease.expires <= now():
        held = " somebody else has it;" if lease is not None and lease.who != who and lease.expires > now() else ""
        raise LeaseMissing(
            f"you have no lease on observation {observation.id};{held} POST /v1/review/next gives you one"
        )
    return lease


def renew(session: Session, observation: Observation, who: str) -> Lease:
    """Keep a lease for another ten minutes."""
    lease = check_lease(session, observation, who)
    lease.expires = now() + LEASE
    return lease


def release(session: Session, observation: Observation, who: str) -> None:
    """Give a lease back."""
    session.delete(check_lease(session, observation, who))


def queue_length(session: Session, collection_id: int) -> int:
    """How many observations wait for an expert."""
    query = select(func.count()).where(Observation.collection_id == collection_id, Observation.status == "needs_review")
    return session.scalar(query) or 0


def _waiting(session: Session, collection_id: int, who: str, sampled: bool, skip: Some[int]) -> dict[int, float]:
    """What nobody holds and `who` has not voted on, with its doubt: sampled ones as they came, others by doubt."""
    order: ColumnElement[int] | ColumnElement[float] = Observation.id.asc() if sampled else Observation.doubt.desc()
    is_held = select(Lease).where(Lease.observation_id == Observation.id, Lease.expires > now()).exists()
    has_voted = (
        select(Vote).where(Vote.observation_id == Observation.id, Vote.withdrawn.is_(False), Vote.who == who).exists()
    )
    query = (
        select(Observation.id, Observation.doubt)
        .where(
            Observation.collection_id == collection_id,
            Observation.status == "needs_review",
            Observation.sampled.is_(sampled),
            ~is_held,
            ~has_voted,
        )
        .order_by(order)
        .limit(1 if sampled else POOL)
    )
    if skip:
        query = query.where(Observation.id.not_in(skip))
    return {row.id: row.doubt for row in session.execute(query)}


def _most_useful(session: Session, waiting: Mapping[int, float], who: str) -> int:
    """Doubtful, and unlike what this person has just looked at."""
    decided = select(Vote.observation_id).where(Vote.who == who).order_by(Vote.id.desc()).limit(RECENT)
    recent = _vectors(session, list(session.scalars(decided)))
    own = _vectors(session, list(waiting))

    def usefulness(number: int) -> float:
        vector = own[number]
        # Vectors of two models cannot be compared.
        alike = [float(other @ vector) for other in recent.values() if other.shape == vector.shape]
        return waiting[number] - SAMENESS * max(0.0, *alike, 0.0)

    return max(waiting, key=usefulness)


def _vectors(session: Session, observations: list[int]) -> dict[int, NDArray[np.float32]]:
    """The vector of each observation's first picture."""
    rows = session.execute(
        select(ObservationImage.observation_id, ObservationImage.embedding)
        .where(ObservationImage.observation_id.in_(observations))
        .order_by(ObservationImage.id.desc())
    )
    return {row.observation_id: np.frombuffer(row.embedding, dtype="<f4") for row in rows}
