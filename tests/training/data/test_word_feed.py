import cv2
import numpy as np
import pytest

from training.alphabet import PRINTABLE
from training.data.canvas import Canvas
from training.data.fonts import OWN, Font
from training.data.rendering import Renderer
from training.data.vocabulary import FEW_WORDS, Vocabulary
from training.data.word_feed import Example, WordFeed
from training.data.words import WordCrop
from training.errors import DataError

CANVAS = Canvas(step=80)


@pytest.fixture
def examples(tmp_path):
    """Three short words, one long one, one far too long."""
    found = []
    for number, (word, width) in enumerate({"leaf": 90, "oak": 80, "bee": 70, "Sunflowers!": 200, "x": 900}.items()):
        file = tmp_path / f"{number}.png"
        cv2.imwrite(str(file), np.full((48, width, 3), 40 * number, dtype=np.uint8))
        found.append(Example(WordCrop(file, word, "made", "train")))
    return found


@pytest.fixture
def renderer():
    return Renderer([Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)], Vocabulary(FEW_WORDS))


def test_a_batch_has_one_width_and_the_share_asked_for(examples, renderer):
    feed = WordFeed(examples, CANVAS, renderer, batch=8, synthetic=0.25, seed=3)
    assert len(feed) == 4
    widths = set()
    for step in range(20):
        batch = feed.draw(step)
        widths.add(batch.pixels.shape[2])
        assert batch.pixels.shape[:2] == (8, 48)
        real = {160: {"leaf", "oak", "bee"}, 240: {"Sunflowers!"}}[batch.pixels.shape[2]]
        assert set(batch.words[2:]) <= real
        assert len(batch.words) == 8
    assert widths == {160, 240}


def test_seed_and_step_say_what_is_drawn(examples, renderer):
    def draw(seed, step):
        return WordFeed(examples, CANVAS, renderer, batch=4, synthetic=0.5, seed=seed).draw(step)

    first, again = draw(1, 7), draw(1, 7)
    assert first.words == again.words
    np.testing.assert_array_equal(first.pixels, again.pixels)
    assert draw(1, 8).words != first.words or draw(2, 7).words != first.words


def test_a_turned_example_is_loaded_upright(tmp_path):
    cv2.imwrite(str(tmp_path / "tall.png"), np.zeros((60, 20, 3), dtype=np.uint8))
    assert Example(WordCrop(tmp_path / "tall.png", "a", "made", "train"), turn=1).load().shape == (20, 60, 3)


def test_nothing_to_train_on(examples):
    with pytest.raises(DataError, match="no crop to train on"):
        WordFeed([], CANVAS, None, batch=4, synthetic=0)
    with pytest.raises(DataError, match="needs a renderer"):
        WordFeed(examples, CANVAS, None, batch=4, synthetic=0.5)
