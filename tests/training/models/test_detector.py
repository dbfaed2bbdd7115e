import numpy as np
import pytest
import shapely
import torch

from serving.pipelines.read import corners as served_corners
from training.metrics.rotated_iou import corners
from training.models.detector import Truth, boxes_of, quads_of

UPRIGHT = np.array([[(10, 20), (50, 20), (50, 32), (10, 32)]], dtype=float)


def box(cx, cy, width, height, degrees):
    angle = np.deg2rad(degrees)
    return [cx, cy, width, height, np.cos(angle), np.sin(angle)]


def test_an_upright_word():
    np.testing.assert_allclose(boxes_of(UPRIGHT), [[30, 26, 40, 12, 1, 0]])
    np.testing.assert_allclose(quads_of(boxes_of(UPRIGHT)), UPRIGHT)


@pytest.mark.parametrize(("degrees", "top_left"), [(0, (-20, -5)), (90, (5, -20)), (180, (20, 5)), (-90, (-5, 20))])
def test_corners_begin_at_the_texts_own_top_left(degrees, top_left):
    """Turned clockwise by 90°, a word is read downwards and its top is on the right."""
    quad = quads_of(np.array([box(0, 0, 40, 10, degrees)]))[0]
    np.testing.assert_allclose(quad[0], top_left, atol=1e-9)
    clockwise = shapely.Polygon(quad).exterior.is_ccw  # y downwards
    assert clockwise


@pytest.mark.parametrize(("width", "height"), [(40, 12), (12, 12), (3, 30), (200, 5)])
def test_boxes_and_quadrilaterals_are_one_thing(width, height):
    boxes = np.array([box(70, 50, width, height, degrees) for degrees in range(-180, 180, 15)])
    quads = quads_of(boxes)
    np.testing.assert_allclose(boxes_of(quads), boxes, atol=1e-9)
    for quad, row in zip(quads, boxes, strict=True):
        np.testing.assert_allclose(served_corners(row), quad, atol=1e-9)
    degrees = np.rad2deg(np.arctan2(boxes[:, 5], boxes[:, 4]))
    np.testing.assert_allclose(corners(np.column_stack([boxes[:, :4], degrees])), quads, atol=1e-9)


def test_a_word_in_perspective_has_the_mean_of_its_sides():
    [row] = boxes_of(np.array([[(0, 0), (40, 4), (40, 20), (0, 24)]], dtype=float))
    np.testing.assert_allclose(row, [20, 12, 40, 20, 1, 0], atol=1e-9)


def test_a_thin_letter_is_turned_as_its_longer_side():
    """An annotator's pixel more on one short side turns it by a lot, on a long one by little."""
    [row] = boxes_of(np.array([[(10, 10), (14, 12), (14, 50), (10, 50)]], dtype=float))
    assert row[4] > 0.999
    assert (row[2], row[3]) == pytest.approx((4, 39), abs=0.2)
    [tipped] = boxes_of(np.array([[(50, 10), (48, 14), (10, 14), (10, 10)]], dtype=float))
    assert tipped[5] > 0.999  # its feet are on the left: it is read downwards


@pytest.mark.parametrize("quads", [np.zeros((0, 4, 2)), []])
def test_no_words(quads):
    assert boxes_of(quads).shape == (0, 6)
    assert quads_of(np.zeros((0, 6))).shape == (0, 4, 2)
    truth = Truth.of(quads, np.zeros(0, dtype=bool))
    assert truth.boxes.shape == (0, 6)
    assert truth.ignored.shape == (0,)


def test_a_word_without_area_is_still_a_box():
    [point] = boxes_of(np.full((1, 4, 2), 7.0))
    np.testing.assert_array_equal(point, [7, 7, 0, 0, 1, 0])
    [line] = boxes_of(np.array([[(0, 0), (0, 30), (0, 30), (0, 0)]], dtype=float))
    np.testing.assert_allclose(line, [0, 15, 30, 0, 0, 1], atol=1e-9)


def test_truth_is_what_torch_works_with():
    truth = Truth.of(UPRIGHT, np.array([True]))
    assert truth.boxes.dtype == torch.float32
    assert truth.ignored.dtype == torch.bool
    torch.testing.assert_close(truth.boxes, torch.tensor([[30.0, 26, 40, 12, 1, 0]]))
    assert truth.ignored.tolist() == [True]
