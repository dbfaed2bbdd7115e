"""SiMix: virtual examples between two pictures of a class, for the price of a few additions."""

import torch
from torch import Tensor

from training.losses.arguments import check_labels, check_similarities


def positive_pairs(labels: Tensor) -> Tensor:
    """Every unordered pair of equal labels: [V, 2], first < second, in order."""
    check_labels(labels, labels.numel(), "pairs")
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    same = labels[first] == labels[second]
    return torch.stack([first[same], second[same]], dim=1)


def similarity_mixup(similarities: Tensor, labels: Tensor, pairs: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor]:
    """Similarities and labels of the batch and its virtual examples.

    Virtual example v lies between first and second of its pair: x_v = α x_first + (1 − α) x_second, *not*
    normalised again, so its similarities are mixtures of those already there: S' = W S Wᵀ, W = [I; mixtures].

    similarities [N, N], labels [N], pairs [V, 2] of equal labels, alphas [V]; returns [N+V, N+V] and [N+V].
    """
    check_similarities(similarities, labels)
    rows, mixed_labels = mix_embeddings(similarities, labels, pairs, alphas)  # W S
    columns, _ = mix_embeddings(rows.T, labels, pairs, alphas)  # W (W S)ᵀ
    return columns.T, mixed_labels


def mix_embeddings(rows: Tensor, labels: Tensor, pairs: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor]:
    """W · rows with the labels of all: the batch, then its virtual examples. rows [N, d] → [N+V, d]."""
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs must be [V, 2], not {list(pairs.shape)}")
    if alphas.shape != pairs.shape[:1]:
        raise ValueError(f"alphas have shape {list(alphas.shape)}; pairs want [{len(pairs)}]")
    first, second = pairs.unbind(1)
    if not torch.equal(labels[first], labels[second]):
        raise ValueError("pairs must join equal labels")
    share = alphas.to(rows.dtype)[:, None]
    virtual = torch.lerp(rows[second], rows[first], share)  # [V, d]
    return torch.cat([rows, virtual]), torch.cat([labels, labels[first]])
