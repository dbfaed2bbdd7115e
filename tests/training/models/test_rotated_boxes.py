"""Rotated boxes: the golden values, the angle's convention, and slow twins of overlap and suppression."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from shapely import Polygon

from training.metrics.rotated_iou import corners, rotated_iou, rotated_iou_matrix
from training.models.detector import quads_of
from training.models.rotated_boxes import (
    angle_difference,
    cell_anchors,
    decode,
    encode,
    grid_anchors,
    longer_side_first,
    overlap,
    pointing_right,
    rotated_nms,
    with_degrees,
    with_direction,
)

GOLDEN = {
    name: torch.from_numpy(values)
    for name, values in np.load(Path(__file__).parents[2] / "golden/rrpn_boxes.npz").items()
}
THESIS = ((8, 16, 32), (0.2, 0.5, 1), (-30, 0, 30, 60, 90, 120))


def some_boxes(count: int, seed: int = 0, spread: float = 200) -> torch.Tensor:
    """Boxes of all shapes, close enough to overlap."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.rand(count, 5, generator=random, dtype=torch.float64)
    start = torch.tensor([0, 0, 4, 4, -400], dtype=torch.float64)
    return start + rows * torch.tensor([spread, spread, 150, 60, 800], dtype=torch.float64)


def test_golden_anchors():
    torch.testing.assert_close(cell_anchors(*THESIS).double(), GOLDEN["anchors"], rtol=0, atol=0)


def test_golden_targets():
    targets = encode(GOLDEN["ex"], GOLDEN["gt"])
    torch.testing.assert_close(targets, GOLDEN["targets"], rtol=0, atol=1e-12)
    # The decoder that wrote these had a π of nine decimals.
    decoded = decode(GOLDEN["ex"], GOLDEN["targets"])
    torch.testing.assert_close(decoded, GOLDEN["decoded"], rtol=0, atol=2e-8)


def test_anchors_are_mirrored_onto_themselves():
    # That is why it does not matter that RRPN turns against the clock.
    anchors = cell_anchors(*THESIS)
    mirrored = anchors * torch.tensor([1.0, 1, 1, 1, -1])
    for box in mirrored:
        same = (anchors[:, :4] == box[:4]).all(dim=1) & (angle_difference(anchors[:, 4], box[4]) == 0)
        assert same.sum() == 1


def test_a_grid_has_the_anchors_of_each_cell_row_by_row():
    cell = cell_anchors(*THESIS)
    slow = [
        anchor + torch.tensor([16.0 * column, 16.0 * row, 0, 0, 0])
        for row in range(2)
        for column in range(3)
        for anchor in cell
    ]
    torch.testing.assert_close(grid_anchors(cell, 2, 3), torch.stack(slow))


@given(st.integers(-2000, 2000), st.integers(-2000, 2000))
def test_angles_differ_by_a_quarter_turn_at_most(degrees, other):
    difference = float(angle_difference(torch.tensor(float(degrees)), torch.tensor(float(other))))
    assert -90 <= difference <= 90
    assert (degrees - other - difference) % 180 == 0


def test_decoding_undoes_encoding():
    anchors, boxes = some_boxes(200), some_boxes(200, seed=1)
    again = decode(anchors, encode(anchors, boxes))
    torch.testing.assert_close(again[:, :4], boxes[:, :4])
    assert (angle_difference(again[:, 4], boxes[:, 4]).abs() < 1e-9).all()


def test_decoding_is_differentiable_and_stays_finite():
    anchors = some_boxes(4)
    targets = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: with_direction(decode(anchors, each)), targets)
    assert decode(anchors, torch.full((4, 5), 1e4, dtype=torch.float64)).isfinite().all()


def test_degrees_turn_from_x_to_y_downwards():
    box = torch.tensor([[50.0, 40, 20, 10, 0, 1]])  # read downwards
    torch.testing.assert_close(with_degrees(box), torch.tensor([[50.0, 40, 20, 10, 90]]))
    boxes = some_boxes(50)
    # The corners of the metric and those of a detector's boxes are the same ones, in the same order.
    np.testing.assert_allclose(corners(boxes.numpy()), quads_of(with_direction(boxes).numpy()), atol=1e-9)
    again = with_degrees(with_direction(boxes))
    torch.testing.assert_close(with_direction(again), with_direction(boxes))


def test_forms_of_a_rectangle():
    boxes = torch.cat([some_boxes(100), torch.tensor([[9.0, 9, 8, 2, -90], [9, 9, 2, 8, 0]], dtype=torch.float64)])
    longer, right = longer_side_first(boxes), pointing_right(boxes)
    assert (longer[:, 2] >= longer[:, 3]).all()
    assert ((right[:, 4] > -90) & (right[:, 4] <= 90)).all()
    for form in (longer, right):
        np.testing.assert_allclose(rotated_iou(form.numpy(), boxes.numpy()), 1, atol=1e-9)
    assert right[-2, 4] == 90


@pytest.mark.parametrize("floor", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_overlap_is_exact_from_its_floor_on(floor, dtype):
    first, second = some_boxes(300).to(dtype), some_boxes(90, seed=1).to(dtype)
    second[:20] = first[:20] + 1
    found, exact = overlap(first, second, floor).double().numpy(), rotated_iou_matrix(first, second)
    asked = exact >= floor
    np.testing.assert_allclose(found[asked], exact[asked], atol=1e-6)
    assert ((found == 0) | np.isclose(found, exact, atol=1e-6)).all()
    assert asked.sum() > 15
    assert floor == 0 or (found == 0).mean() > 0.5  # most was not computed


def test_share_of_the_first_box():
    first, second = some_boxes(60), some_boxes(40, seed=1)
    first[:20, 2:4] /= 8  # small ones inside large ones
    shapes = [[Polygon(each) for each in corners(boxes.numpy())] for boxes in (first, second)]
    exact = np.array([[a.intersection(b).area / a.area for b in shapes[1]] for a in shapes[0]])
    found = overlap(first, second, 0.5, of_first=True).numpy()
    np.testing.assert_allclose(found[exact >= 0.5], exact[exact >= 0.5], atol=1e-9)
    assert (exact >= 0.999).sum() > 20


def slow_nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> list[int]:
    iou = rotated_iou_matrix(boxes, boxes)
    kept: list[int] = []
    for number in sorted(range(len(boxes)), key=lambda each: -float(scores[each])):
        if all(iou[number, other] <= threshold for other in kept):
            kept.append(number)
    return kept


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
def test_suppression_is_greedy(threshold):
    random = torch.Generator().manual_seed(3)
    boxes = some_boxes(100)[torch.randint(100, (250,), generator=random)]  # many of them much alike
    boxes += torch.randn(250, 5, generator=random, dtype=torch.float64)
    scores = torch.rand(250, generator=random)
    kept = slow_nms(boxes, scores, threshold)
    assert 5 < len(kept) < 200
    assert rotated_nms(boxes, scores, threshold, at_most=250).tolist() == kept
    assert rotated_nms(boxes, scores, threshold, at_most=4).tolist() == kept[:4]
    assert rotated_nms(boxes[:0], scores[:0], threshold, at_most=4).shape == (0,)


def test_a_box_turned_by_half_is_suppressed():
    boxes = torch.tensor([[50.0, 50, 40, 10, 20], [50, 50, 40, 10, 200], [50, 50, 10, 40, 110]])
    assert rotated_nms(boxes, torch.tensor([0.1, 0.9, 0.5]), 0.9, at_most=9).tolist() == [1]
    assert math.isclose(float(overlap(boxes[:1], boxes[1:2], 0.5)), 1, abs_tol=1e-6)
