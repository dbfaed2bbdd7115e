"""The detector: its maths against slow twins, perfect maps come back as the words they were made of, and it learns."""

import math

import numpy as np
import pytest
import torch

from export.reading import WHILE_TRAINING, gather_as_served
from training.data.pixels import normalised
from training.finding import maps_of
from training.metrics.rotated_iou import rotated_iou
from training.models.dense_detector import (
    LEAST_NEGATIVES,
    NEGATIVES,
    OUTPUTS,
    SIZE_UNIT,
    DenseDetector,
    DetectorShape,
    box_maps,
    box_proxy,
    boxes_at,
    published_detector,
    score_loss,
)
from training.models.detector import Truth, quads_of
from training.models.picture_backbone import STRIDE, published_picture_backbone
from training.models.word_cells import assign
from training.surrogates.rotated_iou import decode_boxes, encode_boxes

SURE = 8.0  # a logit
SMALL = DetectorShape(hidden=8)


def truth_of(*rows):
    """Rows (cx, cy, w, h, degrees)."""
    boxes = encode_boxes(np.array(rows, dtype=float).reshape(-1, 5))
    return Truth(boxes, torch.zeros(len(boxes), dtype=torch.bool))


def rows_of(boxes, places):
    """What a cell must answer to mean a box: the parametrisation the other way round."""
    cx, cy, width, height, cosine, sine = boxes.unbind(1)
    answers = (
        (places[:, 0] - cx) / width,
        (places[:, 1] - cy) / width,
        torch.log(width / SIZE_UNIT),
        torch.log(height / SIZE_UNIT),
        cosine**2 - sine**2,
        2 * cosine * sine,
        cosine,
        sine,
    )
    return torch.stack(answers, dim=1)


def perfect_maps(truth, size, heart=0.3):
    """Raw maps of a detector that knows: [1, 9, h, w]."""
    cells = assign(truth, size, STRIDE, heart)
    maps = torch.zeros(1, OUTPUTS, *size)
    maps[0, 0] = torch.where(cells.hearts, SURE, -SURE)
    maps[0, 1:, cells.hearts] = rows_of(cells.boxes, cells.places).T
    return maps


def gathered(maps):
    return gather_as_served(WHILE_TRAINING, box_maps(maps)[0].numpy())


@pytest.mark.parametrize(("width", "height"), [(90, 24), (30, 28), (9, 40), (14, 7), (6, 5), (150, 12)])
def test_perfect_maps_give_the_words_back(width, height):
    for degrees in [*range(-180, 180, 15), 0.02, 89.98, 90.02, -90.02, 179.98]:
        truth = truth_of((101.3, 94.6, width, height, degrees))
        boxes, scores = gathered(perfect_maps(truth, (48, 52)))
        assert len(boxes) == 1, degrees
        assert scores[0] > 0.99
        np.testing.assert_allclose(boxes[0, :4], truth.boxes[0, :4], atol=0.05, err_msg=str(degrees))
        np.testing.assert_allclose(boxes[0, 4:], truth.boxes[0, 4:], atol=2e-3, err_msg=str(degrees))


def test_many_words_of_one_picture():
    rows = [(40, 20, 60, 14, 0), (40, 36, 58, 12, 180), (100, 60, 70, 16, 90), (130, 60, 66, 14, -90)]
    rows += [(40, 110, 50, 18, 37), (180, 30, 9, 6, 5), (192, 30, 9, 6, 5), (170, 120, 80, 20, -140)]
    truth = truth_of(*rows)
    boxes, _ = gathered(perfect_maps(truth, (40, 56)))
    assert len(boxes) == len(rows)
    order = [int(np.argmin(np.hypot(*(boxes[:, :2] - row[:2]).T))) for row in np.array(rows)]
    assert sorted(order) == list(range(len(rows)))
    np.testing.assert_allclose(boxes[order], truth.boxes, atol=0.05)


