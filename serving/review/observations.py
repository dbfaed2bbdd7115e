"""Observations: sent in, found, and how much an expert's word on each is worth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.errors import ObservationMissing
from serving.library import NewPicture
from serving.review.history import note
from serving.store.pictures import PictureFolder
from serving.store.review_tables import Event, Observation, ObservationImage


@dataclass(frozen=True)
class NewImage:
    """A picture of an observation, already looked at."""

    picture: NewPicture
    vector: NDArray[np.float32]
    organ: str | None = None


@dataclass(frozen=True)
class Circumstances:
    """When, where and by whom an organism was seen; as much of it as is known."""

    observed: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    place: str = ""
    observer: str = ""
    notes: str = ""


@dataclass(frozen=True)
class NewObservation:
    """One organism, and what the models make of it."""

    images: Sequence[NewImage]
    identification: dict[str, Any]  # as it is kept: taxa by number, items by number
    circumstances: Circumstances = field(default_factory=Circumstances)


def submit(
    session: Session, pictures: PictureFolder, collection_id: int, new: NewObservation, who: str, *, sampled: bool
) -> Observation:
    """Keep an observation and its pictures; it waits for an expert."""
    scores = [prediction["score"] for prediction in new.identification["predictions"]]
    observation = Observation(
        collection_id=collection_id,
        status="needs_review",
        submitter=who,
        identification=new.identification,
        doubt=1.0 if new.identification["rejected"] else doubt(scores),
        sampled=sampled,
        **vars(new.circumstances),
    )
    session.add(observation)
    session.flush()
    for image in new.images:
        name = pictures.name_of(image.picture.data)
        pictures.keep(name, image.picture.data)
        session.add(
            ObservationImage(
                observation_id=observation.id,
                sha256=name,
                media_type=image.picture.media_type,
                width=image.picture.width,
                height=image.picture.height,
                organ=image.organ,
                model=new.identification["model"],
                embedding=np.asarray(image.vector, dtype="<f4").tobytes(),
                adopted=False,
            )
        )
    note(session, "submitted", who, observation=observation.id, collection=collection_id)
    return observation


def doubt(scores: Sequence[float]) -> float:
    """0 for one certain answer, 1 for none: the mean of what the first lacks before the second, and of the entropy."""
    if not scores:
        return 1.0
    ranked = sorted(scores, reverse=True)
    margin = ranked[0] - (ranked[1] if len(ranked) > 1 else 0.0)
    total = sum(ranked)
    shares = [score / total for score in ranked if score > 0] if total > 0 else []
    entropy = -sum(share * math.log(share) for share in shares) / math.log(max(2, len(ranked)))
    return min(1.0, max(0.0, (1 - margin + entropy) / 2))


def find_observation(session: Session, number: int) -> Observation:
    """An observation by its number; raises ObservationMissing."""
    found = session.get(Observation, number)
    if found is None:
        raise ObservationMissing(f"there is no observation {number}; GET /v1/observations lists all")
    return found


def images_of(session: Session, number: int) -> list[ObservationImage]:
    """The pictures of an observation, in the order sent."""
    query = select(ObservationImage).where(ObservationImage.observation_id == number)
    return list(session.scalars(query.order_by(ObservationImage.id)))


def events_of(session: Session, number: int) -> list[Event]:
    """What happened to an observation."""
    query = select(Event).where(Event.observation_id == number).order_by(Event.number)
    return list(session.scalars(query))
