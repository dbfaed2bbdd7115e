"""RRPN: what counts as text, what it is asked, and that it learns a picture by heart."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from shapely import Polygon
from torch import nn

from training.errors import DataError
from training.metrics.rotated_iou import corners, rotated_iou, rotated_iou_matrix
from training.models.detector import Truth, quads_of
from training.models.rotated_boxes import angle_difference, encode, grid_anchors, overlap, with_degrees, with_direction
from training.models.rrpn import ANCHORS, PROPOSALS, Rrpn, RrpnShape, Rule, best_boxes, draw, label

SMALL = RrpnShape(
    backbone="resnet18",
    scales=(1.5, 3, 6),
    hidden=64,
    pooled=64,
    units=128,
    candidates=500,
    proposals=100,
    sampled_anchors=128,
    sampled_proposals=64,
)
WORDS = torch.tensor([[55.0, 50, 70, 20, 36], [105, 115, 60, 24, -17]])
NOTHING = Truth(torch.zeros(0, 6), torch.zeros(0, dtype=torch.bool))


def truth_of(words: torch.Tensor, *ignored: int) -> Truth:
    """Words [M, 5], some of them don't care."""
    return Truth(with_direction(words), torch.tensor([number in ignored for number in range(len(words))]))


def drawn(words: torch.Tensor) -> torch.Tensor:
    """A picture with a dark bar for each word: [1, 3, 160, 160]."""
    picture = np.full((160, 160, 3), 210, dtype=np.uint8)
    for quad in quads_of(with_direction(words).numpy()):
        cv2.fillPoly(picture, [quad.round().astype(np.int32)], (30, 60, 120))
    return torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 127.5 - 1


def test_it_learns_a_picture_by_heart_and_finds_its_words():
    torch.manual_seed(0)
    model, images, truth = Rrpn(SMALL), drawn(WORDS), truth_of(WORDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    slower = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 100)
    losses = []
    for _ in range(100):
        learned = model.learn(images, [truth])
        optimizer.zero_grad()
        (learned.rest + learned.proxy).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        slower.step()
        losses.append(float(learned.rest.detach()))
    assert np.mean(losses[-5:]) < 0.2 * np.mean(losses[:5])
    ((boxes, scores),) = model.eval().find(images)
    assert (scores.diff() <= 0).all()
    assert (boxes[:, 4] >= 0).all()
    best = rotated_iou_matrix(with_degrees(boxes[:2]), WORDS)
    assert sorted(best.argmax(axis=1)) == [0, 1]  # the two surest boxes are the two words
    assert (best.max(axis=1) > 0.6).all()


def test_the_thesis_network():
    shape = RrpnShape()
    model = Rrpn(shape)
    assert model.backbone.feature_info.reduction() == [16]
    with torch.no_grad():
        anchors, scores, moves = model.judge_anchors(model.backbone(torch.zeros(1, 3, 64, 90))[0])
    assert (anchors.shape, scores.shape, moves.shape) == ((4 * 6 * 54, 5), (1, 4 * 6 * 54), (1, 4 * 6 * 54, 5))
    assert model.judge_boxes(torch.zeros(1, 1024, 4, 6), [WORDS])[1].shape == (2, 5)


def test_outputs_belong_to_their_anchors():
    model = Rrpn(SMALL)
    for layer, per_anchor in ((model.anchor_scores, 1), (model.anchor_moves, 5)):
        nn.init.zeros_(layer.weight)
        layer.bias.data = torch.arange(54.0 * per_anchor)
    model.first.weight.data.zero_()
    anchors, scores, moves = model.judge_anchors(torch.zeros(1, 256, 2, 3))
    assert scores.shape == (1, 324)
    for number in (0, 53, 54, 200):
        assert scores[0, number] == number % 54
        assert moves[0, number].tolist() == [number % 54 * 5 + place for place in range(5)]
    torch.testing.assert_close(anchors, grid_anchors(model.cell, 2, 3))


def test_predictions_have_a_graph_and_belong_to_their_words():
    torch.manual_seed(0)
    model, images = Rrpn(SMALL), drawn(WORDS)
    learned = model.learn(images.repeat(2, 1, 1, 1), [truth_of(WORDS), truth_of(WORDS[1:])])
    assert learned.prediction.shape == learned.truth.shape
    assert len(learned.prediction) >= 3  # the words themselves are among the proposals
    torch.testing.assert_close(learned.weights, torch.full((len(learned.truth),), 1 / len(learned.truth)))
    given = with_direction(WORDS)
    assert all((row == given).all(dim=1).any() for row in learned.truth)
    shared = rotated_iou(with_degrees(learned.prediction.detach()), with_degrees(learned.truth))
    assert (shared > 0.3).all()
    learned.prediction.sum().backward()
    assert model.box_moves.weight.grad.any()
    assert model.backbone.conv1.weight.grad.any()
    assert model.box_scores.weight.grad is None


