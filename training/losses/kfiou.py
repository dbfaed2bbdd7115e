"""KFIoU: a hand-made stand-in for the IoU of rotated boxes (Yang et al., 2022), the baseline of LS-IoU."""

import torch
from torch import Tensor
from torch.nn import functional as F


def kfiou(prediction: Tensor, truth: Tensor) -> Tensor:
    """How little boxes overlap, for each pair: [P, 6] (cx, cy, w, h, cos, sin) each → [P].

    A box becomes a Gaussian with Σ = R diag(w²/4, h²/4) Rᵀ. Where both are laid over each other, their product has
    Σ₁(Σ₁ + Σ₂)⁻¹Σ₂, and with areas V = 4 √det Σ the ratio V / (V₁ + V₂ − V) is at most ⅓, for equal shapes. So

        loss = smooth-L1 of the centres' distance in units of the truth's size + 1 − 3 V / (V₁ + V₂ − V)
    """
    # det(Σ₁ + Σ₂) written out: nothing large is subtracted from something large, as for long words in `det` and `inv`.
    (a, b), (c, d) = ((boxes[:, 2:4] / 2).square().unbind(1) for boxes in (prediction, truth))
    (one_x, one_y), (two_x, two_y) = (F.normalize(boxes[:, 4:], dim=1).unbind(1) for boxes in (prediction, truth))
    straight, aslant = (one_x * two_x + one_y * two_y).square(), (one_x * two_y - one_y * two_x).square()
    together = a * b + c * d + (a * d + b * c) * straight + (a * c + b * d) * aslant
    first, second = prediction[:, 2] * prediction[:, 3], truth[:, 2] * truth[:, 3]  # 4 √det Σ is the box's area
    both = first * second / (4 * together.clamp(min=1e-12).sqrt())
    ratio = both / (first + second - both)
    size = (truth[:, 2] * truth[:, 3]).clamp(min=1e-12).sqrt()[:, None]
    offset = (prediction[:, :2] - truth[:, :2]) / size
    centres = F.smooth_l1_loss(offset, torch.zeros_like(offset), reduction="none", beta=1 / 9).sum(dim=1)
    return centres + 1 - 3 * ratio
