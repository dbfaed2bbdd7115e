import numpy as np
import pytest
from PIL import Image

from serving.pipelines.upright import main_direction, turned, turned_back
from serving.pipelines.word_boxes import NOTHING, Words


def words_at(*angles, width=100.0, height=20.0, scores=None):
    radians = np.deg2rad(angles)
    sizes = np.full((len(angles), 2), (width, height))
    boxes = np.concatenate([np.zeros((len(angles), 2)), sizes, np.stack([np.cos(radians), np.sin(radians)], 1)], axis=1)
    return Words(boxes.astype(np.float32), np.asarray(scores or [0.9] * len(angles), dtype=np.float32))


@pytest.mark.parametrize(
    ("angles", "expected"),
    [((0, 2, -2), 0), ((90, 88, 92), 90), ((180, 179, -179), 180), ((-45, -44), -44.5), ((60, 60, -120), 60)],
)
def test_most_words_decide(angles, expected):
    found = main_direction(words_at(*angles))
    assert abs((found - expected + 180) % 360 - 180) < 1


def test_without_words_there_is_no_direction():
    assert main_direction(NOTHING) is None
    assert main_direction(words_at(90, width=10, height=20)) is None  # a single letter may lie anyhow


def test_sure_words_count_more():
    assert main_direction(words_at(0, 90, 90, scores=[0.99, 0.3, 0.3])) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("degrees", [0, 30, 90, -90, 135, 180])
def test_a_turned_picture_and_back(degrees):
    picture = np.zeros((120, 200, 3), np.uint8)
    picture[30:50, 40:100] = 255  # a box around (70, 40)
    seen, matrix = turned(picture, degrees)
    rows, columns = np.nonzero(seen[..., 0] > 200)
    middle = np.array([columns.mean() + 0.5, rows.mean() + 0.5])
    np.testing.assert_allclose(matrix[:, :2] @ [70, 40] + matrix[:, 2], middle, atol=0.6)
    radians = np.deg2rad(degrees)
    there = Words(np.array([[*middle, 60, 20, np.cos(radians), np.sin(radians)]], np.float32), np.ones(1, np.float32))
    [box] = turned_back(there, matrix, -degrees).boxes
    np.testing.assert_allclose(box, [70, 40, 60, 20, 1, 0], atol=0.7)


def test_nothing_is_lost_when_a_picture_is_turned():
    picture = np.asarray(Image.effect_noise((64, 48), 50).convert("RGB"))
    seen, _ = turned(picture, 90)
    np.testing.assert_array_equal(seen, np.rot90(picture, -1))
    grown, _ = turned(np.full((100, 200, 3), 255, np.uint8), 45)
    assert grown.shape[:2] == (213, 213)
    assert (grown == 255).all(axis=2).sum() == pytest.approx(20_000, rel=0.02)
