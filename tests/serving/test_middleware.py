import json
import re

import httpx
import pytest


def test_a_request_id_is_made_or_kept(service):
    made = service.http.get("/health/live").headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{16}", made)
    kept = service.http.get("/health/live", headers={"X-Request-ID": "order-7/leaf"})
    assert kept.headers["x-request-id"] == "order-7/leaf"


@pytest.mark.parametrize("given", ["", "x" * 129, "two words", "<script>"])
def test_a_request_id_that_could_harm_a_log_is_replaced(service, given):
    answer = service.http.get("/v1/nowhere", headers={"X-Request-ID": given})
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["x-request-id"])
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_server_timing(service, photo, encoded):
    answer = service.http.post("/v1/embed", files={"images": encoded(photo())})
    steps = ["queue", "decode", "infer", "total"]
    assert re.fullmatch(", ".join(rf"{step};dur=[\d.]+" for step in steps), answer.headers["server-timing"])


def test_log_lines_carry_the_request_id(start_service, photo, encoded):
    service = start_service()
    service.http.post("/v1/embed", files={"images": encoded(photo())}, headers={"X-Request-ID": "find-me"})
    service.process.terminate()
    service.process.wait(timeout=30)
    [line] = [json.loads(line) for line in service.log if "find-me" in line]
    assert (line["event"], line["path"], line["status"], line["level"]) == ("request", "/v1/embed", 200, "info")


def test_a_body_of_200_megabytes_is_refused(service):
    answer = service.http.post("/v1/embed", files={"images": ("scan.tif", bytes(200_000_000))})
    assert answer.status_code == 413
    assert answer.json()["type"] == "urn:readleaf:problem:body-too-large"
    assert "128,000,000" in answer.json()["detail"]


def test_a_body_without_an_announced_length_is_counted(service):
    def endless():
        yield b'--x\r\nContent-Disposition: form-data; name="images"; filename="a.jpg"\r\n\r\n'
        for _ in range(140):
            yield bytes(1_000_000)

    answer = service.http.post(
        "/v1/embed", content=endless(), headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 413
    assert answer.json()["type"] == "urn:readleaf:problem:body-too-large"


def test_the_service_goes_on_after_a_client_hangs_up(service, photo, encoded):
    for _ in range(5):
        with pytest.raises(httpx.TimeoutException):
            service.http.post("/v1/embed", files=[("images", encoded(photo()))] * 64, timeout=0.02)
    assert service.http.get("/health/ready").status_code == 200
    assert service.http.post("/v1/embed", files={"images": encoded(photo())}).status_code == 200
