"""Figures of a small review counted by hand, and of a large one in time."""

import time
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from sqlalchemy import insert

from serving.review.figures import Confusion, figures, wilson
from serving.store.database import open_database
from serving.store.review_tables import Observation, Taxon, Vote
from serving.store.tables import Collection

NOW = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
FAGACEAE, QUERCUS, ROBUR, PETRAEA, ULMUS, OLD_ROBUR = range(1, 7)


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "readleaf.db") as database:
        with database.writing() as session:
            session.add_all([Collection(id=1, name="c", description=""), Collection(id=2, name="d", description="")])
            session.add(Taxon(id=FAGACEAE, name="Fagaceae", rank="family"))
            session.flush()
            session.add(Taxon(id=QUERCUS, name="Quercus", rank="genus", parent_id=FAGACEAE))
            session.flush()
            session.add(Taxon(id=ROBUR, name="Quercus robur", rank="species", parent_id=QUERCUS))
            session.flush()
            session.add(Taxon(id=PETRAEA, name="Quercus petraea", rank="species", parent_id=QUERCUS))
            session.add(Taxon(id=ULMUS, name="Ulmus", rank="genus"))
            session.add(Taxon(id=OLD_ROBUR, name="oak", rank="species", retired=True, merged_into=ROBUR))
        yield database


def seen(predicted, decided, *, status="verified", sampled=True, hours=None, collection=1):
    predictions = [] if predicted is None else [{"taxon": predicted, "score": 0.7, "evidence": []}]
    return Observation(
        collection_id=collection,
        status=status,
        taxon_id=decided,
        identification={"predictions": predictions, "rejected": False, "reason": None, "model": "m"},
        doubt=0.5,
        sampled=sampled,
        decided=None if hours is None else NOW - timedelta(hours=hours),
    )


def counted(database, observations, votes=()):
    """Figures of these observations; `votes` are (place of the observation, who, kind, taxon, withdrawn)."""
    with database.writing() as session:
        session.add_all(observations)
        session.flush()
        session.add_all(
            Vote(observation_id=observations[place].id, who=who, kind=kind, taxon_id=taxon, withdrawn=gone)
            for place, who, kind, taxon, gone in votes
        )
    with database.reading() as session:
        return figures(session, 1, now=NOW)


def test_nothing_yet(database):
    found = counted(database, [])
    assert found.statuses == {"needs_review": 0, "verified": 0, "rejected": 0, "uncertain": 0}
    assert (found.waiting, found.decisions_last_day, found.decisions_an_hour) == (0, 0, None)
    assert (found.votes, found.people, found.compared, found.agreement) == (0, 0, 0, None)
    assert (found.accuracy.total, found.accuracy.share, found.accuracy.low) == (0, None, None)
    assert found.confusions == ()


def test_statuses_and_decisions_an_hour(database):
    found = counted(
        database,
        [
            seen(None, None, status="needs_review"),
            seen(None, None, status="needs_review"),
            seen(ROBUR, ROBUR, hours=1),
            seen(ROBUR, ROBUR, hours=1.1),
            seen(ROBUR, ROBUR, hours=1.2),
            seen(ROBUR, None, status="rejected", hours=20),
            seen(ROBUR, None, status="uncertain", hours=25),
            seen(ROBUR, ROBUR, collection=2, hours=1),
        ],
    )
    assert found.statuses == {"needs_review": 2, "verified": 3, "rejected": 1, "uncertain": 1}
    assert (found.waiting, found.decisions_last_day, found.decisions_an_hour) == (2, 4, 2.0)


@pytest.mark.parametrize(
    ("predicted", "decided", "right"),
    [
        (ROBUR, ROBUR, True),
        (OLD_ROBUR, ROBUR, True),  # merged since
        (ROBUR, QUERCUS, True),  # the decision is coarser
        (OLD_ROBUR, FAGACEAE, True),
        (QUERCUS, ROBUR, False),  # the prediction is
        (PETRAEA, ROBUR, False),
        (ULMUS, FAGACEAE, False),
        (None, ROBUR, False),
    ],
)
def test_what_is_right(database, predicted, decided, right):
    found = counted(database, [seen(predicted, decided)]).accuracy
    assert (found.right, found.total, found.silent) == (right, 1, predicted is None)


def test_the_random_share_is_apart_and_confusions_are_of_all(database):
    found = counted(
        database,
        [
            seen(ROBUR, ROBUR),
            seen(ROBUR, PETRAEA),
            seen(OLD_ROBUR, PETRAEA, sampled=False),
            seen(ULMUS, ROBUR, sampled=False),
            seen(None, ROBUR, sampled=False),
            seen(ROBUR, None, status="rejected"),
            seen(ROBUR, None, status="uncertain", sampled=False),
            seen(ULMUS, ROBUR, collection=2),
        ],
    )
    own, biased = found.accuracy, found.biased_accuracy
    assert (own.right, own.total, own.left_out, own.share) == (1, 2, 1, 0.5)
    assert (biased.right, biased.total, biased.silent, biased.left_out) == (1, 5, 1, 2)
    assert found.confusions == (
        Confusion("Quercus robur", "Quercus petraea", 2),
        Confusion("Ulmus", "Quercus robur", 1),
    )


def test_votes_that_stand(database):
    found = counted(
        database,
        [seen(None, ROBUR), seen(None, ULMUS), seen(None, ROBUR), seen(None, None, collection=2)],
        [
            (0, "ann", "taxon", ROBUR, False),
            (0, "bob", "new_taxon", ROBUR, False),
            (0, "cy", "taxon", ULMUS, True),
            (1, "ann", "taxon", ULMUS, False),
            (1, "bob", "cannot_tell", None, False),
            (2, "dan", "taxon", ROBUR, False),
            (3, "eve", "taxon", ROBUR, False),
        ],
    )
    assert (found.votes, found.people, found.compared) == (5, 3, 2)
    # Two pairs, one of which differs; of 4 votes by chance 10 of 12 ordered pairs would.
    assert found.agreement == pytest.approx(1 - 0.5 / (10 / 12))


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson(right, total, low, high):
    """The last row is an example of Newcombe, 1998."""
    assert wilson(right, total) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_fifty_thousand_observations(database):
    random, species, count = Random(0), range(100, 400), 50_000
    with database.writing() as session:
        session.add_all(Taxon(id=each, name=f"species {each}", rank="species", parent_id=QUERCUS) for each in species)
        session.flush()
        observations = [
            {
                "id": number,
                "collection_id": 1,
                "status": "verified",
                "taxon_id": random.choice(species),
                "identification": {"predictions": [{"taxon": random.choice(species)}]},
                "doubt": 0.5,
                "sampled": number % 10 == 0,
                "decided": NOW - timedelta(hours=random.random() * 100),
            }
            for number in range(1, count + 1)
        ]
        session.execute(insert(Observation), observations)
        votes = [
            {"observation_id": number, "who": who, "kind": "taxon", "taxon_id": random.choice(species)}
            for number in range(2, count + 1, 2)
            for who in ("ann", "bob")
        ]
        session.execute(insert(Vote), votes)
    began = time.perf_counter()
    with database.reading() as session:
        found = figures(session, 1, now=NOW)
    took = time.perf_counter() - began
    assert (found.biased_accuracy.total, found.accuracy.total, found.compared) == (count, count // 10, count // 2)
    assert len(found.confusions) == 20
    assert took < 10  # 1.2 s beside a training
