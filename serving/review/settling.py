"""Brings an observation to what its votes amount to, and the collection with it."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.review.consensus import OPEN, Ballot, Outcome, decide
from serving.review.history import note
from serving.review.taxonomy import lineage_in
from serving.store.review_tables import Observation, ObservationImage, ReviewPolicy, Taxon, Vote
from serving.store.tables import Change, Item, now


def policy_of(session: Session, collection_id: int) -> ReviewPolicy:
    """How a collection's observations are decided."""
    found = session.get(ReviewPolicy, collection_id)
    return found or ReviewPolicy(collection_id=collection_id, rule="one_expert", blind=False, random_share=0.1)


def standing_votes(session: Session, observation_id: int) -> list[Vote]:
    """Votes that count, the latest last."""
    query = select(Vote).where(Vote.observation_id == observation_id, Vote.withdrawn.is_(False))
    return list(session.scalars(query.order_by(Vote.id)))


def settle(session: Session, observation: Observation, who: str) -> None:
    """Decide, or take a decision back; what the votes had put into the collection follows."""
    votes = standing_votes(session, observation.id)
    rule = policy_of(session, observation.collection_id).rule
    outcome = decide([Ballot(vote.kind, vote.taxon_id) for vote in votes], rule, lineage_in(session))
    if outcome == Outcome(observation.status, observation.taxon_id):
        return
    observation.status, observation.taxon_id = outcome.status, outcome.taxon
    observation.decided = _decided(outcome)
    note(
        session,
        "decided",
        who,
        observation=observation.id,
        status=outcome.status,
        taxon=outcome.taxon,
        votes=[vote.id for vote in votes],
        model=observation.identification.get("model"),
    )
    taxon = session.get(Taxon, outcome.taxon) if outcome.taxon is not None else None
    images = session.scalars(
        select(ObservationImage).where(ObservationImage.observation_id == observation.id).order_by(ObservationImage.id)
    ).all()
    for image in images:
        if taxon is None:
            _take_out(session, observation, image, who)
        else:
            _put_in(session, observation, image, taxon.name, votes, who)


def _decided(outcome: Outcome) -> datetime | None:
    return None if outcome == OPEN else now()


def _put_in(
    session: Session,
    observation: Observation,
    image: ObservationImage,
    label: str,
    votes: Sequence[Vote],
    who: str,
) -> None:
    """The picture becomes an item of the collection, or its item is labelled; one that somebody added stays theirs."""
    lineage = {
        "observation": observation.id,
        "votes": [vote.id for vote in votes],
        "decided_by": sorted({vote.who for vote in votes}),
        "identified_by": observation.identification.get("model"),
    }
    item = session.get(Item, image.item_id) if image.item_id is not None else None
    if item is not None:
        item.label, item.details = label, item.details | lineage
        return
    same = Item.collection_id == observation.collection_id, Item.sha256 == image.sha256
    if session.scalar(select(Item.id).where(*same)) is not None:
        return
    item = Item(
        collection_id=observation.collection_id,
        label=label,
        details=lineage,
        sha256=image.sha256,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        model=image.model,
        embedding=image.embedding,
    )
    session.add(item)
    session.flush()
    image.item_id, image.adopted = item.id, False
    session.add(Change(collection_id=observation.collection_id, item_id=item.id))
    note(session, "item_added", who, observation=observation.id, item=item.id)


def _take_out(session: Session, observation: Observation, image: ObservationImage, who: str) -> None:
    """What a decision put into the collection goes with it; what was there before stays, without a label."""
    if image.item_id is None:
        return
    item = session.get(Item, image.item_id)
    if item is not None and image.adopted:
        item.label = None
        return
    if item is not None:
        session.delete(item)
        session.add(Change(collection_id=observation.collection_id, item_id=item.id))
    note(session, "item_removed", who, observation=observation.id, item=image.item_id)
    image.item_id = None
