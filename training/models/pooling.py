"""From a map of features to one vector."""

import torch
from torch import Tensor, nn


class GeneralizedMean(nn.Module):
    """GeM: (mean over places of x^p)^(1/p) with a learnable p; p = 1 is the average, p → ∞ the maximum."""

    def __init__(self, power: float = 3.0) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.tensor(power))

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C]; features below 0 count as (almost) nothing."""
        return features.clamp(min=1e-6).pow(self.power).mean(dim=(2, 3)).pow(1 / self.power)


class Average(nn.Module):
    """The mean over places."""

    def forward(self, features: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C]."""
        return features.mean(dim=(2, 3))


class ClassToken(nn.Module):
    """The first token of a vision transformer."""

    def forward(self, tokens: Tensor) -> Tensor:
        """[N, T, C] → [N, C]."""
        return tokens[:, 0]


POOLINGS: dict[str, type[nn.Module]] = {"gem": GeneralizedMean, "average": Average, "cls": ClassToken}
