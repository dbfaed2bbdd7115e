"""SPCE: cross-entropy whose classifier is the batch itself."""

import torch
from torch import Tensor
from torch.nn import functional as F

from training.losses.arguments import at_least_single, check_batch


def spce(embeddings: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """−mean_i log softmax_k((1/N) Σ_{j: y_j = k} z_j z_i) at k = y_i; j = i is included.

    embeddings [N, d] unit rows, labels [N] in 0…num_classes−1.
    """
    check_batch(embeddings, labels)
    if int(labels.min()) < 0 or int(labels.max()) >= num_classes:
        raise ValueError(f"labels must lie in 0…{num_classes - 1}, as num_classes is {num_classes}")
    rows = at_least_single(embeddings)
    sums = rows.new_zeros(num_classes, rows.shape[1]).index_add(0, labels, rows)  # [K, d]
    return F.cross_entropy(rows @ sums.T / len(rows), labels.to(torch.int64))
