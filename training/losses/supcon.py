"""The supervised contrastive loss."""

import torch
from torch import Tensor

from training.losses.arguments import at_least_single, check_batch, check_positive, nothing_to_learn


def supcon(embeddings: Tensor, labels: Tensor, temperature: float = 0.1) -> Tensor:
    """Mean over i of 1/|P_i| Σ_{p ∈ P_i} (−s_ip + log Σ_{j ≠ i} exp s_ij), s = z zᵀ / τ.

    No further factor of τ, as in the equation. embeddings [N, d] unit rows, labels [N]; rows without a positive
    are left out, and a batch without any positive has loss 0.
    """
    check_batch(embeddings, labels)
    check_positive("temperature", temperature)
    terms = supcon_terms(at_least_single(embeddings), labels, temperature)
    return terms.mean() if len(terms) else nothing_to_learn(embeddings)


def supcon_terms(rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The loss of each row that has a positive: [A], A ≤ N."""
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    positive = (labels[:, None] == labels[None, :]) & ~itself
    asked = positive.any(dim=1)
    positive, itself = positive[asked], itself[asked]
    similarities = rows[asked] @ rows.T / temperature  # [A, N]
    normaliser = similarities.masked_fill(itself, -torch.inf).logsumexp(dim=1)
    return normaliser - (similarities * positive).sum(dim=1) / positive.sum(dim=1)
