"""Lines of words: each has its text and a tight box."""

import numpy as np
import pytest

from training.alphabet import PRINTABLE
from training.data.fonts import OWN, Font
from training.data.scene_text import MARGIN, SIZES, Typesetter
from training.data.vocabulary import FEW_WORDS, Vocabulary

DEJAVU = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)
SERIF = Font(str(OWN / "DejaVuSerif.ttf"), PRINTABLE)


@pytest.fixture
def typesetter():
    return Typesetter([DEJAVU, SERIF], Vocabulary(FEW_WORDS))


def test_ink_lies_in_its_words_box_and_nowhere_else(typesetter):
    random = np.random.default_rng(1)
    for _ in range(30):
        layout = typesetter.set_block(random, 30, 4, 3)
        assert layout.letters.shape[0] == len(layout.rows)
        assert len(layout.boxes) == len(layout.texts)
        uncovered = layout.letters.copy()
        for left, top, right, bottom in layout.boxes.astype(int):
            assert layout.letters[top:bottom, left:right].any()
            uncovered[top : bottom + 1, left : right + 1] = 0
        assert not uncovered.any()


def test_boxes_are_as_tight_as_annotators_draw_them(typesetter):
    random = np.random.default_rng(1)
    for size in SIZES:
        layout = typesetter.set_block(random, size, 1, 1)
        rows, columns = (np.flatnonzero(layout.letters.max(axis=axis)) for axis in (1, 0))
        margin = MARGIN * (rows[-1] + 1 - rows[0])
        ink = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
        np.testing.assert_allclose(layout.boxes[0], ink + margin * np.array([-1, -1, 1, 1]), atol=1e-3)


def test_each_word_has_its_own_text():
    typesetter = Typesetter([DEJAVU], Vocabulary(["i", "mmmmmmmmmm"]))
    random = np.random.default_rng(0)
    for _ in range(20):
        layout = typesetter.set_block(random, 22, 3, 4)
        wide, high = layout.boxes[:, 2] - layout.boxes[:, 0], layout.boxes[:, 3] - layout.boxes[:, 1]
        for text, ratio in zip(layout.texts, wide / high, strict=True):
            if set(text.lower()) == {"m"}:
                assert ratio > 3
            if text.lower() == "i":
                assert ratio < 1.2


def test_fonts_of_a_large_collection_do_not_write_everything():
    fonts = [Font(f"many/{number}.ttf", PRINTABLE) for number in range(100)] + [Font("one/0.ttf", PRINTABLE)]
    shares = np.diff(Typesetter(fonts, Vocabulary(FEW_WORDS)).shares, prepend=0)
    assert shares[-1] == pytest.approx(1 / 11)
    assert shares.sum() == pytest.approx(1)


def test_a_font_of_capitals_writes_capitals():
    typesetter = Typesetter([Font(DEJAVU.path, PRINTABLE.upper())], Vocabulary(["leaf"]))
    texts = "".join(typesetter.set_block(np.random.default_rng(0), SIZES[0], 6, 6).texts)
    assert texts == texts.upper()
