"""The triplet loss over all triplets of a batch, a baseline."""

from torch import Tensor

from training.losses.arguments import check_positive
from training.losses.pair_distances import mean_above_zero, pair_distances


def triplet(embeddings: Tensor, labels: Tensor, margin: float = 0.2) -> Tensor:
    """Mean over triplets (anchor, positive, negative) of d_ap − d_an + m, where that is above 0; d is Euclidean.

    embeddings [N, d] unit rows, labels [N]. Time and memory grow with positive pairs × N. 0 if no triplet is
    violated or there is none.
    """
    check_positive("margin", margin)
    distances, positive, negative = pair_distances(embeddings, labels)
    anchors, others = positive.nonzero(as_tuple=True)
    terms = distances[anchors, others][:, None] - distances[anchors] + margin  # [positive pairs, N]
    return mean_above_zero(terms[negative[anchors]])