def test_perfect_maps_cost_nothing():
    truths = [truth_of((60, 40, 80, 20, 25), (60, 90, 30, 12, -100)), truth_of((64, 64, 40, 40, 180))]
    maps = torch.cat([perfect_maps(truth, (32, 32)) for truth in truths])
    learned = DenseDetector(SMALL).judge(maps, truths)
    assert float(learned.proxy) < 1e-9
    assert float(learned.rest) < 0.01
    torch.testing.assert_close(learned.prediction, learned.truth, atol=0.1, rtol=0)
    assert float(learned.weights.sum()) == pytest.approx(1)
    each = [(learned.truth[:, 0] == row[0]) & (learned.truth[:, 1] == row[1]) for t in truths for row in t.boxes]
    assert [float(learned.weights[own].sum()) for own in each] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("channel", range(OUTPUTS))
def test_every_answer_counts(channel):
    """Where one of the nine is wrong, the loss is higher, and its slope points back."""
    truth = truth_of((60, 40, 80, 20, 25))
    maps = perfect_maps(truth, (24, 32))
    wrong = maps.clone()
    wrong[:, channel] += 0.3 if channel else -6.0
    wrong.requires_grad_(True)
    model = DenseDetector(SMALL)
    right_cost, cost = (model.judge(own, [truth]) for own in (maps, wrong))
    total = cost.rest + cost.proxy
    assert total.detach() > right_cost.rest + right_cost.proxy + 0.03
    (slope,) = torch.autograd.grad(total, wrong)
    hearts = maps[0, 0] > 0
    assert (slope[0, channel][hearts] * (1 if channel else -1) > 0).all()


def test_a_batch_without_words():
    model = DenseDetector(SMALL)
    nothing = Truth(torch.zeros(0, 6), torch.zeros(0, dtype=torch.bool))
    ignored = Truth(truth_of((30, 30, 40, 20, 0)).boxes, torch.tensor([True]))
    learned = model.learn(torch.randn(2, 3, 64, 64), [nothing, ignored])
    assert learned.prediction.shape == learned.truth.shape == (0, 6)
    assert learned.weights.shape == (0,)
    assert float(learned.proxy.detach()) == 0
    (learned.rest + learned.proxy).backward()
    slopes = [parameter.grad for parameter in model.parameters()]
    assert all(slope is not None and torch.isfinite(slope).all() for slope in slopes)


def slow_score_loss(scores, kinds):
    """Cross-entropy of all hearts and of the hardest others, and Dice, a cell after another."""
    each = list(zip(scores.flatten().tolist(), kinds.flatten().tolist(), strict=True))
    hearts = [math.log1p(math.exp(-score)) for score, kind in each if kind == 1]
    others = [math.log1p(math.exp(score)) if kind == 0 else 0.0 for score, kind in each]
    count = min(max(NEGATIVES * len(hearts), LEAST_NEGATIVES * len(kinds)), len(each))
    entropy = (sum(hearts) + sum(sorted(others)[-count:])) / (len(hearts) + count)
    chances = [(1 / (1 + math.exp(-score)), kind) for score, kind in each if kind >= 0]
    shared = sum(chance for chance, kind in chances if kind == 1)
    dice = 1 - (2 * shared + 1) / (sum(chance**2 for chance, _ in chances) + len(hearts) + 1)
    return 2 * entropy + dice


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4])
def test_the_slow_twin_of_scores(share):
    random = torch.Generator().manual_seed(1)
    scores = torch.randn(2, 20, 30, generator=random, dtype=torch.float64) * 3
    chance = torch.rand(2, 20, 30, generator=random)
    kinds = (chance < share).long() - (chance > 0.9).long()
    assert float(score_loss(scores, kinds)) == pytest.approx(slow_score_loss(scores, kinds))
    elsewhere = torch.where(kinds < 0, scores + 5, scores)
    assert float(score_loss(elsewhere, kinds)) == pytest.approx(float(score_loss(scores, kinds)))


def test_scores_gradcheck():
    random = torch.Generator().manual_seed(2)
    scores = torch.randn(1, 5, 6, generator=random, dtype=torch.float64, requires_grad=True)
    kinds = torch.randint(-1, 2, (1, 5, 6), generator=random)
    assert torch.autograd.gradcheck(lambda scores: score_loss(scores, kinds), scores)


