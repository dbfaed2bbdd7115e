"""Imports from zip files, in the background."""

import io
import time
import zipfile

import pytest


def zipped(files, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.fixture(scope="module")
def http(run_service, tmp_path_factory):
    with run_service(tmp_path_factory.mktemp("data"), max_image_bytes=300_000) as service:
        yield service.http


@pytest.fixture
def collection(http, request):
    name = request.node.name
    assert http.post("/v1/collections", json={"name": name}).status_code == 201
    return name


def start(http, collection, archive, **form):
    return http.post("/v1/jobs", files={"archive": ("a.zip", archive)}, data={"collection": collection, **form})


def ended(http, job, seconds=60):
    """Wait for a job's end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        info = http.get(f"/v1/jobs/{job}").json()
        if info["state"] not in ("waiting", "running"):
            return info
        time.sleep(0.05)
    raise AssertionError(f"the job did not end: {info}")


def kind(answer):
    return answer.json()["type"].rpartition(":")[2]


def test_folders_become_labels_and_bad_files_are_named(http, collection, photo, encoded):
    pictures = [encoded(photo(seed=seed)) for seed in range(4)]
    archive = zipped(
        {
            "set/oak/1.jpg": pictures[0],
            "set/oak/2.jpg": pictures[1],
            "set/willow/1.jpg": pictures[2],
            "set/willow/again.jpg": pictures[2],
            "set/willow/notes.txt": b"not a picture",
            "set/willow/cut.jpg": pictures[3][:-2000],
            "set/willow/huge.jpg": b"\xff" * 400_000,
            "../../outside.jpg": pictures[3],
            "set/.DS_Store": b"x",
            "__MACOSX/set/oak/._1.jpg": b"x",
            "set/empty/": b"",
        },
        compression=zipfile.ZIP_DEFLATED,
    )
    answer = start(http, collection, archive)
    assert answer.status_code == 202
    job = ended(http, answer.json()["id"])
    assert (job["state"], job["total"], job["done"], job["refused"]) == ("done", 8, 8, 5)
    refused = {error["file"]: error["message"] for error in job["errors"]}
    assert "left out: this picture is item" in refused["set/willow/again.jpg"]
    assert "not an image" in refused["set/willow/notes.txt"]
    assert "damaged" in refused["set/willow/cut.jpg"]
    assert "more than 300,000 bytes" in refused["set/willow/huge.jpg"]
    assert "path goes up" in refused["../../outside.jpg"]
    info = http.get(f"/v1/collections/{collection}").json()
    assert info["labels"] == [{"label": "oak", "items": 2}, {"label": "willow", "items": 1}]
    item = http.get(f"/v1/collections/{collection}/items").json()["items"][0]
    assert item["metadata"] == {"file": "set/oak/1.jpg"}
    assert job["id"] in [each["id"] for each in http.get("/v1/jobs").json()["jobs"]]


def test_one_label_for_all(http, collection, photo, encoded):
    archive = zipped({"x/1.jpg": encoded(photo(seed=1)), "2.jpg": encoded(photo(seed=2))})
    ended(http, start(http, collection, archive, label="leaf").json()["id"])
    assert http.get(f"/v1/collections/{collection}").json()["labels"] == [{"label": "leaf", "items": 2}]


def test_a_bomb_in_an_archive(http, collection, bomb):
    """Small to send, huge in pixels; and one that is huge in bytes."""
    archive = zipped({"a/bomb.png": bomb, "a/zeros.jpg": b"\0" * 50_000_000}, compression=zipfile.ZIP_DEFLATED)
    job = ended(http, start(http, collection, archive).json()["id"])
    assert (job["state"], job["refused"]) == ("done", 2)
    assert "pixels" in job["errors"][0]["message"]
    assert "bytes" in job["errors"][1]["message"]


@pytest.mark.parametrize("archive", [b"", b"not a zip", zipped({"a.jpg": b"x"})[:-10]], ids=["nothing", "text", "cut"])
def test_files_that_are_no_archive(http, collection, archive):
    answer = start(http, collection, archive)
    assert (answer.status_code, kind(answer)) == (422, "archive-broken")


def test_an_empty_archive_is_done_at_once(http, collection):
    assert ended(http, start(http, collection, zipped({})).json()["id"])["done"] == 0


def test_jobs_that_are_not_there(http, photo, encoded):
    archive = zipped({"a.jpg": encoded(photo())})
    assert kind(start(http, "nowhere", archive)) == "collection-missing"
    assert kind(http.get(f"/v1/jobs/{'0' * 32}")) == "job-missing"
    assert kind(http.delete(f"/v1/jobs/{'0' * 32}")) == "job-missing"
    assert kind(http.get("/v1/jobs/1")) == "request-invalid"


def test_a_collection_deleted_while_it_is_filled(http, collection, photo, encoded):
    archive = zipped({f"a/{seed}.jpg": encoded(photo(seed=seed)) for seed in range(60)})
    job = start(http, collection, archive).json()["id"]
    assert http.delete(f"/v1/collections/{collection}").status_code == 204
    info = ended(http, job)
    assert info["done"] == 60
    assert any("no collection named" in error["message"] for error in info["errors"])


def test_cancelled(http, collection, photo, encoded):
    archive = zipped({f"a/{seed}.jpg": encoded(photo(seed=seed)) for seed in range(120)})
    job = start(http, collection, archive).json()["id"]
    cancelled = http.delete(f"/v1/jobs/{job}").json()
    assert cancelled["state"] == "cancelled"
    time.sleep(0.5)
    after = http.get(f"/v1/jobs/{job}").json()
    assert after["done"] < 120
    kept = http.get(f"/v1/collections/{collection}").json()["items"]
    time.sleep(0.5)
    assert http.get(f"/v1/collections/{collection}").json()["items"] == kept
    assert http.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"


def test_a_job_goes_on_after_a_kill(run_service, tmp_path, photo, encoded):
    archive = zipped({f"a/{seed}.jpg": encoded(photo(seed=seed)) for seed in range(80)})
    with run_service(tmp_path / "data") as service:
        service.http.post("/v1/collections", json={"name": "c"})
        job = start(service.http, "c", archive).json()["id"]
        while service.http.get(f"/v1/jobs/{job}").json()["done"] < 5:
            time.sleep(0.02)
        service.process.kill()
    with run_service(tmp_path / "data") as service:
        info = ended(service.http, job)
        assert (info["state"], info["done"], info["refused"]) == ("done", 80, 0)
        assert service.http.get("/v1/collections/c").json()["items"] == 80
        assert not list((tmp_path / "data/jobs").iterdir())
