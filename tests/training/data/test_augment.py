import numpy as np
import pytest

from training.data.augment import random_view


@pytest.fixture
def picture(tmp_path, photo):
    file = tmp_path / "a.jpg"
    photo(200, 120, seed=3).save(file, quality=95)
    return file


def test_views_differ_and_depend_on_the_seed_alone(picture):
    first, again, other = (random_view(picture, 64, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.shape == (64, 64, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert np.abs(first.astype(int) - other).mean() > 3


def test_the_whole_picture_at_the_most(picture):
    """With the whole area asked for nothing fits but the middle square."""
    view = random_view(picture, 64, np.random.default_rng(0), smallest=1.0)
    assert view.shape == (64, 64, 3)


def test_very_long_pictures(tmp_path, photo):
    file = tmp_path / "long.png"
    photo(600, 3).save(file)
    assert random_view(file, 32, np.random.default_rng(0)).shape == (32, 32, 3)
