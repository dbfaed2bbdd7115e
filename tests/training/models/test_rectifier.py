from pathlib import Path

import numpy as np
import torch

from training.models.rectifier import GentleRectifier, Rectifier, edge_points, first_points, spline_matrices

GOLDEN = np.load(Path(__file__).parents[2] / "golden/tps.npz")


def test_the_spline_is_the_golden_one():
    spline, pixels = spline_matrices(32, 100)
    chosen = pixels[GOLDEN["idx"]]
    np.testing.assert_allclose(edge_points(), GOLDEN["C"], atol=1e-12)
    np.testing.assert_allclose(spline, GOLDEN["inv_delta_C"], atol=1e-11)
    np.testing.assert_allclose(chosen[:, 1:3], GOLDEN["grid_xy"], atol=1e-12)
    points = np.pad(GOLDEN["C_prime"], ((0, 0), (0, 3), (0, 0)))
    # The golden numbers take log(r + 1e-6) in place of log(r).
    np.testing.assert_allclose(chosen @ (spline @ points), GOLDEN["P_prime_f64"], atol=1e-6)


def test_a_new_network_places_its_points_as_the_golden_one():
    np.testing.assert_allclose(first_points(), GOLDEN["loc_init_bias"], atol=1e-6)
    found = Rectifier(1, 32, 100).eval().points(torch.randn(2, 1, 32, 100))
    np.testing.assert_allclose(found.detach().numpy()[1], GOLDEN["loc_init_bias"], atol=1e-6)


def test_points_on_the_edges_change_nothing():
    images = torch.rand(2, 3, 48, 160)
    torch.testing.assert_close(GentleRectifier(3, 48, 160).eval()(images), images, atol=1e-3, rtol=0)


def test_points_move_the_picture():
    """All points half a picture to the right: what was in the middle comes to the left edge."""
    rectifier = Rectifier(1, 8, 40)
    places = rectifier.places(torch.from_numpy(edge_points() + np.array([1.0, 0.0])).float()[None])
    torch.testing.assert_close(
        places[0, :, 0], torch.from_numpy(spline_matrices(8, 40)[1][:, 1]).float() + 1, atol=1e-4, rtol=0
    )
