import cv2
import numpy as np
import pytest

from training.data import scene_views
from training.data.scene_views import view_of, visible_share

COLOURS = np.array([(250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)], dtype=np.uint8)  # of corners, in order


def square(left, top, side):
    return [(left, top), (left + side, top), (left + side, top + side), (left, top + side)]


def marked_scene():
    """Turned words whose quarters have the colours of their corners: [400, 500, 3] and quads [3, 4, 2]."""
    pixels = np.zeros((400, 500, 3), dtype=np.uint8)
    quads = []
    for cx, cy, width, height, degrees in ((120, 100, 120, 50, 20), (330, 120, 90, 60, 200), (250, 300, 140, 44, 100)):
        angle = np.deg2rad(degrees)
        along, down = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) * [[width], [height]]
        centre = np.array([cx, cy], dtype=float)
        quad = np.array([centre + a * along / 2 + d * down / 2 for a, d in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        for number, colour in enumerate(COLOURS.tolist()):
            corner, after, before = quad[number], quad[(number + 1) % 4], quad[number - 1]
            part = np.array([corner, (corner + after) / 2, centre, (corner + before) / 2])
            cv2.fillConvexPoly(pixels, np.rint(part).astype(np.int32), colour)
        quads.append(quad)
    return pixels, np.array(quads)


@pytest.fixture
def as_it_is(monkeypatch):
    """Views in the light of the scene."""
    monkeypatch.setattr(scene_views, "_photographed", lambda pixels, random: pixels)


def test_words_lie_where_their_corners_say(as_it_is):
    pixels, quads = marked_scene()
    seen = 0
    for seed in range(40):
        view = view_of(pixels, quads, np.zeros(3, dtype=bool), 160, np.random.default_rng(seed))
        assert view.pixels.shape == (160, 160, 3)
        for quad in view.quads[~view.ignored]:
            places = np.rint(quad * 0.6 + quad.mean(axis=0) * 0.4).astype(int)
            inside = ((places >= 0) & (places < 160)).all(axis=1)
            shown = view.pixels[places[inside, 1], places[inside, 0]].astype(int)
            assert np.abs(shown - COLOURS[inside]).max(initial=0) < 60, seed
            seen += int(inside.sum())
    assert seen > 80


def test_views_are_turned_and_scaled(as_it_is):
    pixels, quads = marked_scene()
    heights, angles = [], []
    for seed in range(60):
        view = view_of(pixels, quads[:1], np.zeros(1, dtype=bool), 160, np.random.default_rng(seed))
        for quad in view.quads:
            along, down = quad[1] - quad[0], quad[3] - quad[0]
            heights.append(float(np.hypot(*down)))
            angles.append(float(np.degrees(np.arctan2(along[1], along[0]))) - 20)
            assert along[0] * down[1] - along[1] * down[0] > 0  # never mirrored
    assert min(heights) < 35
    assert max(heights) > 65
    near = np.abs((np.array(angles) + 180) % 360 - 180)
    assert 0.35 < (near < 12).mean() < 0.95
    assert near.max() > 90


def test_most_views_show_a_wanted_word():
    pixels = np.zeros((2000, 2000, 3), dtype=np.uint8)
    quads = np.array([square(100, 100, 40), square(1800, 1800, 40)], dtype=float)
    views = [view_of(pixels, quads, np.array([False, True]), 128, np.random.default_rng(seed)) for seed in range(40)]
    assert sum((~view.ignored).any() for view in views) > 15
    assert sum(view.ignored.any() for view in views) < 15


def test_words_that_are_cut_off_are_not_asked_for(as_it_is, monkeypatch):
    monkeypatch.setattr(scene_views, "_turn", lambda random: 0.0)
    pixels, quads = marked_scene()
    parts = 0
    for seed in range(40):
        view = view_of(pixels, quads, np.zeros(3, dtype=bool), 128, np.random.default_rng(seed))
        share = visible_share(view.quads, 128)
        assert (share > 0.02).all()
        np.testing.assert_array_equal(view.ignored, share < 0.8)
        parts += int(view.ignored.sum())
    assert parts > 5


def test_what_nobody_cares_for_stays_so():
    pixels, quads = marked_scene()
    for seed in range(10):
        view = view_of(pixels, quads, np.ones(3, dtype=bool), 128, np.random.default_rng(seed))
        assert view.ignored.all()


def test_a_picture_without_words():
    view = view_of(
        np.zeros((50, 40, 3), np.uint8), np.zeros((0, 4, 2)), np.zeros(0, bool), 64, np.random.default_rng(0)
    )
    assert view.quads.shape == (0, 4, 2)
    assert view.ignored.shape == (0,)


def test_the_same_numbers_give_the_same_view():
    pixels, quads = marked_scene()
    one, same, other = (
        view_of(pixels, quads, np.zeros(3, dtype=bool), 96, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.pixels, same.pixels)
    np.testing.assert_array_equal(one.quads, same.quads)
    assert not np.array_equal(one.pixels, other.pixels)


def test_light_and_lens_change():
    pixels, _ = marked_scene()
    before = pixels.copy()
    views = [scene_views._photographed(pixels, np.random.default_rng(seed)) for seed in range(30)]
    assert all(view.shape == pixels.shape and view.dtype == np.uint8 for view in views)
    changed = sum(not np.array_equal(view, pixels) for view in views)
    assert 10 < changed < 30
    np.testing.assert_array_equal(pixels, before)


def test_visible_share():
    quads = [square(10, 10, 20), square(-10, 10, 20), square(-5, -5, 10), square(200, 0, 10), square(90, 40, 20)]
    np.testing.assert_allclose(visible_share(np.array(quads, dtype=float), 100), [1, 0.5, 0.25, 0, 0.5])
    crossed = np.array([[(0, 0), (40, 10), (40, 0), (0, 10)]], dtype=float)
    np.testing.assert_allclose(visible_share(crossed, 100), [1])
    np.testing.assert_allclose(visible_share(np.zeros((1, 4, 2)), 100), [0])
    assert visible_share(np.zeros((0, 4, 2)), 100).shape == (0,)
