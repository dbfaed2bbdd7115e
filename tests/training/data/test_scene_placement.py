"""Where blocks lie: beside each other, and clockwise however they are turned."""

import cv2
import numpy as np

from training.data.scene_placement import Free, seen_from_somewhere


def test_blocks_take_free_room():
    random = np.random.default_rng(0)
    free = Free(200, 200)
    square = np.array([[0, 0], [120, 0], [120, 120], [0, 120]], dtype=np.float64)
    first = free.take(square, random)
    assert first is not None
    assert free.take(2 * square, random) is None  # nowhere beside it
    huge = Free(50, 80).take(100 * square, random)
    assert huge is not None
    assert np.ptp(huge, axis=0).max() <= 50


def test_sheets_are_seen_clockwise_from_anywhere():
    random = np.random.default_rng(0)
    corners = np.stack([seen_from_somewhere(40, 200, 0.8, random) for _ in range(500)])
    areas = [cv2.contourArea(sheet.astype(np.float32), oriented=True) for sheet in corners]
    assert min(areas) > 0  # clockwise, with y pointing down
    along = corners[:, 1] - corners[:, 0]
    angles = np.abs(np.rad2deg(np.arctan2(along[:, 1], along[:, 0])))
    assert 3 < np.median(angles) < 12
    assert angles.max() > 90
