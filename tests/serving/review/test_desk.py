"""Observations from the queue to the index and back, merges and splits, and a machine of random reviewers."""

from contextlib import contextmanager, suppress
from datetime import timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from serving.errors import LeaseMissing, ObservationMissing, TaxonConflict, TaxonMissing, VoteMissing
from serving.library import Library, NewPicture
from serving.review import queue
from serving.review.desk import ReviewDesk
from serving.review.history import replay
from serving.review.observations import NewImage, NewObservation, doubt
from serving.review.taxonomy import NewTaxon
from serving.review.votes import NewVote
from serving.store.database import open_database
from serving.store.review_tables import Event, Lease, Observation, ObservationImage, Vote
from serving.store.tables import Item

DIM = 8
MODEL = "a" * 64


def vector_of(seed):
    found = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return found / np.linalg.norm(found)


@contextmanager
def opened(folder, share=0.0):
    folder.mkdir(parents=True, exist_ok=True)
    with open_database(folder / "readleaf.db") as database:
        library = Library(database, folder, model=MODEL, dim=DIM)
        desk = ReviewDesk(library, Random(1))
        if not library.list_collections():
            library.create_collection("c", "")
            desk.set_policy("c", rule="one_expert", blind=False, random_share=share)
        yield library, desk


@pytest.fixture
def place(tmp_path):
    with opened(tmp_path / "data") as found:
        yield found


def observation(seed, scores=(), taxa=(), rejected=False):
    predictions = [{"taxon": taxon, "score": score, "evidence": []} for taxon, score in zip(taxa, scores, strict=True)]
    picture = NewPicture(f"picture {seed}".encode(), "image/jpeg", 10, 10)
    known = {"predictions": predictions, "rejected": rejected, "reason": None, "model": MODEL}
    return NewObservation([NewImage(picture, vector_of(seed))], known)


def decided(desk, number, taxon, who="ann"):
    """Vote with a lease on this very observation."""
    lease(desk, number, who)
    return desk.vote(number, NewVote("taxon", taxon), who)


def lease(desk, number, who):
    def work(session):
        found = session.get_one(Observation, number)
        session.merge(Lease(observation_id=found.id, who=who, expires=queue.now() + queue.LEASE))

    desk._write(work)


def nearest(library, seed):
    found = library.search("c", vector_of(seed), 1)
    return (found[0].item.label, round(found[0].similarity, 4)) if found else None


def test_a_vote_is_searchable_at_once_and_gone_after_undo(place):
    library, desk = place
    oak = desk.make_taxon(NewTaxon("oak", "species"), "ann")
    made = desk.submit("c", observation(1), "visitor").observation
    assert (made.status, nearest(library, 1)) == ("needs_review", None)
    seen, waiting = desk.next("c", "ann")
    assert (seen.observation.id, waiting, seen.lease.who) == (made.id, 1, "ann")
    seen = desk.vote(made.id, NewVote("taxon", oak.id, comment="lobed"), "ann")
    assert (seen.observation.status, seen.observation.taxon_id, seen.lease) == ("verified", oak.id, None)
    assert nearest(library, 1) == ("oak", 1.0)
    item = library.get_item("c", seen.images[0].item_id)
    assert item.details == {
        "observation": made.id,
        "votes": [seen.votes[0].id],
        "decided_by": ["ann"],
        "identified_by": MODEL,
    }
    assert library.read_picture(item) == b"picture 1"
    assert desk.next("c", "ann") == (None, 0)
    seen = desk.undo(made.id, "ann")
    assert (seen.observation.status, nearest(library, 1)) == ("needs_review", None)
    assert seen.lease.who == "ann"
    assert [event.kind for event in seen.events] == [
        "submitted", "voted", "decided", "item_added", "withdrawn", "decided", "item_removed",
    ]  # fmt: skip
    assert library.pictures.path(seen.images[0].sha256).exists()
    with pytest.raises(VoteMissing, match="no vote on observation 1"):
        desk.undo(made.id, "ann")


