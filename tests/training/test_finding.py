from functools import partial

import cv2
import numpy as np
import pytest
import torch

from export.reading import WHILE_TRAINING, gather_as_served
from training.data.pixels import normalised
from training.data.scenes import Scene
from training.finding import Found, best_threshold, count_found, detection_figures, find_words, maps_of
from training.metrics.text_detection import Counts
from training.models.dense_detector import OUTPUTS, SIZE_UNIT, DenseDetector, DetectorShape, box_maps
from training.models.detector import Truth, quads_of
from training.models.rrpn import Rrpn, RrpnShape
from training.models.word_cells import assign

GATHER = partial(gather_as_served, WHILE_TRAINING)


class Knows(DenseDetector):
    """A detector that has the truth of each picture, one after another, and answers with perfect maps."""

    def __init__(self, truths):
        super().__init__(DetectorShape(hidden=8))
        self.truths = iter(truths)
        self.sizes = []

    def forward(self, images):
        truth = next(self.truths)
        height, width = images.shape[2] // 4, images.shape[3] // 4
        self.sizes.append((images.shape[3], images.shape[2]))
        cells = assign(truth, (height, width), 4, 0.3)
        maps = torch.zeros(1, OUTPUTS, height, width)
        maps[0, 0] = torch.where(cells.hearts, 8.0, -8.0)
        offsets = (cells.places - cells.boxes[:, :2]) / cells.boxes[:, 2:3]
        cosine, sine = cells.boxes[:, 4:].unbind(1)
        double = torch.stack([cosine**2 - sine**2, 2 * cosine * sine], dim=1)
        answers = [offsets, torch.log(cells.boxes[:, 2:4] / SIZE_UNIT), double, cells.boxes[:, 4:]]
        maps[0, 1:, cells.hearts] = torch.cat(answers, dim=1).T
        return maps


def scene_of(tmp_path, name, rows, texts, size=(100, 150)):
    """Words (cx, cy, w, h, degrees) on a picture of which nothing else is asked."""
    cv2.imwrite(str(tmp_path / name), np.full((*size, 3), 200, dtype=np.uint8))
    angle = np.deg2rad([row[4] for row in rows])
    boxes = np.column_stack([np.array(rows, dtype=float).reshape(-1, 5)[:, :4], np.cos(angle), np.sin(angle)])
    return Scene(tmp_path / name, quads_of(boxes), tuple(texts), "val")


@pytest.fixture
def scenes(tmp_path):
    rows = [(40, 30, 60, 16, 0), (110, 50, 40, 14, 90), (50, 75, 50, 18, -160)]
    return [
        scene_of(tmp_path, "a.png", rows, ["leaf", "oak", "###"]),
        scene_of(tmp_path, "b.png", [(30, 20, 40, 20, 10)], ["moss"], size=(40, 64)),
        scene_of(tmp_path, "c.png", [], []),
    ]


def truths_of(scenes):
    return [Truth.of(scene.quads, np.zeros(len(scene.quads), dtype=bool)) for scene in scenes]


def test_words_are_found_where_they_are(scenes):
    model = Knows(truths_of(scenes))
    found = find_words(model, scenes, GATHER)
    assert model.sizes == [(160, 128), (64, 64), (160, 128)]  # filled up
    assert [len(each.quads) for each in found] == [3, 1, 0]
    for scene, each in zip(scenes, found, strict=True):
        for quad in scene.quads:
            assert np.abs(each.quads - quad).max(axis=(1, 2)).min() < 0.2
    assert count_found(scenes, found) == Counts(3, 3, 3)  # the word that nobody cares for is left out
    assert detection_figures(scenes, found, 0.5) == {
        "detection/precision": 1.0,
        "detection/recall": 1.0,
        "detection/f1": 1.0,
    }


def test_an_rrpn_gathers_its_boxes_itself(scenes):
    torch.manual_seed(0)
    shape = RrpnShape("resnet18", scales=(2, 4), hidden=16, pooled=8, units=16, candidates=50, proposals=10)
    model = Rrpn(shape).eval()
    found = find_words(model, scenes, lambda maps: pytest.fail("there are no maps"))
    for scene, each in zip(scenes, found, strict=True):
        [(boxes, scores)] = model.find(normalised(torch.from_numpy(scene.load())[None]))
        assert len(boxes) > 0
        np.testing.assert_allclose(each.quads, quads_of(boxes.numpy()))
        np.testing.assert_allclose(each.scores, scores)


def test_maps_of_a_picture_of_any_size():
    torch.manual_seed(0)
    model = DenseDetector(DetectorShape(hidden=8)).eval()
    pixels = np.random.default_rng(0).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    maps = maps_of(model, pixels)
    assert maps.shape == (16, 24, 7)
    assert maps.dtype == np.float32
    room = np.zeros((64, 96, 3), dtype=np.uint8)
    room[:50, :70] = pixels  # filled up with black on the right and below, as the service does
    with torch.inference_mode():
        expected = box_maps(model(normalised(torch.from_numpy(room)[None])))[0].numpy()
    np.testing.assert_allclose(maps, expected, rtol=1e-3, atol=1e-3)
    assert maps_of(model, pixels[:32, :64]).shape == (8, 16, 7)


def test_scores_below_the_threshold_are_left_out(scenes):
    found = [Found(scene.quads, np.linspace(0.3, 0.9, len(scene.quads), dtype=np.float32)) for scene in scenes]
    assert count_found(scenes, found, 0.3) == Counts(3, 3, 3)
    assert count_found(scenes, found, 0.31) == Counts(1, 1, 3)
    assert count_found(scenes, found, 0.91) == Counts(0, 0, 3)


def test_the_best_threshold_is_that_of_the_highest_f1(scenes):
    wrong = scenes[0].quads[:2] + 300
    quads = np.concatenate([scenes[0].quads[:2], wrong])
    found = [
        Found(quads, np.array([0.8, 0.7, 0.6, 0.3], dtype=np.float32)),
        Found(scenes[1].quads, np.array([0.9], dtype=np.float32)),
        Found(np.zeros((0, 4, 2)), np.zeros(0, dtype=np.float32)),
    ]
    threshold = best_threshold(scenes, found)
    assert 0.6 < threshold <= 0.7
    assert detection_figures(scenes, found, threshold)["detection/f1"] == 1
    low = detection_figures(scenes, found, 0.2)
    assert (low["detection/precision"], low["detection/recall"]) == (0.6, 1.0)
    assert type(threshold) is float


def test_nothing_found(scenes):
    nothing = [Found(np.zeros((0, 4, 2)), np.zeros(0, dtype=np.float32)) for _ in scenes]
    assert 0 < best_threshold(scenes, nothing) < 1
    assert set(detection_figures(scenes, nothing, 0.5).values()) == {0.0}
