"""What every exported graph has in common: raw pixels go in."""

from typing import Any

import torch
from torch import Tensor, nn


class FromPixels(nn.Module):
    """uint8 pixels [N, H, W, 3] → the network's own input, (pixel − mean) / std as [N, 3, H, W]."""

    def __init__(self, network: nn.Module, mean: float = 127.5, std: float = 127.5) -> None:
        super().__init__()
        self.network = network
        self.mean = mean
        self.std = std

    def forward(self, images: Tensor) -> Any:
        """Normalise, then run the network; what it answers is the answer."""
        channels_first = images.permute(0, 3, 1, 2).to(torch.float32)
        return self.network((channels_first - self.mean) / self.std)
