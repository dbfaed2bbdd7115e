"""FEDS' filter: learn from the surrogate only where it can be believed."""

from typing import Literal

import torch
from torch import Tensor

from training.losses.arguments import check_positive

Target = Literal["metric", "zero"]


def filtered(surrogate: Tensor, metric: Tensor, threshold: float = 0.25, target: Target = "metric") -> Tensor:
    """Mean of a ramp that is flat where the surrogate ê misses the metric e by more than λ = threshold.

    target="metric": mean min(|ê − e|, λ), the equation as it stands: pulls ê towards e inside the band.
    target="zero":   mean of ê inside the band: makes the metric itself smaller; outside, ê counts without gradient.

    surrogate [N] with gradient, metric [N] without.
    """
    check_positive("threshold", threshold)
    if surrogate.shape != metric.shape or surrogate.numel() == 0:
        raise ValueError(
            f"surrogate {list(surrogate.shape)} and metric {list(metric.shape)} must be equal and not empty"
        )
    if not (torch.isfinite(surrogate.detach()).all() and torch.isfinite(metric).all()):
        raise ValueError("surrogate or metric hold NaN or infinity")
    error = (surrogate - metric.detach()).abs()
    if target == "metric":
        return error.clamp(max=threshold).mean()
    if target == "zero":
        return torch.where(error.detach() <= threshold, surrogate, surrogate.detach()).mean()
    raise ValueError(f"target must be metric or zero, not {target!r}")
