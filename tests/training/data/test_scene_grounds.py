"""Grounds: photographs, walls and clutter of any size."""

import numpy as np
import pytest

from training.data.scene_grounds import CLUTTER, WALLS, draw_ground


def test_photographs_are_grounds():
    green = np.full((90, 130, 3), (0, 255, 0), dtype=np.uint8)
    random = np.random.default_rng(0)
    shares = [np.mean(np.all(draw_ground([green], random, 60, 80) == green[0, 0], axis=2)) for _ in range(40)]
    assert np.mean(shares) > 0.3
    assert draw_ground([], random, 60, 80).shape == (60, 80, 3)


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("size", [(1, 1), (5, 300), (200, 3), (120, 160)])
def test_every_wall_fits(wall, size):
    for seed in range(5):
        drawn = wall(np.random.default_rng(seed), *size)
        assert drawn.shape == (*size, 3)
        assert drawn.dtype == np.uint8


@pytest.mark.parametrize("clutter", CLUTTER)
def test_clutter_is_made_of_shapes(clutter):
    shapes = clutter(np.random.default_rng(0))
    assert shapes
    assert all(shape.ndim == 2 and shape.shape[1] == 2 and len(shape) >= 3 for shape in shapes)