def test_a_lease_is_one_persons(place):
    _, desk = place
    number = desk.submit("c", observation(1), "").observation.id
    with pytest.raises(LeaseMissing, match="no lease on observation 1; POST"):
        desk.vote(number, NewVote("cannot_tell"), "ann")
    assert desk.next("c", "ann")[0].observation.id == number
    assert desk.next("c", "ann")[0].observation.id == number  # a reload shows the same
    assert desk.next("c", "bob") == (None, 1)
    with pytest.raises(LeaseMissing, match="somebody else has it"):
        desk.vote(number, NewVote("cannot_tell"), "bob")
    desk.release(number, "ann")
    assert desk.next("c", "bob")[0].observation.id == number


def test_a_lease_ends(place, monkeypatch):
    _, desk = place
    number = desk.submit("c", observation(1), "").observation.id
    desk.next("c", "ann")
    later = queue.now() + queue.LEASE - timedelta(seconds=5)
    monkeypatch.setattr(queue, "now", lambda: later)
    assert desk.renew(number, "ann").lease.expires == later + queue.LEASE
    after = later + queue.LEASE + timedelta(seconds=1)
    monkeypatch.setattr(queue, "now", lambda: after)
    with pytest.raises(LeaseMissing):
        desk.vote(number, NewVote("cannot_tell"), "ann")
    with pytest.raises(LeaseMissing):
        desk.renew(number, "ann")
    assert desk.next("c", "bob")[0].observation.id == number


def test_the_doubtful_come_first_and_can_be_skipped(place):
    _, desk = place
    taxa = [desk.make_taxon(NewTaxon(name), "ann").id for name in ("oak", "elm")]
    sure = desk.submit("c", observation(1, (0.95, 0.05), taxa), "").observation
    torn = desk.submit("c", observation(2, (0.6, 0.4), taxa), "").observation
    unknown = desk.submit("c", observation(3, rejected=True), "").observation
    assert sure.doubt < torn.doubt < unknown.doubt == 1.0
    assert desk.next("c", "ann")[0].observation.id == unknown.id
    assert desk.next("c", "ann", skip=[unknown.id])[0].observation.id == torn.id
    assert desk.next("c", "bob")[0].observation.id == unknown.id  # it was given back


def test_what_looks_like_the_last_one_can_wait(place):
    _, desk = place
    seeds = (1, 1, 2)
    first, twin, other = (desk.submit("c", observation(seed), "").observation.id for seed in seeds)
    decided(desk, first, desk.make_taxon(NewTaxon("oak"), "ann").id)
    assert desk.next("c", "ann")[0].observation.id == other
    assert desk.next("c", "bob")[0].observation.id == twin  # who has seen nothing yet


@pytest.mark.parametrize(
    ("scores", "expected"), [((), 1.0), ((1.0,), 0.0), ((1.0, 0.0), 0.0), ((0.5, 0.5), 1.0), ((0.0,), 0.5)]
)
def test_doubt(scores, expected):
    assert doubt(scores) == pytest.approx(expected)


def test_the_random_share_is_shown_as_it_comes(tmp_path):
    with opened(tmp_path, share=1.0) as (_, desk):
        taxon = desk.make_taxon(NewTaxon("oak"), "ann").id
        numbers = [desk.submit("c", observation(seed, (0.9,), [taxon]), "").observation.id for seed in range(3)]
        found = []
        while (seen := desk.next("c", "ann")[0]) is not None:
            assert seen.observation.sampled
            found.append(seen.observation.id)
            desk.vote(seen.observation.id, NewVote("taxon", taxon), "ann")
        assert found == numbers


def test_two_people_are_asked_and_votes_may_meet_in_the_genus(place):
    library, desk = place
    desk.set_policy("c", rule="two_thirds", blind=False, random_share=0.0)
    genus = desk.make_taxon(NewTaxon("Quercus", "genus"), "ann").id
    robur, petraea = (desk.make_taxon(NewTaxon(name, "species", genus), "ann").id for name in ("robur", "petraea"))
    number = desk.submit("c", observation(1), "").observation.id
    desk.next("c", "ann")
    assert desk.vote(number, NewVote("taxon", robur), "ann").observation.status == "needs_review"
    assert desk.next("c", "ann")[0] is None  # who has voted is not asked again
    desk.next("c", "bob")
    seen = desk.vote(number, NewVote("taxon", petraea), "bob")
    assert (seen.observation.status, seen.observation.taxon_id) == ("verified", genus)
    assert nearest(library, 1) == ("Quercus", 1.0)
    # What two people call by two names is one species after all.
    desk.merge_taxa(petraea, robur, "admin")
    assert desk.get(number).observation.taxon_id == robur
    assert nearest(library, 1) == ("robur", 1.0)


