"""From pictures to the collection that a service starts with."""

import shutil

import pytest
from typer.testing import CliRunner

import readleaf
from serving.settings import Settings
from training.errors import DataError

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def models(tmp_path):
    return shutil.copytree(SHIPPED, tmp_path / "models", ignore=shutil.ignore_patterns("starter.npz"))


def test_a_service_starts_with_what_was_exported(models, start_service, photo, tmp_path):
    data = tmp_path / "data"
    for kind in range(3):
        (data / "train" / f"kind {kind}").mkdir(parents=True)
        photo(seed=kind).save(data / "train" / f"kind {kind}" / "1.jpg")
    (data / "val/kind 0").mkdir(parents=True)
    photo(seed=9).save(data / "val/kind 0/2.jpg")
    words = ["export", "starter", "--data", str(data), "--name", "kinds", "--to", str(models)]
    answer = CliRunner().invoke(readleaf.app, words)
    assert answer.exit_code == 0, answer.output
    assert "3 vectors" in answer.output
    client = start_service(starter=True, models_dir=models).client
    assert client.collection("kinds").items == 3
    found = client.search("kinds", data / "train/kind 1/1.jpg", k=1)
    assert found.neighbours[0].label == "kind 1"
    assert found.neighbours[0].score > 0.999
    assert found.neighbours[0].image_url is None


def test_nothing_to_start_with(models, tmp_path):
    (tmp_path / "labels.tsv").write_text("file\tclass_name\tsource\tset\n1.jpg\trose\tmade\tval\n")
    words = ["export", "starter", "--data", str(tmp_path), "--name", "kinds", "--to", str(models)]
    answer = CliRunner().invoke(readleaf.app, words)
    assert isinstance(answer.exception, DataError)
    assert "no picture of the set train" in str(answer.exception)
