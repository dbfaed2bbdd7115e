"""Votes: cast with a lease, taken back, and sent back when what they named is split up."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.errors import VoteMissing
from serving.review.history import note
from serving.review.queue import LEASE, check_lease
from serving.review.settling import settle, standing_votes
from serving.review.taxonomy import UNRANKED, NewTaxon, find_taxon, make_taxon, taxon_named
from serving.store.review_tables import Lease, Observation, ObservationImage, Taxon, Vote
from serving.store.tables import Item, now


@dataclass(frozen=True)
class NewVote:
    """What somebody says: a taxon by its number, a new one by its name, or that it is none."""

    kind: str  # taxon, new_taxon, cannot_tell, not_an_organism
    taxon: int | None = None
    name: str = ""
    rank: str = UNRANKED
    parent: int | None = None
    comment: str = ""


def cast_vote(session: Session, observation: Observation, new: NewVote, who: str) -> Vote:
    """Take a vote of somebody who has a lease, and give the lease back; raises LeaseMissing, TaxonMissing."""
    session.delete(check_lease(session, observation, who))
    taxon = _named(session, new, who)
    replaced = [vote for vote in standing_votes(session, observation.id) if vote.who == who]
    for vote in replaced:
        vote.withdrawn = True
    vote = Vote(
        observation_id=observation.id,
        who=who,
        kind=new.kind,
        taxon_id=None if taxon is None else taxon.id,
        comment=new.comment,
        withdrawn=False,
    )
    session.add(vote)
    session.flush()
    note(
        session,
        "voted",
        who,
        observation=observation.id,
        vote=vote.id,
        kind=vote.kind,
        taxon=vote.taxon_id,
        comment=vote.comment,
        replaces=[each.id for each in replaced],
    )
    settle(session, observation, who)
    return vote


def take_back(session: Session, observation: Observation, who: str) -> None:
    """Undo one's own vote, and hold the observation again unless somebody else does; raises VoteMissing."""
    own = [vote for vote in standing_votes(session, observation.id) if vote.who == who]
    if not own:
        raise VoteMissing(f"you have no vote on observation {observation.id} that could be taken back")
    _withdraw(session, own[-1], who)
    settle(session, observation, who)
    lease = session.get(Lease, observation.id)
    if observation.status == "needs_review" and (lease is None or lease.expires <= now()):
        session.merge(Lease(observation_id=observation.id, who=who, expires=now() + LEASE))


def send_back(session: Session, taxon: Taxon, name: str, who: str) -> set[int]:
    """After a split: votes for the taxon are withdrawn, its items lose their label `name` and become observations.

    Returns the collections whose items changed.
    """
    touched: set[int] = set()
    votes = session.scalars(select(Vote).where(Vote.taxon_id == taxon.id, Vote.withdrawn.is_(False))).all()
    for vote in votes:
        _withdraw(session, vote, who)
    session.flush()
    named = session.scalars(select(Observation.id).where(Observation.taxon_id == taxon.id))
    for number in sorted({*named, *(vote.observation_id for vote in votes)}):
        observation = session.get_one(Observation, number)
        settle(session, observation, who)
        if observation.taxon_id == taxon.id:  # by votes for what is below it; they were cast under another name
            for vote in standing_votes(session, number):
                _withdraw(session, vote, who)
            session.flush()
            settle(session, observation, who)
        touched.add(observation.collection_id)
    session.flush()
    for item in session.scalars(select(Item).where(Item.label == name)).all():
        item.label = None
        touched.add(item.collection_id)
        if item.sha256 is not None:
            _ask_about(session, item, taxon, who)
    return touched


def _withdraw(session: Session, vote: Vote, who: str) -> None:
    vote.withdrawn = True
    note(session, "withdrawn", who, observation=vote.observation_id, vote=vote.id)


def _ask_about(session: Session, item: Item, taxon: Taxon, who: str) -> None:
    """An observation of an item that was there before; the item stays, and is labelled again by the votes."""
    observation = Observation(
        collection_id=item.collection_id,
        status="needs_review",
        notes=f"was {taxon.name}, which was split up",
        submitter=who,
        identification={"predictions": [], "rejected": False, "reason": None, "model": item.model},
        doubt=1.0,
        sampled=False,
    )
    session.add(observation)
    session.flush()
    session.add(
        ObservationImage(
            observation_id=observation.id,
            sha256=item.sha256,
            media_type=item.media_type,
            width=item.width,
            height=item.height,
            model=item.model,
            embedding=item.embedding,
            item_id=item.id,
            adopted=True,
        )
    )
    note(session, "submitted", who, observation=observation.id, collection=item.collection_id)


def _named(session: Session, new: NewVote, who: str) -> Taxon | None:
    if new.kind == "taxon" and new.taxon is not None:
        return find_taxon(session, new.taxon)
    if new.kind == "new_taxon":
        # Somebody may have made it a moment ago.
        return taxon_named(session, new.name) or make_taxon(session, NewTaxon(new.name, new.rank, new.parent), who)
    return None


def votes_of(session: Session, observations: Sequence[int]) -> list[Vote]:
    """All votes on some observations, withdrawn ones too, in order."""
    query = select(Vote).where(Vote.observation_id.in_(observations)).order_by(Vote.id)
    return list(session.scalars(query))
