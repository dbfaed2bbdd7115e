import numpy as np
import pytest
import torch

from training.losses.kfiou import kfiou


def random_boxes(count, seed):
    """(cx, cy, w, h, cos, sin) of words: [count, 6] in float64."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, count)
    sides = random.uniform(5, 80, (count, 2))
    columns = [random.uniform(0, 30, (count, 2)), sides, np.cos(angle)[:, None], np.sin(angle)[:, None]]
    return torch.from_numpy(np.concatenate(columns, axis=1))


def slow_kfiou(prediction, truth):
    """The formula, a pair after another; the product of two Gaussians by the inverses of their Σ."""
    found = []
    for one, other in zip(prediction.tolist(), truth.tolist(), strict=True):
        sigmas = []
        for _, _, width, height, cosine, sine in (one, other):
            angle = np.arctan2(sine, cosine)
            along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
            sigmas.append(width**2 / 4 * np.outer(along, along) + height**2 / 4 * np.outer(across, across))
        sigmas.append(np.linalg.inv(np.linalg.inv(sigmas[0]) + np.linalg.inv(sigmas[1])))
        first, second, both = (4 * np.sqrt(np.linalg.det(sigma)) for sigma in sigmas)
        loss = 1 - 3 * both / (first + second - both)
        for axis in (0, 1):
            offset = abs(one[axis] - other[axis]) / np.sqrt(other[2] * other[3])
            loss += offset**2 / 2 * 9 if offset < 1 / 9 else offset - 1 / 18
        found.append(loss)
    return found


def turned(boxes, degrees):
    """Turned around the origin."""
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    turn = torch.tensor([[cosine, sine], [-sine, cosine]], dtype=boxes.dtype)
    return torch.cat([boxes[:, :2] @ turn, boxes[:, 2:4], boxes[:, 4:] @ turn], dim=1)


def test_the_slow_twin():
    prediction, truth = random_boxes(50, 0), random_boxes(50, 1)
    assert kfiou(prediction, truth).tolist() == pytest.approx(slow_kfiou(prediction, truth))
    near = truth + torch.from_numpy(np.random.default_rng(2).normal(0, 0.2, (50, 6)))
    assert kfiou(near, truth).tolist() == pytest.approx(slow_kfiou(near, truth))


def test_gradcheck():
    prediction, truth = random_boxes(6, 3).requires_grad_(True), random_boxes(6, 4)
    assert torch.autograd.gradcheck(lambda own: kfiou(own, truth), prediction)


def test_equal_boxes_cost_nothing():
    boxes = random_boxes(20, 5)
    torch.testing.assert_close(kfiou(boxes, boxes), torch.zeros(20, dtype=torch.float64), atol=1e-9, rtol=0)
    single = boxes.float()
    torch.testing.assert_close(kfiou(single, single), torch.zeros(20), atol=1e-3, rtol=0)


def test_the_same_rectangle_in_other_words():
    """Turned by 180°, by 90° with its sides swapped, or with a direction of another length."""
    prediction, truth = random_boxes(20, 6), random_boxes(20, 7)
    expected = kfiou(prediction, truth)
    cx, cy, width, height, cosine, sine = prediction.unbind(1)
    for other in (
        torch.stack([cx, cy, width, height, -cosine, -sine], dim=1),
        torch.stack([cx, cy, height, width, -sine, cosine], dim=1),
        torch.stack([cx, cy, width, height, 3 * cosine, 3 * sine], dim=1),
    ):
        torch.testing.assert_close(kfiou(other, truth), expected)


def test_shapes_alone_are_compared_wherever_both_lie():
    """Moved, turned or scaled together, two shapes with one middle are as far from each other as before."""
    prediction, truth = random_boxes(20, 8), random_boxes(20, 9)
    prediction = torch.cat([truth[:, :2], prediction[:, 2:]], dim=1)
    expected = kfiou(prediction, truth)
    for degrees in (30, 90, 180, 271):
        torch.testing.assert_close(kfiou(turned(prediction, degrees), turned(truth, degrees)), expected)
    shift = torch.tensor([500.0, -80, 0, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(kfiou(prediction + shift, truth + shift), expected)
    for scale in (0.1, 40.0):
        unit = torch.tensor([scale] * 4 + [1, 1], dtype=torch.float64)
        torch.testing.assert_close(kfiou(prediction * unit, truth * unit), expected)


def test_distances_count_in_sizes_of_the_truth():
    prediction, truth = random_boxes(20, 10), random_boxes(20, 11)
    unit = torch.tensor([7.0] * 4 + [1, 1], dtype=torch.float64)
    torch.testing.assert_close(kfiou(prediction * unit, truth * unit), kfiou(prediction, truth))
    for quarter in (90, 180, 270):  # smooth-L1 counts each axis for itself: quarter turns only
        torch.testing.assert_close(kfiou(turned(prediction, quarter), turned(truth, quarter)), kfiou(prediction, truth))


def test_the_further_off_the_more():
    truth = torch.tensor([[0.0, 0, 40, 10, 1, 0]], dtype=torch.float64)
    for column, steps in ((0, (0, 1, 5, 20, 90)), (2, (0, 5, 20, 80)), (3, (0, 2, 10, 40))):
        losses = []
        for step in steps:
            prediction = truth.clone()
            prediction[0, column] += step
            losses.append(float(kfiou(prediction, truth)))
        assert losses == sorted(set(losses)), column
    by_angle = [float(kfiou(turned(truth, degrees), truth)) for degrees in (0, 10, 45, 90)]
    assert by_angle == sorted(set(by_angle))
    assert float(kfiou(turned(truth, 180), truth)) == pytest.approx(0, abs=1e-9)


def test_no_pairs():
    assert kfiou(torch.zeros(0, 6), torch.zeros(0, 6)).shape == (0,)


def test_long_words_are_as_exact_in_single_precision():
    angle = torch.deg2rad(torch.arange(0.0, 180, 11))
    sides = torch.tensor([0.0, 0, 400, 8]).expand(len(angle), 4)
    boxes = torch.cat([sides, torch.cos(angle)[:, None], torch.sin(angle)[:, None]], dim=1).requires_grad_(True)
    losses = kfiou(boxes, boxes.detach())
    (slopes,) = torch.autograd.grad(losses.sum(), boxes)
    assert losses.detach().abs().max() < 1e-5
    assert slopes.abs().max() < 1e-3  # nothing to gain where nothing is wrong
