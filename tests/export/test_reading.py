from pathlib import Path

import numpy as np
import pytest

from export.reading import gather_as_served, reads_as_served
from serving.errors import ReadleafError
from serving.manifest import Thresholds
from training.models.detectors import load_dense_detector

MODELS = Path(__file__).parents[2] / "models"


def map_of(*cells, size=(8, 24)):
    """Maps [h, w, 7] with cells (row, column, score, box)."""
    maps = np.zeros((*size, 7), dtype=np.float32)
    maps[..., 3:5] = 8
    maps[..., 5] = 1
    for row, column, score, box in cells:
        maps[row, column] = (score, *box)
    return maps


def test_both_thresholds_count():
    left, right = (20, 18, 24, 12, 1, 0), (70, 18, 24, 12, 0, 1)
    maps = map_of((4, 4, 0.9, left), (4, 5, 0.6, left), (4, 17, 0.5, right))
    boxes, scores = gather_as_served(Thresholds(heart=0.4, word=0.3), maps)
    np.testing.assert_allclose(boxes, [left, right], atol=1e-3)
    np.testing.assert_allclose(scores, [0.75, 0.5])  # the mean of its surest cells
    boxes, scores = gather_as_served(Thresholds(heart=0.7, word=0.3), maps)
    np.testing.assert_allclose(boxes, [left], atol=1e-3)
    np.testing.assert_allclose(scores, [0.9])
    boxes, _ = gather_as_served(Thresholds(heart=0.4, word=0.6), maps)
    np.testing.assert_allclose(boxes, [left], atol=1e-3)
    boxes, scores = gather_as_served(Thresholds(heart=0.95, word=0.1), maps)
    assert boxes.shape == (0, 6)
    assert scores.shape == (0,)


def test_words_are_found_and_read_as_the_service_will(by_heart):
    detector = load_dense_detector(by_heart.weights)
    with reads_as_served(detector, Thresholds(heart=0.5, word=0.5), MODELS) as read:
        words = read(by_heart.pixels)
    assert sorted(words.texts) == sorted(by_heart.texts)
    for text, quad in zip(by_heart.texts, by_heart.quads, strict=True):
        found = words.quads[words.texts.index(text)]
        np.testing.assert_allclose(found, quad, atol=4, err_msg=text)  # from the text's own top left, however turned


def test_pictures_without_words(by_heart):
    detector = load_dense_detector(by_heart.weights)
    detector.last.bias.data[0] -= 50
    with reads_as_served(detector, Thresholds(heart=0.5, word=0.5), MODELS) as read:
        for picture in (by_heart.pixels, np.zeros((33, 40, 3), dtype=np.uint8)):
            words = read(picture)
            assert words.quads.shape == (0, 4, 2)
            assert words.texts == []


def test_a_repository_without_a_recogniser_is_named(by_heart, tmp_path):
    reading = reads_as_served(load_dense_detector(by_heart.weights), Thresholds(heart=0.5, word=0.5), tmp_path)
    with pytest.raises(ReadleafError, match=str(tmp_path)):
        reading.__enter__()
