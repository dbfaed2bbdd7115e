import numpy as np

from serving.pipelines.cut_words import are_cut, mended
from serving.pipelines.tiles import Tile


def boxes(*rows):
    return np.array([[*row[:4], *(row[4:] or (1, 0))] for row in rows], np.float32)


def test_only_borders_inside_the_picture_cut():
    left, right = Tile(0, 0, 400, 300, (700, 300)), Tile(300, 0, 400, 300, (700, 300))
    at_the_right, at_the_left, inside = (380, 100, 40, 10), (20, 100, 40, 10), (200, 100, 40, 10)
    assert are_cut(boxes(at_the_right, at_the_left, inside), left).tolist() == [True, False, False]
    assert are_cut(boxes(at_the_right, at_the_left, inside), right).tolist() == [False, True, False]
    assert are_cut(boxes((200, 290, 40, 10, 0, 1)), left).tolist() == [False]  # the picture ends there


def test_a_turned_box_reaches_with_its_corner():
    tile = Tile(0, 0, 400, 300, (700, 300))
    assert are_cut(boxes((360, 150, 100, 10, 0.8, 0.6)), tile).tolist() == [True]
    assert are_cut(boxes((360, 150, 100, 10, 0, 1)), tile).tolist() == [False]


def test_two_parts_of_a_word_become_one():
    parts = boxes((100, 50, 120, 20), (200, 51, 120, 21))
    whole, stays = mended(parts, np.array([True, True]))
    assert stays.tolist() == [True, False]
    np.testing.assert_allclose(whole[0], [150, 50, 220, 20, 1, 0])


def test_parts_along_a_slope_become_one():
    first = np.array([100.0, 50.0])
    second = first + 80 * np.array([0.8, 0.6])
    whole, stays = mended(boxes((*first, 100, 20, 0.8, 0.6), (*second, 100, 20, 0.8, 0.6)), np.array([True, True]))
    assert stays.tolist() == [True, False]
    np.testing.assert_allclose(whole[0], [132, 74, 180, 20, 0.8, 0.6], rtol=1e-5)


def test_what_is_whole_or_apart_stays():
    apart = boxes((100, 50, 60, 20), (300, 50, 60, 20))
    below = boxes((100, 50, 120, 20), (200, 70, 120, 20))
    taller = boxes((100, 50, 120, 20), (200, 50, 120, 60))
    askew = boxes((100, 50, 120, 20), (150, 50, 120, 20, 0.8, 0.6))
    for each in (apart, below, taller, askew):
        same, stays = mended(each, np.array([True, True]))
        assert stays.all()
        np.testing.assert_array_equal(same, each)
    overlapping = boxes((100, 50, 120, 20), (200, 51, 120, 21))
    assert mended(overlapping, np.array([True, False]))[1].all()
