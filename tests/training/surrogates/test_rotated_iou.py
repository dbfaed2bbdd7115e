"""LS-IoU: it learns 1 − IoU of boxes it has not seen, on this machine, in seconds."""

import numpy as np
import pytest
import torch

from training.metrics.rotated_iou import rotated_iou
from training.surrogates.learning import Surrogate, learn
from training.surrogates.pairs import Sources
from training.surrogates.quality import OVERLAP_EDGES, measure
from training.surrogates.rotated_iou import (
    BoxDistorter,
    BoxNetwork,
    decode_boxes,
    encode_boxes,
    in_frame_of_truth,
    one_minus_iou,
)

LIMIT = 0.06


def word_boxes(count, seed):
    """Boxes like words in a picture of size 1: of every size, mostly lying, some steep."""
    random = np.random.default_rng(seed)
    height = np.exp(random.uniform(np.log(0.01), np.log(0.08), count))
    aspect = np.exp(random.uniform(np.log(0.5), np.log(8), count))
    centres = random.uniform(0, 1, (2, count))
    return np.stack([*centres, height * aspect, height, random.normal(0, 40, count)], axis=1)


@pytest.fixture(scope="module")
def held_back():
    source = BoxDistorter(word_boxes(500, seed=1), pool=5000, seed=2)
    return source.prediction, source.truth


def test_learns_within_a_minute(held_back):
    torch.manual_seed(0)
    surrogate = Surrogate(BoxNetwork(), one_minus_iou, in_frame_of_truth)
    generator = BoxDistorter(word_boxes(3000, seed=3), batch=512, pool=50_000, seed=4)
    list(learn(surrogate, Sources(generator), steps=600, gradient_weight=0.01, steps_a_round=200))
    quality = measure(surrogate, *held_back, OVERLAP_EDGES)
    assert len(quality.by_bin) == 10
    assert not np.isnan(quality.by_bin).any()
    assert quality.mean < LIMIT


def test_a_surrogate_that_answers_zero_fails(held_back):
    class Nothing(torch.nn.Module):
        def forward(self, boxes):
            return boxes * 0

    assert measure(Surrogate(Nothing(), one_minus_iou, in_frame_of_truth), *held_back, OVERLAP_EDGES).mean > LIMIT


def test_the_pool_is_balanced_over_overlap(held_back):
    counts, _ = np.histogram(1 - one_minus_iou(*held_back).numpy(), bins=10, range=(0, 1))
    assert counts.min() > 480
    assert counts.max() < 520


def test_the_frame_keeps_the_overlap():
    first, second = word_boxes(2000, seed=5), word_boxes(2000, seed=6)
    second[:, :2] = first[:, :2] + np.random.default_rng(7).normal(0, 0.02, (2000, 2))
    seen = in_frame_of_truth(encode_boxes(first).double(), encode_boxes(second).double())
    expected = rotated_iou(first, second)
    assert (expected > 0.1).sum() > 500
    np.testing.assert_allclose(rotated_iou(*(decode_boxes(boxes) for boxes in seen)), expected, atol=1e-4)


@pytest.mark.parametrize(
    "same",
    [
        lambda box: box + np.array([0, 0, 0, 0, 180]),
        lambda box: box + np.array([0, 0, 0, 0, 360]),
        lambda box: box[:, [0, 1, 3, 2, 4]] + [0, 0, 0, 0, 90],
        lambda box: box[:, [0, 1, 3, 2, 4]] - [0, 0, 0, 0, 90],
    ],
)
def test_forms_of_one_rectangle_are_one(same):
    predictions, truths = word_boxes(200, seed=8), word_boxes(200, seed=9)
    expected = in_frame_of_truth(encode_boxes(predictions).double(), encode_boxes(truths).double())
    for arguments in ((same(predictions), truths), (predictions, same(truths))):
        found = in_frame_of_truth(*(encode_boxes(boxes).double() for boxes in arguments))
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_the_frame_is_the_same_wherever_a_pair_lies():
    predictions, truths = word_boxes(200, seed=8), word_boxes(200, seed=9)
    expected = in_frame_of_truth(encode_boxes(predictions).double(), encode_boxes(truths).double())
    moved = [boxes * [3, 3, 3, 3, 1] + [5, -2, 0, 0, 0] for boxes in (predictions, truths)]
    found = in_frame_of_truth(*(encode_boxes(boxes).double() for boxes in moved))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_gradient_reaches_the_prediction():
    prediction = encode_boxes(word_boxes(5, seed=1)).double().requires_grad_(True)
    truth = encode_boxes(word_boxes(5, seed=2)).double()
    assert torch.autograd.gradcheck(lambda boxes: in_frame_of_truth(boxes, truth)[0], prediction)


def test_no_boxes():
    with pytest.raises(ValueError, match="at least one box"):
        BoxDistorter(np.empty((0, 5)))