def random_answers(count, seed=0):
    """Answers of cells, their places, and the boxes that they should have meant."""
    random = torch.Generator().manual_seed(seed)
    numbers = torch.rand(count, 13, generator=random, dtype=torch.float64)
    degrees = numbers[:, 4:5] * 360
    angles = torch.cat([torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))], dim=1)
    truth = torch.cat([numbers[:, :2] * 100, 6 + numbers[:, 2:4] * 60, angles], dim=1)
    places = truth[:, :2] + (numbers[:, 11:] - 0.5) * 20
    return rows_of(truth, places) + (numbers[:, 5:].roll(1, 0) - 0.5) * 0.4, places, truth


def slow_box_proxy(row, place, word):
    cx, cy, width, height, cosine, sine = word
    angle = math.atan2(sine, cosine)
    # How far the middle that a true width would give is off, along the word and across.
    off_x, off_y = row[0] * width - (place[0] - cx), row[1] * width - (place[1] - cy)
    along, across = off_x * cosine + off_y * sine, off_y * cosine - off_x * sine
    unit = width / min(max(width / height, 0.5), 8)  # the height, but for very long and very thin words
    errors = [along / width, across / unit, row[2] - math.log(width / 32), row[3] - math.log(height / 32)]
    errors += [row[4] - math.cos(2 * angle), row[5] - math.sin(2 * angle)]
    return sum(error**2 / 0.2 if abs(error) < 0.1 else abs(error) - 0.05 for error in errors)


def test_the_slow_twin_of_boxes():
    rows, places, truth = random_answers(60)
    expected = [slow_box_proxy(*each) for each in zip(rows.tolist(), places.tolist(), truth.tolist(), strict=True)]
    assert box_proxy(rows, places, truth).tolist() == pytest.approx(expected)


def test_boxes_gradcheck():
    rows, places, truth = random_answers(6, seed=3)
    rows.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: box_proxy(rows, places, truth), rows)
    assert torch.autograd.gradcheck(lambda rows: boxes_at(rows, places), rows)


def test_the_direction_is_a_decision_of_its_own():
    """Answers that point backwards turn a word on its head; its rectangle stays."""
    rows, places, _ = random_answers(40)
    backwards = rows.clone()
    backwards[:, 6:] *= -1
    one, other = boxes_at(rows, places), boxes_at(backwards, places)
    torch.testing.assert_close(other, torch.cat([one[:, :4], -one[:, 4:]], dim=1))
    torch.testing.assert_close(one[:, 4:].square().sum(dim=1), torch.ones(40, dtype=torch.float64), atol=1e-5, rtol=0)
    assert ((one[:, 4:] * rows[:, 6:]).sum(dim=1) >= 0).all()


def test_there_is_no_jump_where_angles_begin_anew():
    places = torch.tensor([[50.0, 50.0]])
    for degrees in (0, 90, 180, -90, 45):
        near = [encode_boxes(np.array([[50.0, 50, 60, 15, degrees + step]])) for step in (-0.05, 0.05)]
        one, other = (boxes_at(rows_of(own, places), places) for own in near)
        assert rotated_iou(decode_boxes(one), decode_boxes(other))[0] > 0.98
        assert rotated_iou(decode_boxes(one), decode_boxes(near[0]))[0] > 0.98


@pytest.mark.parametrize("double", [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (-1.0, -0.0)])
def test_slopes_are_finite_wherever_an_axis_points(double):
    rows = torch.tensor([[0.0, 0, 0, 0, *double, 0, 0]], requires_grad=True)
    boxes = boxes_at(rows, torch.tensor([[10.0, 10]]))
    (slope,) = torch.autograd.grad(boxes.sum(), rows)
    assert torch.isfinite(boxes).all()
    assert torch.isfinite(slope).all()
    assert slope.abs().max() < 100


def test_answers_out_of_all_bounds_are_still_boxes():
    boxes = boxes_at(torch.tensor([[0.0, 0, 90, -90, 1e4, 1e4, -1e4, 1e4]]), torch.zeros(1, 2))
    assert torch.isfinite(boxes).all()
    assert 0 < float(boxes[0, 3]) < float(boxes[0, 2]) < 2000


