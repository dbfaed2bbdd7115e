"""From maps to words, on maps that are made by hand for words that are known."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.affinity import rotate, translate

from serving.pipelines.word_boxes import OVERLAP, SMALLEST, gather, shared_part, without_doubles

STRIDE = 4
RIM = 0.2  # of a word's height, all around, that is not its heart


def word(x, y, width=80.0, height=24.0, degrees=0.0):
    angle = np.deg2rad(degrees)
    return np.array([x, y, width, height, np.cos(angle), np.sin(angle)])


def maps_of(words, size=(320, 240), score=0.9):
    """Maps [h, w, 7] in which each cell of a word's heart says its box; later words are over earlier ones."""
    width, height = size
    maps = np.zeros((height // STRIDE, width // STRIDE, 7), np.float32)
    maps[..., 3:6] = 1  # cells without a word say something, too
    down, across = np.mgrid[: maps.shape[0], : maps.shape[1]]
    x, y = (across + 0.5) * STRIDE, (down + 0.5) * STRIDE
    for cx, cy, wide, tall, cosine, sine in words:
        along, over = (x - cx) * cosine + (y - cy) * sine, (y - cy) * cosine - (x - cx) * sine
        heart = (abs(along) <= wide / 2 - RIM * tall) & (abs(over) <= tall / 2 - RIM * tall)
        assert heart.any()
        maps[heart] = score, cx, cy, wide, tall, cosine, sine
    return maps


def found_in(maps, heart=0.5, word=0.5):
    return gather(maps, stride=STRIDE, heart=heart, word=word)


def by_place(boxes):
    return np.array(sorted(boxes.tolist(), key=lambda box: (round(box[1]), round(box[0]))))


@pytest.mark.parametrize("degrees", [*range(-180, 180, 15), 1, 44, 46, 89, 91, 179, -91])
def test_a_word_at_any_angle(degrees):
    expected = word(150.3, 121.7, 90, 26, degrees)
    found = found_in(maps_of([expected]))
    np.testing.assert_allclose(found.boxes, [expected], atol=1e-3)
    np.testing.assert_allclose(found.scores, [0.9], atol=1e-6)
    assert found.boxes.dtype == found.scores.dtype == np.float32


@pytest.mark.parametrize("degrees", [0, 37, 90, 180])
def test_neighbours_stay_two(degrees):
    """Two words with a small space between them, and the next line below."""
    turn = np.array([[np.cos(a := np.deg2rad(degrees)), -np.sin(a)], [np.sin(a), np.cos(a)]])
    words = []
    for along, over, width in ((-45, -14, 70), (17, -14, 46), (-30, 14, 100), (42, 14, 36)):
        x, y = turn @ (along, over) + (160, 120)
        words.append(word(x, y, width, 24, degrees))
    found = found_in(maps_of(words))
    np.testing.assert_allclose(by_place(found.boxes), by_place(np.array(words)), atol=1e-3)


def test_a_short_word_beside_a_long_one():
    words = [word(140, 100, 240, 24), word(270, 100, 16, 24)]
    assert len(found_in(maps_of(words)).scores) == 2


def noisy(expected, random):
    """Maps whose cells are each wrong by some pixels, a tenth of the size and 6 degrees."""
    maps = maps_of([expected])
    hearts = maps[..., 0] > 0
    count = int(hearts.sum())
    angles = np.arctan2(expected[5], expected[4]) + random.normal(0, 0.1, count)
    maps[hearts, 0] = random.uniform(0.6, 1, count)
    maps[hearts, 1:3] += random.normal(0, 4, (count, 2))
    maps[hearts, 3:5] *= random.normal(1, 0.1, (count, 2))
    maps[hearts, 5:] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return maps


@pytest.mark.parametrize("degrees", [0, 30, 90, 180])
def test_cells_that_are_a_little_wrong_are_right_together(degrees):
    expected = word(160, 120, 160, 40, degrees)
    found = found_in(noisy(expected, np.random.default_rng(degrees)))
    assert len(found.scores) == 1
    np.testing.assert_allclose(found.boxes[0, :4], expected[:4], atol=5)
    np.testing.assert_allclose(found.boxes[0, 4:], expected[4:], atol=0.03)


@pytest.mark.parametrize(("width", "height"), [(160, 40), (200, 24), (60, 20)])
def test_noise_makes_words_neither_longer_nor_shorter(width, height):
    """In the mean of many: a word that is cut out too short is read without its first or last letter."""
    random = np.random.default_rng(0)
    sizes = [found_in(noisy(word(160, 120, width, height), random)).boxes[0, 2:4] for _ in range(40)]
    np.testing.assert_allclose(np.mean(sizes, axis=0), [width, height], atol=0.7)


def test_an_edge_is_what_cells_next_to_it_say():
    """Cells see the far end of a long word worse: each half takes the word to end early on the other side."""
    maps = maps_of([word(160, 120, 240, 24)])
    across = (np.arange(maps.shape[1]) + 0.5) * STRIDE
    left, right = across < 160, across > 160
    maps[:, left, 1], maps[:, left, 3] = 145, 210  # from 40 to 250
    maps[:, right, 1], maps[:, right, 3] = 175, 210  # from 70 to 280
    [box] = found_in(maps).boxes
    assert abs(box[0] - 160) < 1
    assert box[2] > 216  # the mean of all is 210; what is true, 240


@pytest.mark.parametrize("degrees", [0, 45, 90, 180, -90])
def test_cells_vote_on_the_direction(degrees):
    maps = maps_of([word(160, 120, 120, 32, degrees)])
    hearts = np.flatnonzero(maps[..., 0])
    flat = maps.reshape(-1, 7)
    minority = hearts[: len(hearts) * 2 // 5]
    flat[minority, 5:] *= -1
    [box] = found_in(maps).boxes
    np.testing.assert_allclose(box[4:], word(0, 0, degrees=degrees)[4:], atol=1e-3)
    np.testing.assert_allclose(box[:4], [160, 120, 120, 32], atol=1e-2)
    flat[minority, 0], flat[hearts[len(minority) :], 0] = 1.0, 0.55  # fewer, but surer
    [box] = found_in(maps).boxes
    np.testing.assert_allclose(box[4:], -word(0, 0, degrees=degrees)[4:], atol=1e-3)


def test_thresholds():
    maps = maps_of([word(80, 60)], score=0.6)
    maps += maps_of([word(220, 160)], score=0.8)
    assert len(found_in(maps, heart=0.5, word=0.5).scores) == 2
    assert found_in(maps, heart=0.5, word=0.7).boxes[:, 0] == pytest.approx([220])
    assert found_in(maps, heart=0.7, word=0.5).boxes[:, 0] == pytest.approx([220])
    assert len(found_in(maps, heart=0.81, word=0.5).scores) == 0
    assert len(found_in(maps, heart=0.5, word=0.81).scores) == 0


def test_a_score_that_is_the_threshold_is_enough():
    maps = maps_of([word(80, 60)], score=0.5)
    assert found_in(maps, heart=0.5, word=0.5).scores.tolist() == [0.5]


def test_the_score_is_that_of_the_surest_cells():
    maps = maps_of([word(160, 120)])
    hearts = np.flatnonzero(maps[..., 0])
    scores = maps.reshape(-1, 7)[:, 0]
    scores[hearts] = 0.5
    scores[hearts[3:8]] = 0.6, 0.7, 0.8, 0.9, 1.0
    assert found_in(maps, word=0.79).scores[0] == pytest.approx(0.8)
    scores[hearts[2:]] = 0
    scores[hearts[:2]] = 0.9, 0.7  # a word of two cells
    assert found_in(maps, word=0.79).scores[0] == pytest.approx(0.8)


def test_the_surest_comes_first():
    maps = maps_of([])
    for x, y, score in ((60, 40, 0.7), (220, 40, 0.9), (60, 160, 0.6), (220, 160, 0.8)):
        maps += maps_of([word(x, y)], score=score)
    found = found_in(maps)
    np.testing.assert_allclose(found.scores, [0.9, 0.8, 0.7, 0.6], atol=1e-6)
    np.testing.assert_allclose(found.boxes[:, 0], [220, 220, 60, 60], atol=1e-3)


def test_one_sure_cell_does_not_make_a_sure_word():
    maps = maps_of([word(60, 40)], score=0.6) + maps_of([word(220, 160)], score=0.9)
    rows, columns = np.nonzero(maps[..., 0] == np.float32(0.6))
    maps[rows[0], columns[0], 0] = 1
    found = found_in(maps)
    np.testing.assert_allclose(found.scores, [0.9, 0.68], atol=1e-6)
    np.testing.assert_allclose(found.boxes[:, 0], [220, 60], atol=1e-3)


def test_nothing():
    for maps in (np.zeros((60, 80, 7), np.float32), np.zeros((0, 0, 7), np.float32), maps_of([])):
        found = found_in(maps)
        assert found.boxes.shape == (0, 6)
        assert found.scores.shape == (0,)


def test_what_is_too_small_to_be_read_is_no_word():
    maps = maps_of([word(82, 62, 40, 24)])
    for sizes, count in (((40, SMALLEST - 0.1), 0), ((SMALLEST - 0.1, 40), 0), ((40, SMALLEST + 0.1), 1)):
        maps[maps[..., 0] > 0, 3:5] = sizes
        assert len(found_in(maps).scores) == count


def test_a_cell_without_a_number_is_left_out():
    """A network that overflows must not take the words of other cells with it."""
    maps = maps_of([word(80, 60)])
    maps[40, 40] = 0.9, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan
    np.testing.assert_allclose(found_in(maps).boxes, [word(80, 60)], atol=1e-3)


def test_a_word_that_a_surer_one_covers_is_no_word():
    """A part of a word that some cells took for a word of its own."""
    maps = maps_of([word(160, 120, 160, 32)])
    part = maps_of([word(242, 120, 70, 32)], score=0.8)  # begins within the other, its middle is outside
    end = (part[..., 0] > 0) & (maps[..., 0] == 0)
    maps[end] = part[end]
    [box] = found_in(maps).boxes
    assert box[0] == pytest.approx(160)


def test_a_thousand_words():
    words = [word(25 + 50 * (i % 32), 12 + 20 * (i // 32), 44, 16) for i in range(1000)]
    found = found_in(maps_of(words, size=(1600, 640)))
    np.testing.assert_allclose(by_place(found.boxes), by_place(np.array(words)), atol=1e-3)


boxes = st.builds(
    word,
    st.floats(-60, 60),
    st.floats(-60, 60),
    st.floats(5, 200),
    st.floats(5, 200),
    st.one_of(st.floats(-180, 180), st.sampled_from([-180, -90, 0, 45, 90, 180])),
)


def polygon(box):
    cx, cy, width, height, cosine, sine = box
    upright = shapely.box(-width / 2, -height / 2, width / 2, height / 2)
    return translate(rotate(upright, np.degrees(np.arctan2(sine, cosine)), origin=(0, 0)), cx, cy)


def share(one, other):
    """What two boxes share, as a part of the smaller one, by another library."""
    one, other = polygon(one), polygon(other)
    return one.intersection(other).area / min(one.area, other.area)


def shaken(some):
    """Boxes whose edges do not lie on each other: there OpenCV is wrong, and no network's are so."""
    return [box + number * np.array([0.13, -0.07, 0.11, 0.17, 0, 0]) for number, box in enumerate(some)]


@settings(deadline=None)
@given(boxes, boxes, st.sampled_from([0, 6000]))
def test_what_boxes_share_as_shapely_says(one, other, far):
    """Far from the origin of a large picture, too."""
    one, other = shaken([one, other])
    one[:2] += far
    other[:2] += far
    boxes = [np.asarray(box, np.float32) for box in (one, other)]
    assert shared_part(*boxes) == pytest.approx(share(one, other), abs=0.02)


@settings(deadline=None)
@given(boxes, st.floats(-0.5, 0.5), st.floats(0.99, 1.01))
def test_much_the_same_box_is_the_same(box, shift, scale):
    one, other = shaken([box, box * [1, 1, scale, 1, 1, 1] + [shift, 0, 0, 0, 0, 0]])
    assert without_doubles(np.array([one, other], np.float32)) == [0]


@pytest.mark.parametrize(
    ("one", "width"),
    [
        (word(-27.5, 20.75, 173, 116, 30), 173.88893488132206),
        (word(-46.5, -40.75, 7, 92, 45), 6.863334726735485),
        (word(-8.5, 8, 62, 128, 45), 61.892119075341796),
    ],
)
def test_a_box_that_is_only_a_little_wider_is_the_same(one, width):
    other = one.copy()
    other[2] = width
    assert without_doubles(np.array([one, other], np.float32)) == [0]


@settings(deadline=None)
@given(st.lists(boxes, max_size=8))
def test_doubles_by_a_slow_twin(some):
    some, kept = shaken(some), []
    for number, box in enumerate(some):
        shares = [share(box, some[other]) for other in kept]
        if any(abs(each - OVERLAP) < 0.03 for each in shares):
            return  # too close to call
        if all(each < OVERLAP for each in shares):
            kept.append(number)
    assert without_doubles(np.array(some, np.float32).reshape(-1, 6)) == kept
