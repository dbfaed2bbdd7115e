"""Smooth-AP, the baseline of RS@k."""

import torch
from torch import Tensor

from training.losses.arguments import at_least_single, check_batch, check_positive, nothing_to_learn
from training.losses.soft_sorting import ordered_positives, soft_rank


def smooth_ap(embeddings: Tensor, labels: Tensor, temperature: float = 0.01) -> Tensor:
    """1 − smooth average precision, mean over the queries that have a positive.

    AP(q) = 1/|P_q| Σ_{x ∈ P_q} r⁺_qx / r_qx: the rank of x among q's positives over its rank among all, both as in
    `soft_rank`; q itself is in neither.

    embeddings [N, d] unit rows, labels [N] of any class sizes. A batch without positives has loss 0.
    """
    check_batch(embeddings, labels)
    check_positive("temperature", temperature)
    rows = at_least_single(embeddings)
    similarities = rows @ rows.T
    queries, items = ordered_positives(labels)
    if not len(queries):
        return nothing_to_learn(rows)
    ranks = soft_rank(similarities, queries, items, temperature)  # [M]
    other_classes = labels[:, None] != labels[None, :]
    among_positives = soft_rank(similarities.masked_fill(other_classes, -torch.inf), queries, items, temperature)
    positives = torch.bincount(queries, minlength=len(labels)).to(ranks.dtype)
    precision = ranks.new_zeros(len(labels)).index_add(0, queries, among_positives / ranks)
    asked = positives > 0
    return 1 - (precision[asked] / positives[asked]).mean()
