import httpx
import pytest

from serving.client import ApiError, Client, ServiceUnreachable


def test_nothing_listens():
    with (
        Client("http://127.0.0.1:9", timeout=2) as client,
        pytest.raises(ServiceUnreachable, match="is Readleaf running"),
    ):
        client.ready()


def test_problems_become_exceptions(service, photo, encoded):
    with pytest.raises(ApiError, match="image 2") as refused:
        service.client.embed([encoded(photo()), b"not an image"])
    assert refused.value.problem.type == "urn:readleaf:problem:image-format-unknown"
    assert refused.value.problem.status == 415
    assert refused.value.retry_after is None


def test_an_answer_of_something_else():
    transport = httpx.MockTransport(
        lambda request: httpx.Response(502, text="bad gateway", headers={"Retry-After": "7"})
    )
    with (
        Client("http://proxy", transport=transport) as client,
        pytest.raises(ApiError, match="502 Bad Gateway") as refused,
    ):
        client.models()
    assert refused.value.retry_after == 7


def test_paths_and_bytes_are_the_same(service, photo, encoded, tmp_path):
    file = tmp_path / "leaf.jpg"
    file.write_bytes(encoded(photo()))
    first, second = service.client.embed([file, file.read_bytes()]).embeddings
    assert first == second


def test_ready_and_models(service):
    assert service.client.ready().status == "ready"
    known = {model.name: (model.task, model.dim) for model in service.client.models().models}
    assert known == {
        "classifier": ("classify", None),
        "detector": ("detect", None),
        "embedder": ("embed", 512),
        "recognizer": ("recognize", None),
    }
