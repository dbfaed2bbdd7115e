"""Many clients at once, good requests and bad: each gets an answer, and the service stays as it was."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

CLIENTS = 16


def resident_megabytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) // 1000


@pytest.mark.campaign
def test_mixed_load(start_service, photo, encoded, bomb, rounds):
    service = start_service(max_running=2, max_waiting=8)
    good = [encoded(photo(400, 300, seed)) for seed in range(8)]
    chance = random.Random(0)

    def request(number):
        kind = chance.choice(["one", "one", "many", "empty", "text", "bomb", "missing", "wrong address"])
        files = {
            "one": [("images", good[number % 8])],
            "many": [("images", data) for data in good],
            "empty": [("images", ("a.jpg", b""))],
            "text": [("images", b"Dear all")],
            "bomb": [("images", bomb)],
            "missing": [("picture", b"x")],
            "wrong address": [("images", good[0])],
        }[kind]
        path = "/v1/nowhere" if kind == "wrong address" else "/v1/embed"
        return kind, service.http.post(path, files=files).status_code

    request(0)
    before = resident_megabytes(service.process.pid)
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = Counter(clients.map(request, range(rounds(200, 5000))))
    grown = resident_megabytes(service.process.pid) - before
    print(dict(answers), f"grown by {grown} MB")  # noqa: T201 - shown by make soak
    expected = {
        "one": {200, 503},
        "many": {200, 503},
        "empty": {422, 503},
        "text": {415, 503},
        "bomb": {413, 503},
        "missing": {422},
        "wrong address": {404},
    }
    assert all(status in expected[kind] for kind, status in answers)
    assert answers["one", 200] > 0
    assert answers["many", 200] > 0
    assert service.http.get("/health/ready").status_code == 200
    assert grown < 250