def test_a_new_taxon_is_made_once(place):
    _, desk = place
    for seed in range(2):
        number = desk.submit("c", observation(seed), "").observation.id
        lease(desk, number, "ann")
        desk.vote(number, NewVote("new_taxon", name="Quercus suber", rank="species"), "ann")
    [taxon] = desk.taxa("suber")
    assert (taxon.name, taxon.rank) == ("Quercus suber", "species")
    assert {seen.observation.taxon_id for seen in desk.find()} == {taxon.id}


def test_renaming_takes_items_along(place):
    library, desk = place
    item = library.add_item("c", vector=vector_of(9), label="common oak", details={}, picture=None)
    taxon = desk.taxa_of_labels(["common oak"], "ann")["common oak"]
    desk.rename_taxon(taxon.id, "Quercus robur", "ann")
    assert library.get_item("c", item.id).label == "Quercus robur"
    assert desk.taxon(taxon.id).synonyms == ["common oak"]
    assert [found.id for found in desk.taxa("COMMON")] == [taxon.id]
    assert [event.kind for event in desk.taxon_history(taxon.id)] == ["taxon_made", "renamed"]


def test_merging_takes_items_children_and_predictions_along(place):
    library, desk = place
    gone, kept = (desk.make_taxon(NewTaxon(name, "genus"), "ann") for name in ("Aster", "Symphyotrichum"))
    child = desk.make_taxon(NewTaxon("Aster novae-angliae", "species", gone.id), "ann")
    library.add_item("c", vector=vector_of(9), label="Aster", details={}, picture=None)
    number = desk.submit("c", observation(1, (1.0,), [gone.id]), "").observation.id
    desk.merge_taxa(gone.id, kept.id, "ann")
    assert nearest(library, 9) == ("Symphyotrichum", 1.0)
    assert desk.taxon(gone.id).id == kept.id  # an old number still leads there
    assert desk.taxon(child.id).parent_id == kept.id
    assert desk.get(number).taxa[gone.id].name == "Symphyotrichum"
    assert desk.taxon(kept.id).synonyms == ["Aster"]


def test_a_split_sends_its_items_to_review(place):
    library, desk = place
    old = desk.make_taxon(NewTaxon("Parus", "species"), "ann")
    picture = NewPicture(b"an old picture", "image/jpeg", 10, 10)
    imported = library.add_item("c", vector=vector_of(5), label="Parus", details={"by": "me"}, picture=picture)
    bare = library.add_item("c", vector=vector_of(6), label="Parus", details={}, picture=None)
    number = desk.submit("c", observation(1), "").observation.id
    decided(desk, number, old.id)
    first, second = desk.split_taxon(old.id, [NewTaxon("Parus major"), NewTaxon("Parus minor")], "ann")
    assert (first.rank, second.rank) == ("species", "species")
    with pytest.raises(TaxonMissing, match="was split up"):
        desk.taxon(old.id)
    assert [library.get_item("c", item.id).label for item in (imported, bare)] == [None, None]
    waiting = desk.find(status="needs_review")
    assert [seen.images[0].item_id for seen in waiting] == [None, imported.id]
    seen = decided(desk, waiting[1].observation.id, first.id)
    again = library.get_item("c", imported.id)
    assert (again.label, again.details["by"]) == ("Parus major", "me")
    desk.undo(seen.observation.id, "ann")
    assert library.get_item("c", imported.id).label is None  # it was there before, so it stays


