from collections import Counter
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
import torch

from training.data.scene_feed import SceneFeed
from training.data.scenes import Scene
from training.errors import DataError

QUAD = np.array([(20, 20), (60, 20), (60, 36), (20, 36)], dtype=float)


@dataclass
class Drawing:
    pixels: np.ndarray
    quads: np.ndarray
    legible: np.ndarray


class Renderer:
    """Draws one colour, and two words of which one cannot be read."""

    def draw(self, random, height, width):
        pixels = np.full((height, width, 3), random.integers(1, 255), dtype=np.uint8)
        return Drawing(pixels, np.stack([QUAD, QUAD + 20]).astype(np.float32), np.array([True, False]))


@pytest.fixture
def scenes(tmp_path):
    """Photographs with one word, five words, and words that nobody cares for; and one to validate, which is missing."""
    found = []
    for number, texts in enumerate((["a"], ["a", "b", "c", "d", "e"], ["###"] * 3)):
        file = tmp_path / f"{number}.png"
        picture = np.random.default_rng(number).integers(0, 255, (80, 120, 3), dtype=np.uint8)
        cv2.imwrite(str(file), picture)
        quads = np.stack([QUAD + np.array([5, 6]) * place for place in range(len(texts))])
        found.append(Scene(file, quads, tuple(texts), "train"))
    return [*found, Scene(tmp_path / "none.png", QUAD[None], ("a",), "val")]


def feed_of(scenes, renderer=None, **changes):
    return SceneFeed(scenes, renderer, **{"batch": 3, "size": 64, "synthetic": 0.0, "seed": 0, **changes})


def same(one, other):
    return np.array_equal(one.pixels, other.pixels) and all(
        torch.equal(first.boxes, second.boxes) and torch.equal(first.ignored, second.ignored)
        for first, second in zip(one.truths, other.truths, strict=True)
    )


def test_a_batch_is_the_same_whenever_it_is_asked_for(scenes):
    feed, again = feed_of(scenes, Renderer(), synthetic=0.5), feed_of(scenes, Renderer(), synthetic=0.5)
    for step in (0, 7):
        assert same(feed.draw(step), feed.draw(step))
    later = again.draw(7)  # and in any order
    assert same(feed.draw(0), again.draw(0))
    assert same(feed.draw(7), later)
    assert not same(feed.draw(0), feed.draw(1))
    assert not same(feed.draw(0), feed_of(scenes, Renderer(), synthetic=0.5, seed=1).draw(0))


def test_what_a_batch_is(scenes):
    batch = feed_of(scenes).draw(0)
    assert batch.pixels.shape == (3, 64, 64, 3)
    assert batch.pixels.dtype == np.uint8
    assert len(batch.truths) == 3
    for truth in batch.truths:
        assert truth.boxes.shape == (len(truth.ignored), 6)


def test_photographs_with_many_words_are_shown_more_often(scenes):
    feed = feed_of(scenes)
    np.testing.assert_allclose(feed.shares, [2 / 9, 6 / 9, 1 / 9])


def test_photographs_are_read_once(scenes, monkeypatch):
    loaded = Counter()
    load = Scene.load

    def counted(scene):
        loaded[scene.file.name] += 1
        return load(scene)

    monkeypatch.setattr(Scene, "load", counted)
    feed = feed_of(scenes)
    for step in range(8):
        feed.draw(step)
    assert set(loaded) == {"0.png", "1.png", "2.png"}  # and never one to validate with
    assert set(loaded.values()) == {1}


@pytest.mark.parametrize(("synthetic", "low", "high"), [(0.0, 0, 0), (0.5, 4, 26), (1.0, 30, 30)])
def test_so_many_scenes_are_drawn(scenes, synthetic, low, high):
    feed = feed_of(scenes, Renderer(), synthetic=synthetic)
    batches = [feed.draw(step) for step in range(10)]
    plain = sum(bool((pixels == pixels[0, 0, 0]).all()) for batch in batches for pixels in batch.pixels)
    assert low <= plain <= high


def test_drawn_words_that_cannot_be_read_are_not_asked_for(scenes):
    [truth, *_] = feed_of(scenes, Renderer(), synthetic=1.0).draw(0).truths
    assert truth.ignored.tolist() == [False, True]
    torch.testing.assert_close(truth.boxes[0], torch.tensor([40.0, 28, 40, 16, 1, 0]))


def test_what_cannot_be_fed_is_named(scenes):
    with pytest.raises(DataError, match="no photograph of the set train"):
        feed_of(scenes[-1:])
    with pytest.raises(DataError, match="nothing can draw them"):
        feed_of(scenes, synthetic=0.1)
