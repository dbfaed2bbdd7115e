"""RS@k: recall at k made differentiable (thesis, chapter 5)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from training.losses.arguments import (
    at_least_single,
    check_batch,
    check_ks,
    check_positive,
    check_similarities,
    nothing_to_learn,
)
from training.losses.similarity_mixup import mix_embeddings
from training.losses.soft_sorting import ordered_positives, soft_count, soft_rank

KS = (1, 2, 4, 8, 16)
MIXED_KS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)


def recall_at_k(
    embeddings: Tensor,
    labels: Tensor,
    ks: Sequence[float] = KS,
    rank_temperature: float = 1.0,
    similarity_temperature: float = 0.01,
) -> Tensor:
    """1 − smooth recall, mean over queries q and k.

    recall_k(q) = min(k, Σ_{x ∈ P_q} σ((k − r_qx) / τ₁)) / min(k, |P_q|)
    r_qx        = 1 + Σ_{z ∉ {q, x}} σ((s_qz − s_qx) / τ₂),   s = embeddings · embeddingsᵀ

    embeddings [N, d] unit rows, labels [N]; τ₁ = rank_temperature, τ₂ = similarity_temperature. Classes may have
    any size; a query without a positive is left out, and a batch without any has loss 0.

    A perfect ranking still costs something: a positive at rank k counts σ(0) = ½. ks may be floats.
    """
    check_batch(embeddings, labels)
    rows = at_least_single(embeddings)
    return _loss(rows @ rows.T, labels, ks, rank_temperature, similarity_temperature)


def recall_at_k_from_similarities(
    similarities: Tensor,
    labels: Tensor,
    ks: Sequence[float] = KS,
    rank_temperature: float = 1.0,
    similarity_temperature: float = 0.01,
) -> Tensor:
    """The same from similarities [N, N]: row q ranks all columns but its own."""
    check_similarities(similarities, labels)
    return _loss(at_least_single(similarities), labels, ks, rank_temperature, similarity_temperature)


def mixed_recall_at_k(
    embeddings: Tensor,
    labels: Tensor,
    pairs: Tensor,
    alphas: Tensor,
    ks: Sequence[float] = MIXED_KS,
    rank_temperature: float = 1.0,
    similarity_temperature: float = 0.01,
) -> Tensor:
    """RS@k + SiMix: `recall_at_k` over the batch and its virtual examples (see `similarity_mixup`).

    Mixing embeddings without normalising them again gives the same similarities as mixing similarities, without
    the products W S Wᵀ. pairs [V, 2], alphas [V] in 0…1.
    """
    check_batch(embeddings, labels)
    rows, mixed_labels = mix_embeddings(at_least_single(embeddings), labels, pairs, alphas)
    return _loss(rows @ rows.T, mixed_labels, ks, rank_temperature, similarity_temperature)


def _loss(
    similarities: Tensor, labels: Tensor, ks: Sequence[float], rank_temperature: float, similarity_temperature: float
) -> Tensor:
    check_ks(ks)
    check_positive("rank_temperature", rank_temperature)
    check_positive("similarity_temperature", similarity_temperature)
    queries, items = ordered_positives(labels)
    if not len(queries):
        return nothing_to_learn(similarities)
    ranks = soft_rank(similarities, queries, items, similarity_temperature)  # [M]
    positives = torch.bincount(queries, minlength=len(labels)).to(ranks.dtype)  # [N]
    asked = positives > 0
    losses = []
    for k in ks:
        counts = ranks.new_zeros(len(labels)).index_add(0, queries, soft_count(ranks, k, rank_temperature))
        recall = counts.clamp(max=k) / positives.clamp(max=k)
        losses.append(1 - recall[asked].mean())
    return torch.stack(losses).mean()
