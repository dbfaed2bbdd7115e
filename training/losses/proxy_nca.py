"""Proxy-NCA, a baseline: one learned point a class in place of pairs."""

from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from training.losses.arguments import at_least_single, check_batch, check_positive, check_rows


def proxy_nca(embeddings: Tensor, labels: Tensor, proxies: Tensor, scale: float = 1.0) -> Tensor:
    """Mean over rows of −log soft-max over the proxies of −s |z_i − p_k|², at the row's own class.

    embeddings [N, d] unit rows, labels [N] in 0 … K − 1, proxies [K, d] raw rows, normalised inside. The own proxy
    stands in the denominator too, so the loss is above 0.
    """
    check_positive("scale", scale)
    check_batch(embeddings, labels)
    check_rows("proxies", proxies)
    if labels.min() < 0 or labels.max() >= len(proxies):
        raise ValueError(f"labels must be 0 to {len(proxies) - 1}, one for each proxy")
    points = normalize(at_least_single(proxies), dim=1)
    rows = at_least_single(embeddings)
    distances = rows.square().sum(dim=1, keepdim=True) + 1 - 2 * rows @ points.T  # squared, [N, K]
    return cross_entropy(-scale * distances, labels)