def test_a_tall_word_is_answered_as_it_was_given():
    torch.manual_seed(0)
    tall = torch.tensor([[80.0, 80, 16, 60, 5]])  # RRPN itself sees it lying, turned by 95°
    learned = Rrpn(SMALL).learn(drawn(tall), [truth_of(tall)])
    assert (learned.truth == with_direction(tall)).all()
    assert len(learned.truth)
    assert (learned.prediction[:, 2] > 2 * learned.prediction[:, 3]).all()


def test_the_second_stage_by_hand(monkeypatch):
    model, word, near = Rrpn(SMALL), WORDS[:1], WORDS[:1] + torch.tensor([[3.0, -2, 8, 3, 7]])
    monkeypatch.setattr(model, "propose", lambda *_: near)
    answer = encode(near, word)[0] * torch.tensor([10.0, 10, 5, 5, 1])
    nn.init.zeros_(model.box_moves.weight)
    model.box_moves.bias.data = answer  # right for the proposal; the word itself is a proposal that should stay
    learned = model.learn(drawn(word), [truth_of(word)])
    assert len(learned.prediction) == 2
    error = answer.abs()
    expected = torch.where(error < 1, error**2 / 2, error - 0.5).sum() / 2
    torch.testing.assert_close(learned.proxy, expected)
    shared = rotated_iou(with_degrees(learned.prediction.detach()), WORDS[[0, 0]])
    assert max(shared) > 1 - 1e-4
    assert min(shared) < 0.9


@pytest.mark.parametrize("truth", [NOTHING, truth_of(WORDS, 0, 1), truth_of(WORDS / 40)])
def test_without_a_word(truth):
    model = Rrpn(SMALL)
    learned = model.learn(drawn(WORDS).repeat(2, 1, 1, 1), [truth, NOTHING])
    assert learned.prediction.shape == learned.truth.shape == (0, 6)
    assert learned.weights.shape == (0,)
    assert learned.proxy == 0
    assert learned.rest > 0
    (learned.rest + learned.proxy + learned.prediction.sum()).backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())
    assert not model.box_moves.weight.grad.any()


def test_statistics_are_frozen():
    model = Rrpn(SMALL).train()
    before = [buffer.clone() for buffer in model.backbone.buffers()]
    model.learn(drawn(WORDS), [truth_of(WORDS)])
    assert len(before) > 10
    assert all((a == b).all() for a, b in zip(before, model.backbone.buffers(), strict=True))


def shares(box: torch.Tensor, others: torch.Tensor) -> list[tuple[float, float]]:
    """By shapely, with each other box: IoU, and how much of this box lies in it."""
    shape, *shapes = (Polygon(each) for each in corners(torch.cat([box[None], others]).numpy()))
    both = [shape.intersection(other).area for other in shapes]
    return [(own / (shape.area + other.area - own), own / shape.area) for own, other in zip(both, shapes, strict=True)]


def slow_label(box: torch.Tensor, words: torch.Tensor, ignored: torch.Tensor, rule: Rule) -> int:
    """From the definition, without the rule of the best box."""
    ious = [iou for iou, _ in shares(box, words)]
    best = int(np.argmax(ious))
    turned = abs((float(box[4] - words[best, 4]) + 90) % 180 - 90)
    if ious[best] >= rule.positive and turned <= 15:
        return 1
    if rule.negative <= ious[best] < rule.positive:
        return -1
    unclear = any(iou >= rule.negative or share >= 0.5 for iou, share in shares(box, ignored))
    return -1 if unclear else 0


@pytest.mark.parametrize("rule", [replace(ANCHORS, best_counts=False), PROPOSALS])
def test_labels_are_those_of_the_definition(rule):
    random = torch.Generator().manual_seed(0)
    words = torch.tensor([[60.0, 50, 80, 24, 10], [150, 120, 60, 50, -40], [60, 150, 90, 20, 100]], dtype=torch.float64)
    ignored = torch.tensor([[160.0, 40, 60, 20, 0], [100, 200, 200, 70, 5]], dtype=torch.float64)
    near = torch.cat([words, ignored])[torch.randint(5, (500,), generator=random)]
    noise = torch.randn(500, 5, generator=random, dtype=torch.float64)
    boxes = near + noise * torch.tensor([4, 4, 5, 4, 12], dtype=torch.float64)
    boxes[::9, 4] += 90
    boxes[::7, 2:4] *= 0.5
    labels, matched = label(boxes, words, ignored, rule)
    assert labels.tolist() == [slow_label(box, words, ignored, rule) for box in boxes]
    assert {-1, 0, 1} == set(labels.tolist())
    for number in torch.nonzero(labels == 1)[:, 0]:
        assert matched[number] == np.argmax([iou for iou, _ in shares(boxes[number], words)])


