"""How a surrogate of a metric is learned (thesis, chapter 3)."""

from collections.abc import Callable

import torch
from torch import Tensor

EPSILON = 1e-12  # under the roots: the slope of |x| at 0 is not a number


def surrogate_distance(embed: Callable[[Tensor], Tensor], prediction: Tensor, truth: Tensor) -> Tensor:
    """ê(z, y) = |h(z) − h(y)|₂ for each of N pairs: [N]."""
    difference = (embed(prediction) - embed(truth)).flatten(1)
    return (difference.square().sum(dim=1) + EPSILON).sqrt()


def surrogate_loss(
    embed: Callable[[Tensor], Tensor],
    prediction: Tensor,
    truth: Tensor,
    metric: Tensor,
    gradient_weight: float = 0.1,
) -> Tensor:
    """Mean over pairs of (ê − e)² + w (|∂ê/∂z|₂ − 1)², to be minimised over the embedding network h = embed.

    ê = |h(z) − h(y)|₂ should equal the metric e, and change at an even pace with the prediction z. The second
    term needs a second derivative of `embed`; gradient_weight = 0 leaves it out.

    prediction, truth [N, …]; metric [N].
    """
    if prediction.shape != truth.shape or prediction.numel() == 0:
        raise ValueError(f"prediction {list(prediction.shape)} and truth {list(truth.shape)} must be equal, not empty")
    if metric.shape != prediction.shape[:1]:
        raise ValueError(f"metric has shape {list(metric.shape)}; prediction wants [{len(prediction)}]")
    if gradient_weight < 0:
        raise ValueError(f"gradient_weight must be at least 0, not {gradient_weight}")
    for name, values in (("prediction", prediction), ("truth", truth), ("metric", metric)):
        if not torch.isfinite(values.detach()).all():
            raise ValueError(f"{name} holds NaN or infinity")
    inputs = prediction.detach().requires_grad_(True)
    distance = surrogate_distance(embed, inputs, truth)  # [N]
    loss = (distance - metric).square()
    if gradient_weight:
        (slopes,) = torch.autograd.grad(distance.sum(), inputs, create_graph=True)
        steepness = (slopes.flatten(1).square().sum(dim=1) + EPSILON).sqrt()
        loss = loss + gradient_weight * (steepness - 1).square()
    return loss.mean()
