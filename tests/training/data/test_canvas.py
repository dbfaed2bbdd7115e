import numpy as np
import pytest

from serving.manifest import Canvas as ServedCanvas
from serving.pipelines.recognize import place as served_place
from training.data.canvas import GREY, TALL, Canvas, place, turns
from training.errors import DataError

GROWING = Canvas(step=80)


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(48, 100, 160), (48, 160, 160), (48, 161, 240), (24, 160, 320), (10, 1000, 640), (100, 3, 160), (1, 4000, 640)],
)
def test_a_canvas_grows_in_steps(height, width, expected):
    assert GROWING.width_of(height, width) == expected


def test_a_short_crop_is_filled_up_with_grey():
    placed = place(np.zeros((24, 40, 3), dtype=np.uint8), GROWING)
    assert placed.shape == (48, 160, 3)
    assert (placed[:, :80] == 0).all()
    assert (placed[:, 80:] == GREY).all()


def test_without_steps_it_is_stretched():
    placed = place(np.full((24, 40, 3), (255, 0, 0), dtype=np.uint8), Canvas(32, 100, channels=1))
    assert placed.shape == (32, 100, 1)
    assert (placed == 76).all()  # red as grey


@pytest.mark.parametrize("size", [(48, 100), (13, 57), (200, 900), (1, 4000), (4000, 1), (7, 1), (31, 480)])
def test_the_service_prepares_crops_as_training_does(size):
    crop = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    served = ServedCanvas(height=48, width=160, step=80, longest=640, tall=TALL, surer_by=0.1)
    for turn in turns(crop):
        turned = np.rot90(crop, turn)
        np.testing.assert_array_equal(served_place(turned, served), place(turned, GROWING))


def test_only_tall_crops_may_lie_on_their_side():
    assert turns(np.zeros((30, 20, 3), dtype=np.uint8)) == (0,)
    assert turns(np.zeros((31, 20, 3), dtype=np.uint8)) == (0, 1, 3)


def test_a_canvas_without_a_size():
    with pytest.raises(DataError, match="sizes above 0"):
        Canvas(height=0)
