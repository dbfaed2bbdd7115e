import numpy as np
import pytest
import torch
from torch import nn

from export.graph import write_graph
from export.parity import ParityError, check_parity
from export.wrapper import FromPixels

FRAME = (16, 12, 3)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 5, 3)

    def forward(self, images):
        return self.layer(images).mean(dim=(2, 3))


@pytest.fixture
def exported(tmp_path):
    torch.manual_seed(0)
    module = FromPixels(Small()).eval()
    file = tmp_path / "model.onnx"
    write_graph(module, FRAME, "images", "out", file)
    return module, file


def test_a_true_export_passes(exported):
    module, file = exported
    assert check_parity(module, file, FRAME, max_batch=9, tolerance=1e-5) < 1e-5


def test_a_changed_weight_fails_and_names_the_difference(exported):
    module, file = exported
    with torch.no_grad():
        module.network.layer.bias += 0.25
    with pytest.raises(ParityError, match=r"model\.onnx at batch 1: worst difference to torch 0\.25, at most 1e-05"):
        check_parity(module, file, FRAME, max_batch=9, tolerance=1e-5)


def test_only_the_largest_batch_differs(exported):
    _, file = exported

    class WrongWhenLarge(nn.Module):
        def forward(self, images):
            result = exported[0](images)
            return result + 1 if len(images) > 7 else result

    with pytest.raises(ParityError, match="at batch 33"):
        check_parity(WrongWhenLarge(), file, FRAME, max_batch=33, tolerance=1e-5)


def test_nan_fails(exported):
    _, file = exported

    class Nan(nn.Module):
        def forward(self, images):
            return exported[0](images) * np.nan

    with pytest.raises(ParityError, match="nan"):
        check_parity(Nan(), file, FRAME, max_batch=2, tolerance=1e9)


def test_the_wrong_shape_fails(exported):
    _, file = exported

    class Wide(nn.Module):
        def forward(self, images):
            return torch.zeros(len(images), 6)

    with pytest.raises(ParityError, match=r"shape \(1, 5\), torch has \(1, 6\)"):
        check_parity(Wide(), file, FRAME, max_batch=2, tolerance=1)


def test_pixels_are_normalised_in_the_graph():
    seen = FromPixels(nn.Identity())(torch.tensor([[[[0, 127, 255]]]], dtype=torch.uint8))
    assert seen.shape == (1, 3, 1, 1)
    torch.testing.assert_close(seen.flatten(), torch.tensor([-1, -0.5 / 127.5, 1]))
