"""What the routes call: each method is one transaction, and the index has followed when it returns."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.library import Library
from serving.review import queue, taxonomy
from serving.review.figures import Figures, figures
from serving.review.observations import NewObservation, events_of, find_observation, images_of, submit
from serving.review.settling import policy_of, settle
from serving.review.taxonomy_import import ImportReport, import_taxa
from serving.review.votes import NewVote, cast_vote, send_back, take_back, votes_of
from serving.store.questions import find_collection
from serving.store.review_tables import Event, Lease, Observation, ObservationImage, ReviewPolicy, Rule, Taxon, Vote
from serving.store.tables import Collection as CollectionRow
from serving.store.tables import Item, now

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Seen:
    """An observation with all that belongs to it, as it is now."""

    observation: Observation
    collection: str
    images: list[ObservationImage]
    votes: list[Vote]
    events: list[Event]
    taxa: dict[int, Taxon]  # all that are named in it; of one that was merged, the one it is now
    evidence: dict[int, Item]  # items that were neighbours, those that are still there
    lease: Lease | None
    blind: bool


class ReviewDesk:
    """Observations, their queue, votes and the taxonomy; every method may be called from any thread."""

    def __init__(self, library: Library, random: Random | None = None) -> None:
        self._library = library
        self._random = random or Random()

    def submit(self, collection: str, new: NewObservation, who: str) -> Seen:
        """Keep an observation; the random share is drawn here."""

        def work(session: Session) -> Seen:
            number = find_collection(session, collection).id
            sampled = self._random.random() < policy_of(session, number).random_share
            made = submit(session, self._library.pictures, number, new, who, sampled=sampled)
            return _seen(session, made)

        return self._write(work)

    def get(self, number: int) -> Seen:
        """One observation."""
        with self._library.read() as session:
            return _seen(session, find_observation(session, number))

    def find(
        self, *, collection: str | None = None, status: str | None = None, after: int = 0, limit: int = 50
    ) -> list[Seen]:
        """Observations with a number above `after`, in the order they came."""
        with self._library.read() as session:
            query = select(Observation).where(Observation.id > after)
            if collection is not None:
                query = query.where(Observation.collection_id == find_collection(session, collection).id)
            if status is not None:
                query = query.where(Observation.status == status)
            found = session.scalars(query.order_by(Observation.id).limit(limit)).all()
            return [_seen(session, each) for each in found]

    def next(self, collection: str, who: str, skip: Collection[int] = ()) -> tuple[Seen | None, int]:
        """What somebody should look at, leased to them, and how many wait in all."""

        def work(session: Session) -> tuple[Seen | None, int]:
            number = find_collection(session, collection).id
            found = queue.lease_next(session, number, who, self._random, skip)
            session.flush()
            return (None if found is None else _seen(session, found)), queue.queue_length(session, number)

        return self._write(work)

    def renew(self, number: int, who: str) -> Seen:
        """Hold an observation for longer."""

        def work(session: Session) -> Seen:
            observation = find_observation(session, number)
            queue.renew(session, observation, who)
            return _seen(session, observation)

        return self._write(work)

    def release(self, number: int, who: str) -> None:
        """Give an observation back without a vote."""
        self._write(lambda session: queue.release(session, find_observation(session, number), who))

    def vote(self, number: int, new: NewVote, who: str) -> Seen:
        """Say what an observation is; if that decides it, its pictures can be found when this returns."""

        def work(session: Session) -> Seen:
            observation = find_observation(session, number)
            cast_vote(session, observation, new, who)
            return _seen(session, observation)

        seen = self._write(work)
        self._library.follow(seen.observation.collection_id)
        return seen

    def undo(self, number: int, who: str) -> Seen:
        """Take one's vote back; what it had put into the collection is gone when this returns."""

        def work(session: Session) -> Seen:
            observation = find_observation(session, number)
            take_back(session, observation, who)
            session.flush()
            return _seen(session, observation)

        seen = self._write(work)
        self._library.follow(seen.observation.collection_id)
        return seen

    def get_policy(self, collection: str) -> ReviewPolicy:
        """How a collection's observations are decided."""
        with self._library.read() as session:
            return policy_of(session, find_collection(session, collection).id)

    def set_policy(self, collection: str, *, rule: Rule, blind: bool, random_share: float) -> ReviewPolicy:
        """Change it; what waits is decided anew, what is decided stays."""

        def work(session: Session) -> ReviewPolicy:
            number = find_collection(session, collection).id
            policy = ReviewPolicy(collection_id=number, rule=rule, blind=blind, random_share=random_share)
            merged = session.merge(policy)
            session.flush()
            waiting = select(Observation).where(
                Observation.collection_id == number,
                Observation.status == "needs_review",
                Observation.id.in_(select(Vote.observation_id).where(Vote.withdrawn.is_(False))),
            )
            for observation in session.scalars(waiting).all():
                settle(session, observation, "policy")
            return merged

        changed = self._write(work)
        self._library.follow(changed.collection_id)
        return changed

    def figures(self, collection: str) -> Figures:
        """How a collection's review goes."""
        with self._library.read() as session:
            return figures(session, find_collection(session, collection).id, now=now())

    def import_taxa(self, source: bytes, who: str) -> ImportReport:
        """Take a taxonomy in, all rows that can be taken."""
        report = self._write(lambda session: import_taxa(session, source, who))
        for collection in report.touched:
            self._library.follow(collection)
        return report

    def taxon(self, number: int) -> Taxon:
        """A live taxon."""
        with self._library.read() as session:
            return taxonomy.find_taxon(session, number)

    def taxa(self, text: str = "", limit: int = 50, after: int = 0) -> Sequence[Taxon]:
        """Taxa with `text` in one of their names."""
        with self._library.read() as session:
            return taxonomy.search_taxa(session, text, limit, after)

    def known_taxa(self, labels: Sequence[str]) -> dict[str, Taxon]:
        """The taxa of labels, of those that have one."""
        with self._library.read() as session:
            found = session.scalars(select(Taxon).where(Taxon.name.in_(labels), Taxon.retired.is_(False)))
            return {taxon.name: taxon for taxon in found}

    def taxon_history(self, number: int) -> Sequence[Event]:
        """What happened to a taxon."""
        with self._library.read() as session:
            return session.scalars(select(Event).where(Event.taxon_id == number).order_by(Event.number)).all()

    def make_taxon(self, new: taxonomy.NewTaxon, who: str) -> Taxon:
        """A new taxon."""
        return self._write(lambda session: taxonomy.make_taxon(session, new, who))

    def taxa_of_labels(self, labels: Sequence[str], who: str) -> dict[str, Taxon]:
        """The taxon of each label, made where there is none."""
        return self._write(lambda session: {label: taxonomy.taxon_of_label(session, label, who) for label in labels})

    def rename_taxon(self, number: int, name: str, who: str) -> Taxon:
        """Another accepted name; items follow."""
        return self._write(lambda session: taxonomy.rename(session, number, name, who))

    def place_taxon(self, number: int, parent: int | None, who: str) -> Taxon:
        """Below another taxon; votes are counted anew."""
        return self._change(lambda session: taxonomy.place(session, number, parent, who), who)

    def merge_taxa(self, number: int, into: int, who: str) -> Taxon:
        """Two become one; items, votes and decisions follow, and votes are counted anew."""
        return self._change(lambda session: taxonomy.merge(session, number, into, who), who)

    def split_taxon(self, number: int, parts: Sequence[taxonomy.NewTaxon], who: str) -> list[Taxon]:
        """One becomes several; what named it goes to review."""
        touched: set[int] = set()

        def work(session: Session) -> list[Taxon]:
            made, taxon = taxonomy.split(session, number, parts, who)
            touched.update(send_back(session, taxon, taxon.name, who))
            return made

        made = self._write(work)
        for collection in touched:
            self._library.follow(collection)
        return made

    def _change(self, change: Callable[[Session], tuple[Taxon, set[int]]], who: str) -> Taxon:
        """A change of the taxonomy after which some observations have to be settled anew."""
        touched: set[int] = set()

        def work(session: Session) -> Taxon:
            taxon, affected = change(session)
            for number in sorted(affected):
                observation = session.get_one(Observation, number)
                settle(session, observation, who)
                touched.add(observation.collection_id)
            return taxon

        taxon = self._write(work)
        for collection in touched:
            self._library.follow(collection)
        return taxon

    def _write(self, work: Callable[[Session], Answer]) -> Answer:
        with self._library.write() as session:
            return work(session)


def _seen(session: Session, observation: Observation) -> Seen:
    """Everything of an observation, read in the same transaction."""
    session.flush()
    votes = votes_of(session, [observation.id])
    named = {vote.taxon_id for vote in votes} | {observation.taxon_id}
    named |= {prediction["taxon"] for prediction in observation.identification["predictions"]}
    lease = session.get(Lease, observation.id)
    return Seen(
        observation,
        session.get_one(CollectionRow, observation.collection_id).name,
        images_of(session, observation.id),
        votes,
        events_of(session, observation.id),
        {number: _now(session, number) for number in named if number is not None},
        _items(session, observation),
        lease if lease is not None and lease.expires > now() else None,
        policy_of(session, observation.collection_id).blind,
    )


def _items(session: Session, observation: Observation) -> dict[int, Item]:
    named = [number for each in observation.identification["predictions"] for number, _ in each["evidence"]]
    return {item.id: item for item in session.scalars(select(Item).where(Item.id.in_(named)))}


def _now(session: Session, number: int) -> Taxon:
    taxon = session.get_one(Taxon, number)
    while taxon.merged_into is not None:
        taxon = session.get_one(Taxon, taxon.merged_into)
    return taxon
