import pytest
import torch

from training.errors import DataError
from training.models.embedder import Embedder, EmbedderShape
from training.models.halves import split
from training.models.whitening import whiten


@pytest.mark.parametrize("stages", [0, 1, 3, 6])
def test_the_two_halves_are_the_whole(stages):
    torch.manual_seed(0)
    model = Embedder(EmbedderShape(dim=16)).eval()
    early, late = split(model, stages)
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(late(early(images)), model(images))


def test_only_the_late_half_learns():
    model = Embedder(EmbedderShape(dim=16))
    early, late = split(model, 3)
    late(early(torch.randn(2, 3, 64, 64))).sum().backward()
    assert model.backbone.conv_stem.weight.grad is None
    assert model.backbone.blocks[2][0].conv_pw.weight.grad is None
    assert model.backbone.blocks[3][0].conv_pw.weight.grad is not None
    assert model.projection.weight.grad is not None


def test_halves_that_cannot_be():
    with pytest.raises(DataError, match="frozen_stages must be 0 to 6"):
        split(Embedder(EmbedderShape()), 7)
    with pytest.raises(DataError, match="only an EfficientNet"):
        split(Embedder(EmbedderShape(backbone="resnet50")), 2)


@pytest.mark.parametrize(("power", "spread"), [(0.0, None), (0.5, 1.0)])
def test_whitening_turns_and_scales(power, spread):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(500, 6, generator=generator) * torch.tensor([5.0, 3, 2, 1, 0.5, 0.1]) + 7
    layer = torch.nn.Linear(6, 4)
    whiten(layer, features, power)
    with torch.no_grad():
        made = layer(features)
    covariance = torch.cov(made.T)
    torch.testing.assert_close(made.mean(dim=0), torch.zeros(4), atol=1e-3, rtol=0)
    assert (covariance - covariance.diag().diag()).abs().max() < 1e-2  # the axes are independent of each other
    expected = torch.linalg.eigvalsh(torch.cov(features.T)).flip(0)[:4] if spread is None else torch.full((4,), spread)
    torch.testing.assert_close(covariance.diag(), expected, rtol=1e-3, atol=1e-3)


def test_whitening_needs_enough_features():
    with pytest.raises(ValueError, match="4 components need more than 4 features"):
        whiten(torch.nn.Linear(6, 4), torch.randn(4, 6))
