"""`readleaf train classify`: a folder becomes a model that is ready to serve."""

import json

import pytest
from typer.testing import CliRunner

import readleaf
from export.own_classifier import check_name
from serving.repository import load_repository, versions_of
from training.errors import DataError

QUICK = {"epochs": 4, "least_steps": 12, "size": 32, "test_size": 32, "batch": 8, "kept_views": 2, "frozen_stages": 5}


@pytest.fixture
def folder(tmp_path, kinds):
    for kind, name in enumerate(("fly agaric", "penny bun", "puffball")):
        (tmp_path / "mushrooms" / name).mkdir(parents=True)
        for number in range(10):
            kinds(kind, number).save(tmp_path / "mushrooms" / name / f"{number}.jpg")
    return tmp_path / "mushrooms"


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")
    monkeypatch.setenv("READLEAF_DATA_DIR", str(tmp_path / "data"))  # of no service

    def run(*words):
        arguments = ["train", "classify", "--to", tmp_path / "models", "--runs", tmp_path / "runs", *words]
        for key, value in QUICK.items():
            arguments += ["--set", f"{key}={value}"]
        return CliRunner().invoke(readleaf.app, list(map(str, arguments)))

    return run


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_one_command(train, folder, tmp_path, monkeypatch, kinds):
    answer = train("--data", folder, "--name", "mushrooms")
    assert answer.exit_code == 0, answer.output
    assert "3 classes, " in answer.output
    model = load_repository(tmp_path / "models")["mushrooms"]
    assert model.manifest.labels == ["fly agaric", "penny bun", "puffball"]
    assert json.loads((tmp_path / "runs/own/mushrooms/metrics.json").read_text())["metrics"] == model.manifest.metrics
    assert (tmp_path / "runs/own/mushrooms/reliability.png").stat().st_size > 1000
    assert "penny bun" in (model.folder / "CARD.md").read_text()

    monkeypatch.setenv("READLEAF_MODELS_DIR", str(tmp_path / "models"))
    kinds(1, 11).save(tmp_path / "found.jpg")
    found = CliRunner().invoke(readleaf.app, ["classify", "--model", "mushrooms", str(tmp_path / "found.jpg")])
    assert found.stdout.split("\t")[1] == "penny bun"

    before = contents(tmp_path / "models/mushrooms/1")
    again = train("--data", folder, "--name", "mushrooms")
    assert "there is a model at" in str(again.exception)
    assert "choose another name, or make it version 2 with --again" in str(again.exception)
    answer = train("--data", folder, "--name", "mushrooms", "--again")
    assert answer.exit_code == 0, answer.output
    assert f"wrote {tmp_path / 'models/mushrooms'}, version 2; `readleaf models activate mushrooms 2`" in answer.output
    assert contents(tmp_path / "models/mushrooms/1") == before
    versions = versions_of(tmp_path / "models/mushrooms")
    assert set(versions.good) == {1, 2}
    assert versions[2].manifest.labels == model.manifest.labels


@pytest.mark.campaign
def test_five_kinds_of_photographs(tmp_path, monkeypatch, photo, rounds):
    """In full: 500 pictures of 640 × 480, `readleaf train classify` as it is by itself."""
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")
    names, count = ("birch", "larch", "maple", "poplar", "rowan"), rounds(6, 100)
    for kind, name in enumerate(names):
        (tmp_path / "trees" / name).mkdir(parents=True)
        for number in range(count):
            ground, figure = photo(640, 480, seed=1000 + number), photo(200, 150, seed=kind)
            ground.paste(figure, (number * 37 % 440, number * 53 % 330))
            ground.save(tmp_path / "trees" / name / f"{number}.jpg")
    words = ["train", "classify", "--data", tmp_path / "trees", "--name", "trees"]
    words += ["--to", tmp_path / "models", "--runs", tmp_path / "runs"]
    if count < 100:
        words += [word for key, value in QUICK.items() for word in ("--set", f"{key}={value}")]
    answer = CliRunner().invoke(readleaf.app, list(map(str, words)))
    assert answer.exit_code == 0, answer.output
    manifest = load_repository(tmp_path / "models")["trees"].manifest
    assert manifest.labels == list(names)
    assert count < 100 or manifest.metrics["val/accuracy"] > 0.9


def test_from_a_collection_of_a_service(train, folder, tmp_path, service):
    service.client.create_collection("my mushrooms")
    for file in sorted(folder.rglob("*.jpg")):
        service.client.add_item("my mushrooms", file, file.parent.name)
    answer = train("--collection", "my mushrooms", "--url", service.url, "--name", "mushrooms")
    assert answer.exit_code == 0, answer.output
    manifest = load_repository(tmp_path / "models")["mushrooms"].manifest
    assert manifest.labels == ["fly agaric", "penny bun", "puffball"]
    assert manifest.training_data[-1] == "my mushrooms: 24 pictures of 3 classes"


def test_asked_wrongly(train, folder, tmp_path):
    assert "give --data or --collection" in train("--name", "mushrooms").output
    assert "give --data or --collection" in train("--name", "m", "--data", folder, "--collection", "c").output
    assert "cannot be a model's name" in str(train("--data", folder, "--name", "My Mushrooms").exception)
    (folder / "puffball/broken.jpg").write_text("Dear all,")
    assert "broken.jpg cannot be read as pictures" in str(train("--data", folder, "--name", "mushrooms").exception)
    assert not (tmp_path / "models/mushrooms").exists()
    assert not (tmp_path / "runs/own/mushrooms").exists()  # nothing is in the way of the next attempt
    assert train("--data", folder, "--name", "mushrooms", "--skip-unreadable").exit_code == 0


@pytest.mark.parametrize("name", ["..", "/tmp/elsewhere", "a/b", ""])
def test_a_name_is_no_place_on_the_disk(train, folder, tmp_path, name):
    (tmp_path / "runs/collections").mkdir(parents=True)
    (tmp_path / "runs/kept.txt").write_text("mine")
    answer = train("--collection", "any", "--url", "http://127.0.0.1:9", "--name", name, "--again")
    assert "cannot be a model's name" in str(answer.exception)
    assert (tmp_path / "runs/kept.txt").exists()


def test_data_that_cannot_be_cost_nothing(train, folder, tmp_path):
    assert train("--data", folder, "--name", "mushrooms").exit_code == 0
    (folder / "puffball/broken.jpg").write_text("Dear all,")
    assert train("--data", folder, "--name", "mushrooms", "--again").exit_code == 1
    assert (tmp_path / "runs/own/mushrooms/best.pt").exists()
    assert (tmp_path / "models/mushrooms/1/manifest.json").exists()
    assert not (tmp_path / "models/mushrooms/2").exists()


def test_a_name_of_a_model_that_does_something_else(trees_models):
    with pytest.raises(DataError, match="classifies nothing; choose another name"):
        check_name("embedder", trees_models, again=True)
    with pytest.raises(DataError, match=r"there is a model at .*trees; .* or make it version 2 with --again"):
        check_name("trees", trees_models, again=False)
    check_name("trees", trees_models, again=True)
    check_name("shrubs", trees_models, again=False)


def test_a_broken_version_is_in_nobodys_way(models):
    """A next one is the remedy."""
    (models / "classifier/1/manifest.json").write_text("{")
    with pytest.raises(DataError, match="or make it version 2 with --again"):
        check_name("classifier", models, again=False)
    check_name("classifier", models, again=True)
    (models / "embedder/1/manifest.json").write_text("{")
    with pytest.raises(DataError, match="classifies nothing; choose another name"):
        check_name("embedder", models, again=True)