def test_every_word_has_an_anchor_even_a_small_one():
    model = Rrpn(SMALL)
    anchors = grid_anchors(model.cell, 10, 10).double()
    words = torch.tensor([[60.0, 50, 14, 5, 15], [100, 100, 70, 24, 75], [80, 120, 300, 150, -45]], dtype=torch.float64)
    labels, matched = label(anchors, words, words[:0], ANCHORS)
    iou = rotated_iou_matrix(anchors, words)
    for number, word in enumerate(words):
        straight = (angle_difference(anchors[:, 4], word[4]).abs() <= 15.001).numpy()
        own = ((labels == 1) & (matched == number)).numpy()
        assert own.any()
        assert straight[own].all()
        best = iou[straight, number].max()
        assert (iou[own, number] >= min(best, 0.7) - 1e-6).all()
    assert iou[:, 0].max() < 0.3


def test_best_boxes_are_the_best_of_all():
    random = torch.Generator().manual_seed(0)
    low = torch.tensor([0, 0, 8, 5, -90], dtype=torch.float64)
    span = torch.tensor([160, 160, 120, 40, 180], dtype=torch.float64)
    anchors = grid_anchors(Rrpn(SMALL).cell, 10, 10).double()
    for row in torch.rand(40, 5, generator=random, dtype=torch.float64):
        word = low + row * span
        exact = torch.from_numpy(rotated_iou_matrix(anchors, word[None])[:, 0])
        exact[angle_difference(anchors[:, 4], word[4]).abs() > 15.001] = 0
        best = best_boxes(anchors, word, overlap(anchors, word[None], 0.3)[:, 0], 0.3)
        assert best.tolist() == torch.nonzero(exact >= exact.max() - 1e-6)[:, 0].tolist()


def test_a_sample_has_its_share_of_texts():
    labels = torch.tensor([1] * 40 + [0] * 200 + [-1] * 60)
    positive, negative = draw(labels, 64, share=0.25)
    assert (len(positive), len(negative)) == (16, 48)
    assert (labels[positive] == 1).all()
    assert (labels[negative] == 0).all()
    assert len(torch.unique(torch.cat([positive, negative]))) == 64
    few, others = draw(labels[38:], 64, share=0.25)
    assert (len(few), len(others)) == (2, 62)


def test_proposals_are_sound():
    model = Rrpn(SMALL)
    anchors = grid_anchors(model.cell, 10, 10)
    moves = torch.randn(len(anchors), 5) * 2
    moves[::5] = torch.nan
    moves[1::5, 4] = torch.nan
    extent = torch.tensor([160.0, 160])
    boxes = model.propose(anchors, torch.randn(len(anchors)), moves, extent)
    assert 10 < len(boxes) <= SMALL.proposals
    assert ((boxes[:, :2] >= 0) & (boxes[:, :2] <= extent)).all()
    assert (boxes[:, 2:4] >= 1).all()
    assert boxes.isfinite().all()
    alike = rotated_iou_matrix(boxes, boxes) - np.eye(len(boxes))
    assert alike.max() <= 0.7 + 1e-6
    assert len(model.propose(anchors, torch.randn(len(anchors)), moves * torch.nan, extent)) == 0


def test_a_picture_without_proposals(monkeypatch):
    model = Rrpn(SMALL)
    monkeypatch.setattr(model, "propose", lambda *_: torch.zeros(0, 5))
    learned = model.learn(drawn(WORDS), [NOTHING])
    (learned.rest + learned.proxy).backward()
    ((boxes, scores),) = model.find(drawn(WORDS))
    assert (boxes.shape, scores.shape) == ((0, 6), (0,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "vgg16"}, "backbone is 'vgg16'; it must be one of resnet18, resnet50, resnet101"),
        ({"scales": ()}, "scales is"),
        ({"ratios": (0.5, -1)}, "numbers above 0"),
        ({"angles": ()}, "angles is empty"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(DataError, match=message):
        replace(RrpnShape(), **changes)
