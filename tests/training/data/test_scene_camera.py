"""The camera: any picture may be taken, and nothing in it moves."""

import numpy as np
import pytest

from training.data.scene_camera import photograph


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (200, 1), (90, 160)])
def test_any_scene_can_be_photographed(size):
    scene = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    for seed in range(25):
        taken = photograph(scene, np.random.default_rng(seed))
        assert taken.shape == scene.shape
        assert taken.dtype == np.uint8
        np.testing.assert_array_equal(taken, photograph(scene, np.random.default_rng(seed)))


def test_nothing_moves(monkeypatch):
    # It changes pixels one by one, and would only upset how the middle is measured below.
    monkeypatch.setattr("training.data.scene_camera._lit_from_a_side", lambda scene, _: scene)
    scene = np.full((120, 120, 3), 40, dtype=np.uint8)
    scene[50:70, 30:60] = 220
    for seed in range(60):
        light = photograph(scene, np.random.default_rng(seed)).mean(axis=2)
        bright = np.argwhere(light > (light[55:65, 35:55].mean() + light[20:40, 20:80].mean()) / 2)
        inner = bright[(np.abs(bright - (60, 45)) < 25).all(axis=1)]
        np.testing.assert_allclose(inner.mean(axis=0), (59.5, 44.5), atol=0.4)
