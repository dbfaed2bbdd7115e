"""Rotated RoI align beside a slow twin, and on features whose answer is known."""

import math

import pytest
import torch

from training.models.rotated_roi_align import rotated_roi_align, sample_places

BOXES = torch.tensor(
    [[70.0, 40, 60, 20, 0], [64, 48, 80, 30, 35], [50, 60, 20, 50, -70], [5, 90, 64, 16, 145]], dtype=torch.float64
)
OVER_THE_EDGE = torch.tensor([[120.0, 4, 90, 40, 20]], dtype=torch.float64)


def slow_places(box: torch.Tensor, row: int, column: int, size: int, samples: int) -> list[tuple[float, float]]:
    """The centres of a bin's samples: a bin is cut into samples × samples equal pieces."""
    cx, cy, width, height, degrees = box.tolist()
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    places = []
    for down in range(samples):
        for across in range(samples):
            u = -width / 2 + width / size * (column + (across + 0.5) / samples)
            v = -height / 2 + height / size * (row + (down + 0.5) / samples)
            places.append((cx + u * cosine - v * sine, cy + u * sine + v * cosine))
    return places


def slow_value(plane: torch.Tensor, x: float, y: float, stride: int) -> float:
    """One plane [H, W] at a pixel, between the middles of the four nearest cells; cells that are not there are 0."""
    column, row = x / stride - 0.5, y / stride - 0.5
    value = 0.0
    for i in (math.floor(row), math.floor(row) + 1):
        for j in (math.floor(column), math.floor(column) + 1):
            if 0 <= i < plane.shape[0] and 0 <= j < plane.shape[1]:
                value += float(plane[i, j]) * (1 - abs(row - i)) * (1 - abs(column - j))
    return value


@pytest.mark.parametrize(("size", "samples"), [(7, 2), (3, 1), (2, 3)])
def test_places_are_those_of_the_definition(size, samples):
    places = sample_places(BOXES, size, samples)
    for box, own in zip(BOXES, places, strict=True):
        for number in range(size * size):
            expected = slow_places(box, number // size, number % size, size, samples)
            torch.testing.assert_close(own[number], torch.tensor(expected, dtype=torch.float64))


def test_values_are_means_of_interpolated_features():
    features = torch.randn(2, 3, 6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    boxes = [torch.cat([BOXES, OVER_THE_EDGE]), BOXES[:2]]
    cut = rotated_roi_align(features, boxes, stride=16, size=4, samples=2)
    assert cut.shape == (7, 3, 4, 4)
    rows = [(picture, box) for picture, own in enumerate(boxes) for box in own]
    for found, (picture, box) in zip(cut, rows, strict=True):
        for row in range(4):
            for column in range(4):
                places = slow_places(box, row, column, 4, 2)
                for channel in range(3):
                    plane = features[picture, channel]
                    expected = sum(slow_value(plane, *place, 16) for place in places) / 4
                    assert math.isclose(float(found[channel, row, column]), expected, abs_tol=1e-9)


def test_features_that_know_where_they_are():
    # Each cell holds the pixel at its middle; a bin then holds the pixel at its own middle.
    across, down = (torch.arange(8) + 0.5) * 16, (torch.arange(6) + 0.5) * 16
    features = torch.stack([across.expand(6, 8), down[:, None].expand(6, 8)])[None]
    box = torch.tensor([[60.0, 50, 56, 28, 30]])
    cut = rotated_roi_align(features, [box], stride=16)
    x, y = (torch.tensor(slow_places(box[0], 2, 5, 7, 1)[0])).tolist()
    torch.testing.assert_close(cut[0, :, 2, 5], torch.tensor([x, y]))


def test_a_turned_picture_looks_the_same_in_a_turned_box():
    features = torch.randn(1, 2, 8, 8, dtype=torch.float64)
    turned = torch.rot90(features, -1, dims=(2, 3))  # clockwise: what was at (x, y) is now at (128 − y, x)
    upright = rotated_roi_align(features, [torch.tensor([[50.0, 30, 60, 20, 10]])], stride=16)
    again = rotated_roi_align(turned, [torch.tensor([[98.0, 50, 60, 20, 100]])], stride=16)
    torch.testing.assert_close(again, upright)


def test_pictures_without_boxes():
    features = torch.randn(3, 2, 4, 4, requires_grad=True)
    none = torch.zeros(0, 5)
    assert rotated_roi_align(features, [none, none, none], stride=16).shape == (0, 2, 7, 7)
    box = torch.tensor([[30.0, 30, 20, 20, 0]])
    alone = rotated_roi_align(features[2:], [box], stride=16)
    torch.testing.assert_close(rotated_roi_align(features, [none, none, box], stride=16), alone)


def test_nothing_beyond_the_picture():
    box = torch.tensor([[500.0, 500, 40, 40, 0]])
    assert not rotated_roi_align(torch.ones(1, 1, 4, 4), [box], stride=16).any()


def test_gradient_in_the_features():
    features = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    boxes = [BOXES[:1] / 2, BOXES[1:3] / 2]
    assert torch.autograd.gradcheck(lambda each: rotated_roi_align(each, boxes, stride=16, size=2), features)
