"""Painted blocks: what they cover, and inks that can be told from their ground."""

import numpy as np
import pytest

from training.alphabet import PRINTABLE
from training.data.fonts import OWN, Font
from training.data.scene_signs import ink_colour, paint_block
from training.data.scene_text import Typesetter
from training.data.vocabulary import FEW_WORDS, Vocabulary

DEJAVU = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)
SERIF = Font(str(OWN / "DejaVuSerif.ttf"), PRINTABLE)


@pytest.fixture
def typesetter():
    return Typesetter([DEJAVU, SERIF], Vocabulary(FEW_WORDS))


@pytest.mark.parametrize("panel", [True, False])
def test_blocks_are_painted(typesetter, panel):
    random = np.random.default_rng(0)
    layout = typesetter.set_block(random, 22, 2, 2)
    for _ in range(30):
        sheet = paint_block(layout, panel, np.full(3, 200.0), random)
        assert np.all(sheet[:, :, :3].max(axis=2) <= sheet[:, :, 3].astype(int) + 2)  # colours times cover
        assert sheet[layout.letters == 255][:, 3].min() >= 250


def test_most_inks_can_be_told_from_their_ground():
    random = np.random.default_rng(0)
    differences = [abs(ink_colour(np.full(3, 128.0), random).mean() - 128) for _ in range(300)]
    assert 0.01 < np.mean(np.array(differences) < 40) < 0.15
