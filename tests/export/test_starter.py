"""From pictures to the collection that a service starts with."""

import shutil

import pytest
from typer.testing import CliRunner

import readleaf
from serving.manifest import read_manifest
from serving.settings import Settings
from serving.starter import read_starter
from training.errors import DataError

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def bare(tmp_path):
    """The shipped models without their starter."""
    return shutil.copytree(SHIPPED, tmp_path / "models", ignore=shutil.ignore_patterns("starter.npz"))


@pytest.fixture
def data(tmp_path, photo):
    """A picture to learn from of each of three kinds, and one for validation."""
    data = tmp_path / "data"
    for kind in range(3):
        (data / "train" / f"kind {kind}").mkdir(parents=True)
        photo(seed=kind).save(data / "train" / f"kind {kind}" / "1.jpg")
    (data / "val/kind 0").mkdir(parents=True)
    photo(seed=9).save(data / "val/kind 0/2.jpg")
    return data


@pytest.fixture
def export(data):
    """`export(models, "--version", 1)` runs the command."""

    def run(models, *words):
        command = ["export", "starter", "--data", data, "--name", "kinds", "--to", models, *words]
        return CliRunner().invoke(readleaf.app, list(map(str, command)))

    return run


def test_a_service_starts_with_what_was_exported(bare, export, data, start_service):
    answer = export(bare)
    assert answer.exit_code == 0, answer.output
    assert f"wrote {bare / 'embedder/1/starter.npz'}: 3 vectors" in answer.output
    client = start_service(starter=True, models_dir=bare).client
    assert client.collection("kinds").items == 3
    found = client.search("kinds", data / "train/kind 1/1.jpg", k=1)
    assert found.neighbours[0].label == "kind 1"
    assert found.neighbours[0].score > 0.999
    assert found.neighbours[0].image_url is None


def test_each_version_has_its_own(models, add_version, export):
    """The newest gets it, unless another one is named."""
    assert add_version(models, "embedder") == 2
    for version, words in ((2, []), (1, ["--version", 1])):
        for file in models.glob("embedder/*/starter.npz"):
            file.unlink()
        answer = export(models, *words)
        assert answer.exit_code == 0, answer.output
        assert [file.parent.name for file in models.glob("embedder/*/starter.npz")] == [str(version)]
        folder = models / "embedder" / str(version)
        manifest = read_manifest(folder)
        assert read_starter(folder / "starter.npz", manifest.sha256, manifest.dim).name == "kinds"


def test_a_version_that_is_not_there(models, export):
    answer = export(models, "--version", 3)
    assert answer.exit_code == 1
    assert "embedder/3/manifest.json cannot be read" in str(answer.exception)


def test_nothing_to_start_with(bare, tmp_path):
    (tmp_path / "labels.tsv").write_text("file\tclass_name\tsource\tset\n1.jpg\trose\tmade\tval\n")
    words = ["export", "starter", "--data", str(tmp_path), "--name", "kinds", "--to", str(bare)]
    answer = CliRunner().invoke(readleaf.app, words)
    assert isinstance(answer.exception, DataError)
    assert "no picture of the set train" in str(answer.exception)
