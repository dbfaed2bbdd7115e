"""The contrastive loss of Hadsell et al. (2006), a baseline."""

from torch import Tensor

from training.losses.arguments import check_positive, nothing_to_learn
from training.losses.pair_distances import pair_distances


def contrastive(embeddings: Tensor, labels: Tensor, margin: float = 0.5) -> Tensor:
    """Mean of d² over positive pairs plus mean of max(0, m − d)² over negative pairs; d is the Euclidean distance.

    embeddings [N, d] unit rows, labels [N]. A batch without positive (negative) pairs has no such part.
    """
    check_positive("margin", margin)
    distances, positive, negative = pair_distances(embeddings, labels)
    loss = nothing_to_learn(distances)
    if positive.any():
        loss = loss + distances[positive].square().mean()
    if negative.any():
        loss = loss + (margin - distances[negative]).clamp(min=0).square().mean()
    return loss