def test_maps_are_boxes_cell_by_cell():
    torch.manual_seed(0)
    maps = torch.randn(2, OUTPUTS, 3, 5)
    served = box_maps(maps)
    assert served.shape == (2, 3, 5, 7)
    for picture, y, x in ((0, 0, 0), (1, 2, 4), (0, 1, 3)):
        answer = maps[picture, :, y, x]
        expected = boxes_at(answer[None, 1:], torch.tensor([[4 * x + 2.0, 4 * y + 2.0]]))[0]
        torch.testing.assert_close(served[picture, y, x, 1:], expected)
        assert float(served[picture, y, x, 0]) == pytest.approx(1 / (1 + math.exp(-float(answer[0]))))


def test_it_learns_a_picture_by_heart(picture_with_words):
    """The head alone, on what the published backbone sees."""
    pixels, truth = picture_with_words
    torch.manual_seed(0)
    model = published_detector(DetectorShape())
    with torch.no_grad():
        features = model.backbone(normalised(torch.from_numpy(pixels)[None]))
    optimizer = torch.optim.Adam([*model.first.parameters(), *model.last.parameters()], 3e-3)
    for _ in range(100):
        learned = model.judge(model.head(features), [truth])
        optimizer.zero_grad()
        (learned.rest + learned.proxy).backward()
        optimizer.step()
    boxes, scores = gather_as_served(WHILE_TRAINING, maps_of(model, pixels))
    assert len(boxes) == len(truth.boxes)
    assert scores.min() > 0.9
    for word in truth.boxes.numpy():
        found = boxes[np.argmin(np.hypot(*(boxes[:, :2] - word[:2]).T))]
        both = (decode_boxes(torch.from_numpy(own)[None]) for own in (found, word))
        assert rotated_iou(*both)[0] > 0.7
        assert found[4:] @ word[4:] > 0.9


@pytest.fixture(scope="module")
def picture_with_words():
    """Words upright, on their head, and read downwards: [96, 192, 3] and their truth."""
    import cv2

    pixels = np.full((96, 192, 3), 230, dtype=np.uint8)
    cv2.putText(pixels, "leaf", (8, 36), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (40, 20, 90), 2, cv2.LINE_AA)
    cv2.putText(pixels, "moss", (100, 30), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (20, 90, 40), 2, cv2.LINE_AA)
    pixels[:48, 96:] = pixels[:48, 96:][::-1, ::-1]
    side = np.full((24, 96, 3), 230, dtype=np.uint8)
    cv2.putText(side, "oak", (20, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (0, 0, 0), 2, cv2.LINE_AA)
    pixels[:, 72:96] = np.rot90(side, -1)
    truth = truth_of((36, 26, 62, 28, 0), (150, 28, 76, 20, 180), (84, 40, 50, 18, 90))
    return pixels, truth


def test_it_starts_from_what_is_published():
    published = published_picture_backbone()
    for hidden in (64, 8):
        model = published_detector(DetectorShape(hidden=hidden))
        assert not model.training
        for name, value in model.backbone.state_dict().items():
            torch.testing.assert_close(value, published.backbone.state_dict()[name])
        taken = min(hidden, 24)
        torch.testing.assert_close(model.first.weight.detach()[:taken], published.weight[:taken])
        torch.testing.assert_close(model.first.bias.detach()[:taken], published.bias[:taken])
        assert model.first.out_channels == hidden
        assert model.provenance.data[0].startswith("PP-OCRv6 small")
    model.backbone.stem.first.weight.data.zero_()  # a copy: what is published stays
    assert published.backbone.stem.first.weight.abs().max() > 0


def test_it_begins_with_few_words():
    torch.manual_seed(0)
    model = published_detector(DetectorShape())
    with torch.inference_mode():
        maps = model(torch.zeros(1, 3, 64, 96))
    assert maps.shape == (1, OUTPUTS, 16, 24)
    assert torch.sigmoid(maps[:, 0]).max() < 0.5


def test_found_words_have_the_corners_that_their_truth_has():
    truth = truth_of((60, 40, 80, 20, 205))
    boxes, _ = gathered(perfect_maps(truth, (24, 32)))
    np.testing.assert_allclose(quads_of(boxes), quads_of(truth.boxes.numpy()), atol=0.1)
