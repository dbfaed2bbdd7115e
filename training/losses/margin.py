"""The margin loss of Wu et al. (2017), a baseline."""

from torch import Tensor

from training.losses.arguments import check_positive
from training.losses.pair_distances import mean_above_zero, pair_distances


def margin(embeddings: Tensor, labels: Tensor, boundary: float | Tensor = 1.2, width: float = 0.2) -> Tensor:
    """Mean over pairs, where above 0, of α + d − β for positive and α − d + β for negative ones.

    d is the Euclidean distance, β = boundary (a tensor may be learned), α = width. Positive pairs shall lie nearer
    than β − α, negative ones farther than β + α. embeddings [N, d] unit rows, labels [N]. 0 if all pairs do.
    """
    check_positive("width", width)
    distances, positive, negative = pair_distances(embeddings, labels)
    sign = positive.to(distances.dtype) - negative.to(distances.dtype)  # 0 on the diagonal
    terms = (width + sign * (distances - boundary))[positive | negative]
    return mean_above_zero(terms)
