"""Eight reviewers at once; and SIGKILL in the middle of voting and importing."""

import random
import signal
import threading
import time
from collections import Counter

import httpx
import numpy as np
import pytest
from sqlalchemy import select

from serving.client import ApiError, Client, ServiceUnreachable
from serving.library import Library
from serving.review.history import replay
from serving.store.database import open_database
from serving.store.review_tables import Event, Lease, Observation, ObservationImage, Vote
from serving.store.tables import Item

pytestmark = pytest.mark.campaign
REVIEWERS = 8


def review_until_empty(url, who, decided, lock):
    """Take what comes, vote, and now and then give it back or take it back."""
    chance = random.Random(who)
    with Client(url, reviewer=who) as client:
        while (found := client.next_observation("c")) is not None:
            number = found.observation.id
            assert found.observation.lease.who == who
            if chance.random() < 0.1:
                client.release(number)
                continue
            kind = chance.choice(["cannot_tell", "not_an_organism"])
            said = {} if chance.random() < 0.2 else {"name": f"kind {chance.randrange(5)}"}
            client.vote(number, "new_taxon" if said else kind, **said)
            if chance.random() < 0.1:
                client.undo(number)
                client.vote(number, "cannot_tell")
            with lock:
                decided.append(number)


def test_eight_reviewers(run_service, tmp_path, photo, encoded, rounds):
    with run_service(tmp_path / "data") as service:
        service.client.create_collection("c")
        pictures = [encoded(photo(40, 30, seed=number)) for number in range(rounds(40, 400))]
        sent = [service.client.submit_observation("c", [data]).id for data in pictures]
        decided, lock = [], threading.Lock()
        failures = []

        def work(who):
            try:
                review_until_empty(service.url, who, decided, lock)
            except Exception as error:
                failures.append((who, error))

        threads = [threading.Thread(target=work, args=(f"reviewer {number}",)) for number in range(REVIEWERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert Counter(decided) == Counter(sent)  # each once, none lost
    check_whole(tmp_path / "data")


def check_whole(folder):
    """History, tables, items and index agree; returns standing votes by observation."""
    with open_database(folder / "readleaf.db") as database:
        with database.reading() as session:
            model, size = session.execute(select(ObservationImage.model, ObservationImage.embedding)).first()
        library = Library(database, folder, model=model, dim=len(size) // 4)
        with library.read() as session:
            states = replay(session.scalars(select(Event).order_by(Event.number)))
            votes = session.scalars(select(Vote).where(~Vote.withdrawn)).all()
            for observation in session.scalars(select(Observation)):
                state = states[observation.id]
                assert (state.status, state.taxon) == (observation.status, observation.taxon_id)
                own = {vote.id for vote in votes if vote.observation_id == observation.id}
                assert set(state.votes) == own
                images = session.scalars(
                    select(ObservationImage).where(ObservationImage.observation_id == observation.id)
                ).all()
                assert {image.item_id for image in images if image.item_id} == state.items
                assert bool(state.items) == (observation.status == "verified")
                assert all(library.pictures.path(image.sha256).exists() for image in images)
            held = session.scalars(select(Observation.status).join(Lease, Lease.observation_id == Observation.id))
            assert set(held) <= {"needs_review"}
            items = sorted(session.scalars(select(Item.id)))
            vector = session.scalar(select(ObservationImage).limit(1)).embedding
        found = library.search("c", np.frombuffer(vector, dtype="<f4"), 10_000)
        assert sorted(each.item.id for each in found) == items
        return Counter(vote.observation_id for vote in votes)


def vote_until_killed(url, who, ledger, lock):
    """Vote and take back, and note what was acknowledged."""
    chance = random.Random(who)
    with Client(url, reviewer=who) as client:
        try:
            while (found := client.next_observation("c")) is not None:
                number = found.observation.id
                client.vote(number, "new_taxon", name=f"kind {chance.randrange(3)}")
                with lock:
                    ledger[number] = 1
                if chance.random() < 0.3:
                    with lock:
                        ledger[number] = None  # either may be true if nobody says so
                    client.undo(number)
                    with lock:
                        ledger[number] = 0
        except (ServiceUnreachable, httpx.TransportError, ApiError):
            return


def submit_until_killed(url, pictures, sent, lock):
    with Client(url) as client:
        try:
            for data in pictures:
                number = client.submit_observation("c", [data]).id
                with lock:
                    sent.append(number)
        except (ServiceUnreachable, httpx.TransportError):
            return


def test_kills_in_the_middle_of_voting(run_service, tmp_path, photo, encoded, rounds):
    folder = tmp_path / "data"
    ledger, sent, lock = {}, [], threading.Lock()
    seeds = iter(range(10_000))
    for kill in range(rounds(3, 20)):
        with run_service(folder) as service:
            if kill == 0:
                service.client.create_collection("c")
            fresh = [encoded(photo(40, 30, seed=next(seeds))) for _ in range(40)]
            sent += [service.client.submit_observation("c", [data]).id for data in fresh[:10]]
            workers = [
                threading.Thread(target=vote_until_killed, args=(service.url, f"{kill} {name}", ledger, lock))
                for name in ("ann", "bob", "cy")
            ]
            workers.append(threading.Thread(target=submit_until_killed, args=(service.url, fresh[10:], sent, lock)))
            for worker in workers:
                worker.start()
            time.sleep(random.Random(kill).uniform(0.2, 1.0))
            service.process.send_signal(signal.SIGKILL)
            for worker in workers:
                worker.join()
        standing = check_whole(folder)
        for number, votes in ledger.items():
            assert votes is None or standing[number] == votes or kill_left_open(number, votes, standing)
    with run_service(folder) as service:
        for number in sent:
            assert service.client.observation(number).id == number
    assert len(ledger) > 5


def kill_left_open(number, votes, standing):
    """A vote after an undo may have been taken without an answer; nothing else may differ."""
    return votes == 0 and standing[number] == 1
