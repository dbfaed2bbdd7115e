"""`readleaf read`: words on this machine, without a service."""

import json

import pytest
from typer.testing import CliRunner

import readleaf
from ui.words import WORDS, draw_words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("words")
    draw_words(place)
    return place


def run(*words):
    return CliRunner().invoke(readleaf.app, ["read", *map(str, words)])


def test_a_folder_of_crops(folder):
    answer = run("--crops", folder)
    assert answer.exit_code == 0, answer.output
    rows = [line.split("\t") for line in answer.stdout.splitlines()]
    assert {row[0].rpartition("/")[2].removesuffix(".jpg"): row[1] for row in rows} == {
        name: each[0] for name, each in WORDS.items()
    }
    assert all(0 <= float(row[2]) <= 1 for row in rows)


def test_json_lines(folder):
    [line] = run("--crops", "--json", folder / "sideways.jpg").stdout.splitlines()
    entry = json.loads(line)
    assert (entry["text"], entry["turned"]) == ("LIBRARY", 90)


def test_a_broken_file_does_not_stop_the_others(folder, tmp_path):
    (tmp_path / "a.jpg").write_text("no picture")
    answer = run("--crops", tmp_path / "a.jpg", folder / "sign.jpg")
    assert answer.exit_code == 1
    assert "Botanic" in answer.stdout
    assert "not an image that can be read" in answer.stderr


def test_whole_pictures_are_not_read_yet(folder):
    answer = run(folder / "sign.jpg")
    assert answer.exit_code == 2
    assert "--crops" in answer.stderr
