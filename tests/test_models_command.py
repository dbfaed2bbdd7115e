"""`readleaf models`: what is on disk, what is in use, and switching a running service."""

import pytest
from typer.testing import CliRunner

import readleaf
from serving.client import ApiError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run("list")`, with columns for the longest title."""
    monkeypatch.setenv("READLEAF_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "400")
    return lambda *words: CliRunner().invoke(readleaf.app, ["models", *map(str, words)])


def rows_of(answer):
    """Name, version and whether it is used, of each row."""
    lines = [line.split() for line in answer.stdout.splitlines()[1:]]
    return [(line[0], int(line[1]), line[2] == "used") for line in lines if line[1].isdecimal()]


def test_all_versions_are_listed_and_what_is_used(run, models, add_version):
    """Of no service: it would use the newest."""
    for number, accuracy in ((2, 0.5), (3, 0.25)):
        assert add_version(models, "classifier", metrics={"val/accuracy": accuracy}) == number
    answer = run("list", "--folder", models)
    assert answer.exit_code == 0, answer.output
    assert rows_of(answer) == [
        ("classifier", 1, False),
        ("classifier", 2, False),
        ("classifier", 3, True),
        ("detector", 1, True),
        ("embedder", 1, True),
        ("recognizer", 1, True),
    ]
    assert "val/accuracy 0.500" in answer.stdout.splitlines()[2]
    assert "val/accuracy 0.250" in answer.stdout.splitlines()[3]


def test_what_cannot_be_used_is_listed_with_the_reason(run, models, add_version):
    add_version(models, "classifier")
    (models / "classifier/1/manifest.json").write_text("{")
    answer = run("list", "--folder", models)
    assert answer.exit_code == 1
    assert rows_of(answer)[:2] == [("classifier", 1, False), ("classifier", 2, True)]
    assert "cannot be used: see below" in answer.stdout.splitlines()[1]
    [reason] = [line for line in answer.stdout.splitlines() if line.startswith("classifier 1: ")]
    assert "classifier/1/manifest.json: the file" in reason or "classifier/1/manifest.json: task" in reason


def test_a_service_is_switched(run, models, add_version, start_service, tmp_path):
    service = start_service(models_dir=models)
    good = {"val/accuracy": 1.0}
    assert [add_version(models, "classifier", metrics=metrics) for metrics in (good, {"val/accuracy": 0.1}, {})] == [
        2,
        3,
        4,
    ]

    def in_use():
        [found] = [model for model in service.client.models().models if model.name == "classifier"]
        assert found.versions == [1, 2, 3, 4]
        listed = run("list", "--folder", models)
        assert [version for name, version, used in rows_of(listed) if name == "classifier" and used] == [found.version]
        return found.version

    assert in_use() == 1  # new versions on disk change nothing
    answer = run("activate", "classifier", 2, "--url", service.url)
    assert answer.exit_code == 0, answer.output
    assert "classifier version 2 is in use; before it was version 1" in answer.stderr
    assert in_use() == 2
    answer = run("activate", "classifier", 2, "--url", service.url)
    assert answer.exit_code == 0
    assert answer.stderr.strip() == "classifier version 2 is in use"
    for version, message in ((3, "is worse than version 2"), (4, "has no figure to compare"), (5, "has no version 5")):
        answer = run("activate", "classifier", version, "--url", service.url)
        assert isinstance(answer.exception, ApiError)
        assert message in str(answer.exception)
        assert in_use() == 2
    answer = run("activate", "classifier", 3, "--force", "--url", service.url)
    assert answer.exit_code == 0, answer.output
    assert in_use() == 3


def test_an_embedder_is_switched_after_its_job(run, models, add_version, start_service, photo, encoded):
    service = start_service(models_dir=models)
    service.client.create_collection("c")
    for seed in range(3):
        service.client.add_item("c", encoded(photo(seed=seed)), str(seed))
    assert add_version(models, "embedder") == 2
    answer = run("activate", "embedder", 2, "--url", service.url)
    assert answer.exit_code == 0, answer.output
    assert "embedder version 2 is in use; before it was version 1" in answer.stderr
    assert service.client.collection("c").outdated == 0
    found = service.client.search("c", encoded(photo(seed=1)), k=1).neighbours[0]
    assert (found.label, found.score) == ("1", pytest.approx(1, abs=1e-4))
