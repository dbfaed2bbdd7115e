"""Outlines that can be seen, where the words are."""

import numpy as np
import pytest
from PIL import Image

from serving.errors import ImageBroken
from serving.images import ImageLimits
from serving.overlay import EDGE, INK, draw_overlay
from serving.pipelines.read import PageText, Word
from serving.pipelines.upload import Upload

LIMITS = ImageLimits(max_bytes=10_000_000, max_pixels=10_000_000)
QUAD = np.array([[60.0, 40.0], [140.0, 60.0], [134.0, 84.0], [54.0, 64.0]])


@pytest.fixture
def drawn(encoded, tmp_path):
    """`drawn(picture, polygons, …)`: the overlay's pixels."""

    def draw(picture, polygons, **options):
        upload = Upload("a.png", encoded(picture, "PNG", **options))
        words = [Word("a", 1, 1, polygon) for polygon in polygons]
        draw_overlay(upload, LIMITS, PageText(*picture.size, words, []), tmp_path / "seen.png")
        with Image.open(tmp_path / "seen.png") as seen:
            assert (seen.format, seen.mode) == ("PNG", "RGB")
            return np.asarray(seen)

    return draw


@pytest.mark.parametrize("ground", ["white", "black", "yellow", (255, 210, 0), (20, 20, 20)])
def test_an_outline_is_seen_on_anything(drawn, ground):
    pixels = drawn(Image.new("RGB", (200, 120), ground), [QUAD])
    for start, end in zip(QUAD, np.roll(QUAD, -1, axis=0), strict=True):
        x, y = np.round((start + end) / 2).astype(int)
        around = {tuple(pixel) for pixel in pixels[y - 3 : y + 4, x - 3 : x + 4].reshape(-1, 3).tolist()}
        assert {INK, EDGE} <= around
    assert tuple(pixels[5, 5]) == tuple(pixels[62, 97])  # neither outside nor within


def test_a_dot_shows_where_a_word_begins(drawn):
    pixels = drawn(Image.new("RGB", (200, 120), "white"), [QUAD])
    ink = [(pixels[y - 2 : y + 3, x - 2 : x + 3] != 255).any(axis=2).sum() for x, y in QUAD.astype(int)]
    assert ink[0] > max(ink[1:])


def test_without_words_it_is_the_picture(drawn, photo):
    np.testing.assert_array_equal(drawn(photo(), []), np.asarray(photo()))


def test_the_picture_stands_upright(drawn):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.new("RGB", (120, 200), "white")
    assert drawn(picture, [QUAD], exif=exif).shape == (120, 200, 3)


def test_words_that_reach_over_the_edge(drawn):
    assert drawn(Image.new("RGB", (100, 60), "white"), [QUAD, QUAD - 50, QUAD + 500]).shape == (60, 100, 3)


def test_grey_and_transparent_pictures_get_coloured_lines(drawn):
    for mode in ("L", "1", "P", "RGBA", "LA"):
        pixels = drawn(Image.new(mode, (200, 120)), [QUAD])
        assert (pixels == INK).all(axis=2).any()


def test_lines_are_thicker_in_a_large_picture(drawn):
    few, many = (
        (drawn(Image.new("RGB", size, "white"), [QUAD]) == INK).all(axis=2).sum() for size in ((200, 120), (4000, 120))
    )
    assert many > 3 * few


def test_a_broken_picture_is_not_drawn_on(tmp_path, encoded, photo):
    upload = Upload("a.jpg", encoded(photo())[:-500])
    with pytest.raises(ImageBroken):
        draw_overlay(upload, LIMITS, PageText(9, 9, [], []), tmp_path / "seen.png")
    assert not (tmp_path / "seen.png").exists()