@pytest.mark.parametrize("parts", [("Quercus", "Cyclobalanopsis"), ("Erythrobalanus", "Cyclobalanopsis")])
def test_a_split_sends_back_what_votes_below_it_made(place, parts):
    library, desk = place
    desk.set_policy("c", rule="two_thirds", blind=False, random_share=0.0)
    genus = desk.make_taxon(NewTaxon("Quercus", "genus"), "ann").id
    species = [desk.make_taxon(NewTaxon(name, "species", genus), "ann").id for name in ("robur", "glauca")]
    number = desk.submit("c", observation(1), "").observation.id
    for who, taxon in zip(("ann", "bob"), species, strict=True):
        decided(desk, number, taxon, who)
    assert desk.get(number).observation.taxon_id == genus
    desk.split_taxon(genus, [NewTaxon(name) for name in parts], "ann")
    [seen] = desk.find()
    assert (seen.observation.status, seen.observation.taxon_id) == ("needs_review", None)
    assert library.search("c", vector_of(1), 5) == []


def test_one_part_may_keep_the_name(place):
    _, desk = place
    old = desk.make_taxon(NewTaxon("Parus", "species"), "ann")
    parts = desk.split_taxon(old.id, [NewTaxon("Parus"), NewTaxon("Parus minor")], "ann")
    assert parts[0].id == old.id
    assert not desk.taxon(old.id).retired


def test_what_a_taxonomy_cannot_take(place):
    _, desk = place
    family = desk.make_taxon(NewTaxon("Fagaceae", "family"), "ann")
    genus = desk.make_taxon(NewTaxon("Quercus", "genus", family.id), "ann")
    for refused in (
        lambda: desk.make_taxon(NewTaxon("Quercus"), "ann"),
        lambda: desk.rename_taxon(family.id, "Quercus", "ann"),
        lambda: desk.place_taxon(family.id, genus.id, "ann"),
        lambda: desk.place_taxon(family.id, family.id, "ann"),
        lambda: desk.merge_taxa(family.id, genus.id, "ann"),
        lambda: desk.merge_taxa(genus.id, genus.id, "ann"),
        lambda: desk.split_taxon(genus.id, [NewTaxon("a")], "ann"),
        lambda: desk.split_taxon(genus.id, [NewTaxon("a"), NewTaxon("a")], "ann"),
    ):
        with pytest.raises(TaxonConflict):
            refused()
    for missing in (lambda: desk.taxon(99), lambda: desk.make_taxon(NewTaxon("x", parent=99), "ann")):
        with pytest.raises(TaxonMissing, match="no taxon 99"):
            missing()
    with pytest.raises(ObservationMissing, match="no observation 99"):
        desk.get(99)


def test_a_picture_that_is_there_already_stays_its_owners(place):
    library, desk = place
    picture = NewPicture(b"picture 1", "image/jpeg", 10, 10)
    item = library.add_item("c", vector=vector_of(1), label="mine", details={}, picture=picture)
    number = desk.submit("c", observation(1), "").observation.id
    seen = decided(desk, number, desk.make_taxon(NewTaxon("oak"), "ann").id)
    assert seen.images[0].item_id is None
    desk.undo(number, "ann")
    assert library.get_item("c", item.id).label == "mine"


def test_deleting_a_collection_deletes_its_observations_and_their_pictures(place):
    library, desk = place
    seen = desk.submit("c", observation(1), "")
    path = library.pictures.path(seen.images[0].sha256)
    assert path.exists()
    library.delete_collection("c")
    assert not path.exists()
    with pytest.raises(ObservationMissing):
        desk.get(seen.observation.id)


PEOPLE = ("ann", "bob", "cy")


