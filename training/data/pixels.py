"""Pixels as networks take them."""

import torch


def normalised(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 [N, H, W, C] → float [N, C, H, W] in −1…1."""
    return pixels.permute(0, 3, 1, 2).float().div_(127.5).sub_(1)
