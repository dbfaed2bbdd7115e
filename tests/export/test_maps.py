import numpy as np
import torch

from export.maps import Maps
from training.finding import maps_of
from training.models.dense_detector import DenseDetector, DetectorShape


def test_pixels_go_in_and_boxes_come_out():
    torch.manual_seed(0)
    model = DenseDetector(DetectorShape(hidden=8)).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (2, 32, 64, 3), dtype=np.uint8)
    with torch.inference_mode():
        maps = Maps(model).eval()(torch.from_numpy(pixels)).numpy()
    assert maps.shape == (2, 8, 16, 7)
    for own, picture in zip(maps, pixels, strict=True):
        np.testing.assert_allclose(own, maps_of(model, picture), rtol=1e-3, atol=1e-3)
