"""Pages and signs in the order in which people read them, and words in any disorder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from serving.pipelines.layout import Line, arrange, polygon_of


def word_at(x, y, width=60, height=20, degrees=0.0):
    """Corners [4, 2] of a word from its top left, turned about that."""
    angle = np.deg2rad(degrees)
    along, down = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) * [[width], [height]]
    return np.stack([0 * along, along, along + down, down]) + np.array([x, y])


def read(quads, texts, hints=None):
    return [" ".join(texts[word] for word in line.words) for line in arrange(quads, hints)]


def shaken(quads, seed, letters=0.0, scale=1.0):
    """As a detector may see them: ±3° off, up to ±8° if short; ±10 % of the height in place and size.

    Single letters are off by up to `letters` degrees more.
    """
    chance = np.random.default_rng(seed)
    along, down = quads[:, 1] - quads[:, 0], quads[:, 3] - quads[:, 0]
    width, height = np.hypot(*along.T), np.hypot(*down.T)
    off = np.clip(8 * height / width, 3, 8) * scale + np.where(width < 1.1 * height, letters, 0)
    angle = np.arctan2(along[:, 1], along[:, 0]) + np.deg2rad(off * chance.uniform(-1, 1, len(quads)))
    shake = 0.1 * scale * chance.uniform(-1, 1, (4, len(quads))) * height
    centers = quads.mean(axis=1) + shake[:2].T
    across = np.stack([np.cos(angle), np.sin(angle)], axis=1) * ((width + shake[2]) / 2)[:, None]
    below = np.stack([-np.sin(angle), np.cos(angle)], axis=1) * ((height + shake[3]) / 2)[:, None]
    return np.stack(
        [centers - across - below, centers + across - below, centers + across + below, centers - across + below], 1
    )


def seen_from_the_side(quads, x, y):
    """In perspective: what is at the far edge is smaller by about 2x and 2y of its size than what is near."""
    points = quads - quads.mean(axis=(0, 1))
    return points / (1 + points @ [x, y] / np.abs(points).max())[..., None]


def test_a_page(page):
    assert read(page.quads, page.texts) == page.lines


def test_a_page_with_its_texts(page):
    assert read(page.quads, page.texts, page.texts) == page.lines


@pytest.mark.parametrize("degrees", [15, 30, 45, 90, 180, 270, 333])
def test_a_page_that_is_turned(page, turn, degrees):
    assert read(turn(page.quads, degrees), page.texts) == page.lines


@pytest.mark.parametrize(("seed", "degrees"), [*enumerate([0, 0, 15, 45, 90, 180, 270])])
def test_a_page_in_disorder_and_inexact(page, turn, seed, degrees):
    order = np.random.default_rng(seed).permutation(len(page.texts))
    quads = turn(shaken(page.quads, seed), degrees)[order]
    assert read(quads, [page.texts[word] for word in order]) == page.lines


@pytest.mark.parametrize(("x", "y"), [(0.06, 0.0), (0.0, -0.06), (-0.05, 0.05)])
def test_a_page_seen_from_the_side(page, x, y):
    assert read(shaken(seen_from_the_side(page.quads, x, y), 0, scale=0.3), page.texts) == page.lines


@pytest.mark.parametrize("name", ["letter", "table of contents", "calendar", "nutrition label", "list with bullets"])
def test_single_letters_lie_in_any_way(page_named, name):
    page = page_named(name)
    assert read(shaken(page.quads, 1, letters=30), page.texts) == page.lines
    thin = [word in ("1", "l", "I", "a", "7") for word in page.texts]
    lying = np.where(np.array(thin)[:, None, None], np.roll(page.quads, 1, axis=1), page.quads)
    assert read(lying, page.texts) == page.lines


def test_a_word_that_was_taken_to_stand_on_its_head(page_named):
    page = page_named("letter")
    quads = page.quads.copy()
    quads[40] = np.roll(quads[40], 2, axis=0)
    assert read(quads, page.texts) == page.lines


def test_texts_tell_labels_from_prose():
    rows = ["first and last name:", "date and place of birth:", "name of the school:"]
    answers = ["Lucía Castellanos Rivera", "on 24 August in Norwich", "Grammar School of Wells"]
    texts = [*rows, *answers]
    quads = np.stack([word_at((place > 2) * 400, place % 3 * 30, width=240) for place in range(6)])
    assert read(quads, texts) == texts
    assert read(quads, texts, texts) == [f"{label} {answer}" for label, answer in zip(rows, answers, strict=True)]


def test_texts_tell_long_figures_from_prose():
    texts = ["Payments that were made", "Payments still to come", "1.234.567.890,00", "2.234.567.890,00"]
    quads = np.stack([word_at((place > 1) * 400, place % 2 * 30, width=240) for place in range(4)])
    assert read(quads, texts) == texts
    assert read(quads, texts, texts) == [f"{texts[0]} {texts[2]}", f"{texts[1]} {texts[3]}"]


def blocks(page):
    """The first words of each block, and how many lines it has."""
    found = {}
    for line in arrange(page.quads):
        found.setdefault(line.block, []).append(line)
    return [(page.texts[lines[0].words[0]], len(lines)) for lines in found.values()]


def test_what_belongs_together_is_a_block(page_named):
    assert blocks(page_named("grid of cards")) == [("Marigold", 3), ("Foxglove", 3), ("Snowdrop", 3), ("Sunflower", 3)]
    assert blocks(page_named("poem")) == [("The", 1), ("He", 4), ("The", 4)]
    assert blocks(page_named("timetable")) == [("Bus", 1), ("Stop", 6)]
    assert blocks(page_named("road sign with distances")) == [("Hamburg", 4)]
    assert [first for first, _ in blocks(page_named("two columns with a headline"))] == ["Rain", "After", "The"]
    assert blocks(page_named("two posters at different angles")) == [("Lost:", 3), ("Flea", 3)]


def test_no_words():
    assert arrange(np.empty((0, 4, 2))) == []


def test_one_word():
    assert arrange(word_at(5, 5)[None]) == [Line((0,), 0)]


def test_two_thousand_words():
    """Four columns of a hundred lines, inexact and turned."""
    places = [(column * 360 + word * 65, row * 26) for column in range(4) for row in range(100) for word in range(5)]
    quads = shaken(np.stack([word_at(*place) for place in places]), 0)
    lines = arrange(quads)
    assert [line.words for line in lines] == [tuple(range(start, start + 5)) for start in range(0, 2000, 5)]
    assert [line.block for line in lines] == [row // 100 for row in range(400)]


def test_words_whose_boxes_overlap():
    quads = np.stack([word_at(word * 55, row * 18) for row in range(3) for word in range(4)])
    assert [line.words for line in arrange(quads)] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]


some_places = st.floats(-2000, 2000, width=32) | st.sampled_from([0.0, 10.0, 20.0, 100.0])
any_quads = st.integers(1, 25).flatmap(lambda count: arrays(np.float64, (count, 4, 2), elements=some_places))


@st.composite
def words_at_any_angle(draw):
    """Rectangles of word size near each other, some of them twice, some without extent."""
    numbers = st.tuples(st.floats(0, 300), st.floats(0, 300), st.floats(0, 80), st.floats(0, 30), st.floats(0, 360))
    quads = []
    for x, y, width, height, degrees in draw(st.lists(numbers, min_size=1, max_size=40)):
        quads.append(word_at(x, y, width, height, draw(st.sampled_from([0, 90, 180, degrees]))))
    return np.stack(quads + quads[: draw(st.integers(0, 3))])


@settings(deadline=None)
@given(any_quads | words_at_any_angle())
def test_every_word_is_in_one_line(quads):
    lines = arrange(quads)
    assert sorted(word for line in lines for word in line.words) == list(range(len(quads)))
    numbers = [line.block for line in lines]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(max(numbers) + 1))


@pytest.mark.parametrize("degrees", [0, 20, 90, 200])
def test_the_polygon_of_a_line_is_the_rectangle_around_it(turn, degrees):
    words = np.stack([word_at(0, 0), word_at(70, 4), word_at(140, -3, width=120)])
    around = np.array([[0.0, -3.0], [260.0, -3.0], [260.0, 24.0], [0.0, 24.0]])
    assert polygon_of(turn(words[:1], degrees)) == pytest.approx(turn(words[0], degrees), abs=1e-9)
    # Its direction is that of the words' centers, a little less than a degree off.
    assert polygon_of(turn(words, degrees)) == pytest.approx(turn(around, degrees), abs=3)


@settings(deadline=None)
@given(words_at_any_angle())
def test_the_polygon_of_a_line_holds_its_words(quads):
    corners = polygon_of(quads)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        (x, y), points = end - start, quads.reshape(-1, 2) - start
        assert (x * points[:, 1] - y * points[:, 0]).min() >= -1e-6 * max(1.0, np.hypot(x, y))


def test_the_polygon_of_a_line_is_level_though_its_words_are_not():
    words = np.stack([word_at(70 * place, 0) for place in range(8)])
    polygon = polygon_of(shaken(words, 3))
    assert abs(polygon[1, 1] - polygon[0, 1]) < 5  # of 550
