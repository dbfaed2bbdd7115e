from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from training.config import read_config
from training.errors import DataError
from training.models.recognizer import THESIS
from training.train_classifier import ClassifierTraining
from training.train_detector import DetectorTraining
from training.train_embedder import EmbedderTraining
from training.train_recognizer import RecognizerTraining
from training.tune_detector import DetectorTuning
from training.tune_recognizer import RecognizerTuning


@dataclass(frozen=True)
class Inner:
    width: int = 3


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.1
    flag: bool = False
    shares: tuple[float, ...] = ()
    inner: Inner = field(default_factory=Inner)
    mode: Literal["slow", "fast"] = "slow"


def read(tmp_path, text, changes=None):
    file = tmp_path / "config.toml"
    file.write_text(text)
    return read_config(Outer, file, changes)


def test_a_file_becomes_a_dataclass(tmp_path):
    text = 'name = "x"\nrate = 1\nshares = [0.5, 1]\n[inner]\nwidth = 7\n'
    assert read(tmp_path, text) == Outer("x", 1.0, False, (0.5, 1.0), Inner(7))


def test_changes_from_the_command_line(tmp_path):
    changes = {"rate": "3e-4", "inner.width": "9", "name": "plain text", "flag": "true", "mode": "fast"}
    assert read(tmp_path, 'name = "x"', changes) == Outer("plain text", 3e-4, True, (), Inner(9), "fast")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"\nspeed = 1', "unknown key speed; known are flag, inner, mode, name, rate, shares"),
        ('name = "x"\n[inner]\nheight = 1', "inner: unknown key height; known are width"),
        ("rate = 1.0", "the key name is missing"),
        ("name = 7", "name must be str, not 7"),
        ('name = "x"\nrate = "fast"', "rate must be float, not 'fast'"),
        ('name = "x"\nflag = 1', "flag must be bool, not 1"),
        ('name = "x"\nshares = 1', "shares must be a list"),
        ('name = "x"\nshares = ["a"]', "shares must be float"),
        ('name = "x"\ninner = 1', "inner must be a table"),
        ('name = "x"\nmode = "lazy"', "mode must be one of slow, fast, not 'lazy'"),
        ("name = ", "is not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="there is no config at"):
        read_config(Outer, tmp_path / "nothing.toml")


CONFIGS = sorted((Path(__file__).parents[2] / "training/configs").glob("*.toml"))
KINDS = {
    "classifier": ClassifierTraining,
    "detector": DetectorTraining,
    "detector_tuning": DetectorTuning,
    "embedder": EmbedderTraining,
    "recognizer": RecognizerTraining,
    "recognizer_tuning": RecognizerTuning,
}


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_every_config_that_is_shipped_can_be_read(file):
    kind = KINDS.get(file.stem) or KINDS[file.stem.partition("_")[0]]
    assert isinstance(read_config(kind, file), kind)


def test_the_thesis_config_is_the_thesis_network():
    [file] = [file for file in CONFIGS if file.stem == "recognizer_thesis"]
    assert read_config(RecognizerTraining, file).shape == THESIS
