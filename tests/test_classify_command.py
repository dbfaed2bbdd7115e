"""`readleaf classify` as it is typed."""

import json

import pytest
from typer.testing import CliRunner

import readleaf


@pytest.fixture
def run(monkeypatch, trees_models, tmp_path):
    monkeypatch.setenv("READLEAF_MODELS_DIR", str(trees_models))
    monkeypatch.setenv("READLEAF_DATA_DIR", str(tmp_path / "data"))  # of no service

    def invoke(*words):
        return CliRunner().invoke(readleaf.app, ["classify", "--model", "trees", *map(str, words)])

    return invoke


@pytest.fixture
def pictures(tmp_path, kinds):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for kind, name in enumerate(("ash", "elm", "oak")):
        kinds(kind, 2).save(folder / f"{name}.png")
    return folder


def test_a_line_a_picture(run, pictures):
    answer = run(pictures)
    assert answer.exit_code == 0, answer.output
    lines = [line.split("\t") for line in answer.stdout.splitlines()]
    assert [line[:2] for line in lines] == [[str(pictures / f"{name}.png"), name] for name in ("ash", "elm", "oak")]
    assert all(0.6 <= float(line[2]) <= 1 for line in lines)


def test_json(run, pictures):
    [line] = run("--json", "--top", 1, pictures / "elm.png").stdout.splitlines()
    answer = json.loads(line)
    assert answer["file"] == str(pictures / "elm.png")
    assert [each["label"] for each in answer["predictions"]] == ["elm"]


def test_a_broken_file_is_named_and_the_others_are_done(run, pictures):
    (pictures / "broken.jpg").write_text("Dear all,")
    answer = run(pictures)
    assert answer.exit_code == 1
    assert len(answer.stdout.splitlines()) == 3
    assert "broken.jpg: " in answer.stderr


def test_a_prior_is_learned_and_given_back(run, pictures, tmp_path, kinds):
    seen = tmp_path / "seen"
    seen.mkdir()
    for number in range(6):
        kinds(0, number).save(seen / f"{number}.png")
    answer = run("--estimate-prior", seen)
    assert answer.exit_code == 0, answer.output
    weights = json.loads(answer.stdout)
    assert set(weights) == {"ash", "elm", "oak"}
    assert weights["ash"] > 1 > max(weights["elm"], weights["oak"]) > 0
    file = tmp_path / "prior.json"
    file.write_text(answer.stdout)
    given, learned = run("--prior", file, pictures / "elm.png"), run("--estimate-prior", seen, pictures / "elm.png")
    assert given.stdout == learned.stdout
    surely = float(run("--top", 1, pictures / "elm.png").stdout.split("\t")[2])
    assert float(given.stdout.split("\t")[2]) < surely


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give pictures, or --estimate-prior"),
        (("--prior", "PRIOR", "--estimate-prior", "FOLDER", "FOLDER"), "not both"),
    ],
)
def test_asked_wrongly(run, pictures, tmp_path, words, message):
    (tmp_path / "prior.json").write_text("{}")
    known = {"PRIOR": tmp_path / "prior.json", "FOLDER": pictures}
    answer = run(*(known.get(word, word) for word in words))
    assert answer.exit_code == 2
    assert message in answer.output


def test_failures_are_a_sentence(run, pictures, tmp_path):
    (tmp_path / "prior.json").write_text('{"beech": 1}')
    answer = run("--prior", tmp_path / "prior.json", pictures)
    assert "the model has no label 'beech'" in str(answer.exception)
    (tmp_path / "empty").mkdir()
    answer = run("--estimate-prior", tmp_path / "empty")
    assert "holds no picture that can be read" in str(answer.exception)
    answer = CliRunner().invoke(readleaf.app, ["classify", "--model", "shrubs", str(pictures)])
    assert "no model named 'shrubs' classifies" in str(answer.exception)
