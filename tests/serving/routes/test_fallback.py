import pytest


@pytest.mark.parametrize("path", ["/v1/nowhere", "/v1/", "/v1/embed/more", "/health/soon"])
def test_unknown_address(service, path):
    answer = service.http.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:readleaf:problem:not-found"
    assert "/docs" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", "/v1/embed", "POST"), ("DELETE", "/health/live", "GET"), ("PUT", "/metrics", "GET")],
)
def test_wrong_method(service, method, path, allow):
    answer = service.http.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allow
    assert answer.json()["type"] == "urn:readleaf:problem:method-not-allowed"


def test_an_address_outside_the_api(service):
    answer = service.http.get("/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
