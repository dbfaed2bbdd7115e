"""`X-Request-Timeout`, clients that go away, and a stop that lets work end."""

import signal
import threading
import time

import httpx
import pytest
from PIL import Image, ImageDraw, ImageFont


@pytest.fixture(scope="module")
def page(encoded):
    """So much text that it takes seconds to read."""
    picture = Image.new("RGB", (3000, 3000), (245, 245, 240))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(40)
    for row in range(45):
        pen.text((20, 10 + 66 * row), f"row {row} of a page with very many words " * 3, (20, 20, 20), font)
    return encoded(picture, "PNG")


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan", "inf", "1e9", ""])
def test_a_time_that_cannot_be(service, photo, encoded, given):
    answer = service.http.post("/v1/embed", files={"images": encoded(photo())}, headers={"X-Request-Timeout": given})
    assert answer.status_code == 422
    assert "X-Request-Timeout" in answer.json()["detail"]
    assert "seconds above 0" in answer.json()["detail"]


def test_a_time_that_is_long_enough(service, photo, encoded):
    answer = service.http.post("/v1/embed", files={"images": encoded(photo())}, headers={"X-Request-Timeout": "30"})
    assert answer.status_code == 200


def test_a_time_that_is_too_short(service, page):
    started = time.monotonic()
    answer = service.http.post("/v1/read", files={"image": page}, headers={"X-Request-Timeout": "0.3"})
    assert time.monotonic() - started < 1.5
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["type"] == "urn:readleaf:problem:deadline-exceeded"
    assert "the 0.3 seconds" in answer.json()["detail"]


def test_time_that_goes_by_in_the_queue(start_service, page, photo, encoded):
    """Who waits for a place gets an answer in time, and the place goes to the next."""
    service = start_service(max_running=1)
    busy = threading.Thread(target=service.http.post, args=("/v1/read",), kwargs={"files": {"image": page}})
    busy.start()
    wait_until(lambda: running(service) == 1)
    files = {"images": encoded(photo())}
    late = service.http.post("/v1/embed", files=files, headers={"X-Request-Timeout": "0.1"})
    assert (late.status_code, late.json()["type"]) == (503, "urn:readleaf:problem:deadline-exceeded")
    assert service.http.post("/v1/embed", files=files).status_code == 200
    busy.join()
    assert running(service) == 0


def test_work_for_a_client_that_has_gone_stops(service, page):
    with pytest.raises(httpx.ReadTimeout):
        service.http.post("/v1/read", files={"image": page}, timeout=httpx.Timeout(30, read=0.3))
    wait_until(lambda: running(service) == 0)
    wait_until(lambda: any('"status": 499' in line for line in service.log))


def test_a_stop_finishes_what_was_accepted(service, start_service, page):
    undisturbed = service.http.post("/v1/read", files={"image": page}).json()
    assert len(undisturbed["words"]) > 50
    other = start_service()
    answers = []

    def ask():
        answers.append(other.http.post("/v1/read", files={"image": page}))

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: running(other) == 1)
    other.process.send_signal(signal.SIGTERM)
    asking.join()
    assert answers[0].status_code == 200
    assert answers[0].json() == undisturbed
    assert other.process.wait(timeout=30) == 0


def running(service):
    """Requests being worked on."""
    metrics = service.http.get("/metrics").text
    [line] = [line for line in metrics.splitlines() if line.startswith("readleaf_running_requests ")]
    return int(float(line.split()[-1]))


def wait_until(condition):
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)
