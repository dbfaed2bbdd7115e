from functools import partial
from pathlib import Path

import pytest

from export.evaluate_detector import HEARTS, evaluate_detector
from export.reading import gather_as_served
from serving.manifest import Thresholds
from training.errors import DataError
from training.evaluate_detector import validation_scenes
from training.finding import count_found, find_words
from training.models.detectors import load_dense_detector

MODELS = Path(__file__).parents[2] / "models"


def test_a_photograph_known_by_heart(by_heart):
    figures = evaluate_detector(by_heart.weights, [by_heart.folder], MODELS, turns=(90,))
    metrics = figures.metrics
    assert [metrics[f"detection/{part}"] for part in ("precision", "recall", "f1")] == [1, 1, 1]
    parts = ("precision", "recall", "f1", "end to end f1", "right directions")
    assert [metrics[f"reading/{part}"] for part in parts] == [1] * 5
    assert set(metrics) - {f"turned by 90/{part}" for part in parts} == {
        *(f"detection/{part}" for part in parts[:3]),
        *(f"reading/{part}" for part in parts),
    }
    assert figures.heart in HEARTS
    assert 0.2 <= figures.word < 1
    assert figures.weights == ""  # until they are kept beside the checkpoint


def test_thresholds_are_those_of_the_highest_f1(by_heart):
    figures = evaluate_detector(by_heart.weights, [by_heart.folder], MODELS, turns=())
    scenes, model = validation_scenes([by_heart.folder]), load_dense_detector(by_heart.weights)
    assert len(scenes) == 1
    gather = partial(gather_as_served, Thresholds(heart=figures.heart, word=figures.word))
    counts = count_found(scenes, find_words(model, scenes, gather))  # as served: all that is found counts
    assert round(counts.f1, 4) == figures.metrics["detection/f1"]


def test_what_cannot_be_measured(by_heart, tmp_path):
    with pytest.raises(DataError, match="there is no checkpoint at"):
        evaluate_detector(str(tmp_path / "none.pt"), [by_heart.folder], MODELS, turns=())
    with pytest.raises(DataError, match="there is no data folder at"):
        evaluate_detector(by_heart.weights, [tmp_path / "none"], MODELS, turns=())
