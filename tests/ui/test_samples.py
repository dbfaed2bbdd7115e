import numpy as np

from ui.samples import SAMPLES, SIZE, draw_leaf


def test_the_same_leaf_every_time():
    for outline, colour, turn, seed in SAMPLES.values():
        first = draw_leaf(outline, colour, turn, seed)
        assert first.size == (SIZE, SIZE)
        assert np.array_equal(first, draw_leaf(outline, colour, turn, seed))


def test_no_two_samples_are_the_same():
    drawn = [np.asarray(draw_leaf(*sample)).tobytes() for sample in SAMPLES.values()]
    assert len(set(drawn)) == len(SAMPLES)