class Reviewers(RuleBasedStateMachine):
    """People who submit, vote, undo, merge, rename and split at random, through restarts."""

    folder = None
    round = 0

    def __init__(self):
        super().__init__()
        Reviewers.round += 1
        self.place = Reviewers.folder / str(Reviewers.round)
        self.count = 0
        self.open()
        genus = self.desk.make_taxon(NewTaxon("genus", "genus"), "ann").id
        self.taxa = [genus, *(self.desk.make_taxon(NewTaxon(name, "species", genus), "ann").id for name in "abc")]
        self.desk.set_policy("c", rule="two_thirds", blind=False, random_share=0.2)

    def open(self):
        self.context = opened(self.place)
        self.library, self.desk = self.context.__enter__()

    def teardown(self):
        self.context.__exit__(None, None, None)

    def live(self):
        return [taxon.id for taxon in self.desk.taxa(limit=500)]

    @rule()
    def submit(self):
        self.count += 1
        self.desk.submit("c", observation(self.count), "visitor")

    @rule(
        who=st.sampled_from(PEOPLE),
        choice=st.integers(0, 20),
        kind=st.sampled_from(["taxon"] * 4 + ["cannot_tell", "not_an_organism"]),
    )
    def vote(self, who, choice, kind):
        seen, _ = self.desk.next("c", who)
        if seen is not None:
            live = self.live()
            taxon = live[choice % len(live)] if kind == "taxon" else None
            self.desk.vote(seen.observation.id, NewVote(kind, taxon), who)

    @rule(who=st.sampled_from(PEOPLE), choice=st.integers(0, 20))
    def undo(self, who, choice):
        if self.count:
            number = 1 + choice % self.count
            try:
                self.desk.undo(number, who)
            except VoteMissing:
                assert all(vote.withdrawn or vote.who != who for vote in self.desk.get(number).votes)

    @rule(first=st.integers(0, 20), second=st.integers(0, 20))
    def merge(self, first, second):
        live = self.live()
        with suppress(TaxonConflict):
            self.desk.merge_taxa(live[first % len(live)], live[second % len(live)], "ann")

    @rule(choice=st.integers(0, 20))
    def split(self, choice):
        live = self.live()
        taxon = self.desk.taxon(live[choice % len(live)])
        self.desk.split_taxon(taxon.id, [NewTaxon(f"{taxon.name}1"), NewTaxon(f"{taxon.name}2")], "ann")
        self.count = max([self.count, *(seen.observation.id for seen in self.desk.find(limit=500))])

    @rule(choice=st.integers(0, 20), name=st.sampled_from("xyz"))
    def rename(self, choice, name):
        live = self.live()
        with suppress(TaxonConflict):
            self.desk.rename_taxon(live[choice % len(live)], name, "ann")

    @rule(rule=st.sampled_from(["one_expert", "two_thirds"]))
    def change_policy(self, rule):
        self.desk.set_policy("c", rule=rule, blind=False, random_share=0.2)

    @rule()
    def restart(self):
        self.teardown()
        self.open()

    @invariant()
    def history_replays_to_the_same_state(self):
        with self.library.read() as session:
            states = replay(session.scalars(select(Event).order_by(Event.number)))
            observations = session.scalars(select(Observation)).all()
            assert set(states) == {each.id for each in observations}
            for each in observations:
                state = states[each.id]
                votes = session.scalars(select(Vote).where(Vote.observation_id == each.id, ~Vote.withdrawn)).all()
                images = session.scalars(select(ObservationImage).where(ObservationImage.observation_id == each.id))
                assert (state.status, state.taxon) == (each.status, each.taxon_id)
                assert state.votes == {vote.id: (vote.who, vote.kind, vote.taxon_id) for vote in votes}
                assert state.items == {image.item_id for image in images if image.item_id and not image.adopted}

    @invariant()
    def items_are_what_was_verified(self):
        with self.library.read() as session:
            names = {taxon.id: taxon.name for taxon in self.desk.taxa(limit=500)}
            verified = session.scalars(select(Observation).where(Observation.status == "verified")).all()
            expected = sorted(names[each.taxon_id] for each in verified)
            assert sorted(session.scalars(select(Item.label).where(Item.label.is_not(None)))) == expected
            found = self.library.search("c", vector_of(0), 100)
            assert sorted(each.item.id for each in found) == sorted(session.scalars(select(Item.id)))

    @invariant()
    def nobody_counts_twice_and_no_lease_outlives_a_decision(self):
        with self.library.read() as session:
            rows = session.execute(select(Vote.observation_id, Vote.who).where(~Vote.withdrawn)).all()
            assert len(rows) == len(set(rows))
            held = select(Observation.status).join(Lease, Lease.observation_id == Observation.id)
            assert set(session.scalars(held)) <= {"needs_review"}


@pytest.mark.campaign
def test_random_reviewers(tmp_path, rounds):
    Reviewers.folder = tmp_path
    run_state_machine_as_test(
        Reviewers,
        settings=settings(
            max_examples=rounds(15, 300),
            stateful_step_count=rounds(25, 60),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
