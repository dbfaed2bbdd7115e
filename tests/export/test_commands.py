"""`readleaf train detector`: it stands beside the exports, as validation finds words as the service does."""

import json

import pytest
from typer.testing import CliRunner

import readleaf
from training.errors import DataError
from training.models.detectors import load_detector


@pytest.fixture
def train(by_heart, tmp_path, monkeypatch):
    """`train(word, …)` runs the command on a small config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text("steps = 9\nbatch = 1\nsize = 96\nsynthetic = 0.0\nvalidate_every = 1\n")

    def run(*words, out="run"):
        command = ["train", "detector", "config.toml", "--data", str(by_heart.folder), "--out", out]
        return CliRunner().invoke(readleaf.app, [*command, *words])

    return run


def test_a_detector_is_trained(by_heart, train, tmp_path):
    changes = ["--set", "steps=2", "--set", f'start="{by_heart.weights}"', "--set", "rate=1e-6"]
    answer = train(*changes)
    assert answer.exit_code == 0, answer.output
    assert "the best weights are in run/best.pt" in answer.output
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    assert lines[-1]["detection/f1"] == 1  # it knew the photograph
    assert load_detector("run/best.pt").provenance.losses == ("smooth-L1", "ls_iou", "smooth-L1")
    again = train(*changes)
    assert isinstance(again.exception, DataError)
    assert "add --resume" in str(again.exception)
    assert train(*changes, "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("size=100", "size must be a multiple of 32"),
        ("eyes=2", "unknown key eyes"),
        ("steps=1.5", "steps must be int"),
        ("shape.hidden=wide", "hidden must be int"),
    ],
)
def test_impossible_configs_are_named(train, tmp_path, change, message):
    answer = train("--set", change)
    assert isinstance(answer.exception, DataError)
    assert message in str(answer.exception)
    assert not (tmp_path / "run").exists()
