"""SIGKILL in the middle of concurrent writes: what was acknowledged is there afterwards, and nothing in part."""

import random
import signal
import threading
import time
from dataclasses import dataclass, field

import httpx
import pytest

pytestmark = pytest.mark.campaign
WRITERS = 3


@dataclass
class Ledger:
    """What the service has acknowledged so far."""

    added: dict[int, tuple[str, bytes]] = field(default_factory=dict)  # item → label, picture
    deleted: set[int] = field(default_factory=set)
    asked_to_delete: set[int] = field(default_factory=set)
    asked_to_add: set[str] = field(default_factory=set)  # labels


def write_until_killed(url, ledger, lock, pictures, seed):
    """Add, relabel and delete as fast as it goes; stops when the service is gone."""
    chance = random.Random(seed)
    mine = []
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        try:
            for number, data in enumerate(pictures):
                label = f"{seed} {number}"
                with lock:
                    ledger.asked_to_add.add(label)
                answer = http.post("/v1/collections/c/items", files={"image": ("a.jpg", data)}, data={"label": label})
                assert answer.status_code == 201, answer.text
                item = answer.json()["id"]
                with lock:
                    ledger.added[item] = (label, data)
                mine.append(item)
                if chance.random() < 0.3:
                    gone = mine.pop(chance.randrange(len(mine)))
                    with lock:
                        ledger.asked_to_delete.add(gone)
                    assert http.delete(f"/v1/collections/c/items/{gone}").status_code == 204
                    with lock:
                        ledger.deleted.add(gone)
        except httpx.TransportError:
            return


def test_kills_lose_nothing(run_service, tmp_path, photo, encoded, rounds):
    ledger, lock = Ledger(), threading.Lock()
    count = 0

    def fresh_pictures(many):
        nonlocal count
        count += many
        return [encoded(photo(60, 50, seed=1000 + number)) for number in range(count - many, count)]

    for kill in range(rounds(4, 20)):
        with run_service(tmp_path / "data") as service:
            check(service.http, ledger, first=kill == 0)
            threads = [
                threading.Thread(
                    target=write_until_killed, args=(service.url, ledger, lock, fresh_pictures(60), f"{kill} {writer}")
                )
                for writer in range(WRITERS)
            ]
            for thread in threads:
                thread.start()
            time.sleep(random.Random(kill).uniform(0.2, 1.2))
            service.process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
    with run_service(tmp_path / "data") as service:
        check(service.http, ledger, first=False)
    assert len(ledger.added) > 10
    assert ledger.deleted


def check(http, ledger, *, first):
    """Everything acknowledged is there, in list and search; what is there was asked for, and is whole."""
    if first:
        assert http.post("/v1/collections", json={"name": "c"}).status_code == 201
        return
    present, cursor = {}, 0
    while cursor is not None:
        page = http.get("/v1/collections/c/items", params={"limit": 500, "cursor": cursor}).json()
        present |= {item["id"]: item for item in page["items"]}
        cursor = page["next_cursor"]
    must = set(ledger.added) - ledger.asked_to_delete
    assert must <= set(present)
    assert not ledger.deleted & set(present)
    for item in present.values():
        assert item["label"] in ledger.asked_to_add
        assert http.get(item["image_url"]).status_code == 200
    chosen = random.Random(0).sample(sorted(must), min(10, len(must)))
    for number in chosen:
        label, data = ledger.added[number]
        assert http.get(present[number]["image_url"]).content == data
        found = http.post("/v1/collections/c/search", files={"image": ("a.jpg", data)}, data={"k": 1}).json()
        assert (found["neighbours"][0]["item"], found["neighbours"][0]["label"]) == (number, label)
    whole = http.post(
        "/v1/collections/c/search", files={"image": ("a.jpg", ledger.added[min(ledger.added)][1])}, data={"k": 100}
    )
    assert len(whole.json()["neighbours"]) == min(100, len(present))
