"""ESupCon: the supervised contrastive loss with class prototypes inside, and the tightness term alone."""

import torch
from torch import Tensor
from torch.nn import functional as F

from training.losses.arguments import at_least_single, check_batch, check_positive, check_rows
from training.losses.supcon import supcon_terms


def esupcon(embeddings: Tensor, labels: Tensor, prototypes: Tensor, temperature: float = 0.1) -> Tensor:
    """(Σ_k ℓ(θ_k) + Σ_i SupCon(z_i)) / (N + K).

    ℓ(θ_k)   = mean over the rows i of class k of ℓ(z_i, θ_k)
    ℓ(z, θ_k) = −z θ_k + log(Σ_c exp z θ_c + Σ_{j ≠ i} exp z z_j), all products divided by τ

    embeddings [N, d] unit rows (all views of all images), labels [N] in 0…K−1, prototypes [K, d] raw: normalised
    here. A class without rows adds nothing to the sum but counts in K.
    """
    check_prototypes(embeddings, labels, prototypes)
    check_positive("temperature", temperature)
    rows = at_least_single(embeddings)
    directions = F.normalize(at_least_single(prototypes), dim=1)
    to_prototypes = rows @ directions.T / temperature  # [N, K]
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    to_rows = (rows @ rows.T / temperature).masked_fill(itself, -torch.inf)
    normaliser = torch.cat([to_prototypes, to_rows], dim=1).logsumexp(dim=1)
    pairs = normaliser - to_prototypes.gather(1, labels[:, None]).squeeze(1)  # [N]
    sizes = torch.bincount(labels, minlength=len(prototypes)).to(rows.dtype)
    terms = supcon_terms(rows, labels, temperature)
    return ((pairs / sizes[labels]).sum() + terms.sum()) / (len(rows) + len(prototypes))


def tightness(embeddings: Tensor, labels: Tensor, prototypes: Tensor) -> Tensor:
    """−mean_i z_i θ_{y_i}: pulls each prototype to its class. The gradient goes to the prototypes only.

    embeddings [N, d] unit rows, labels [N] in 0…K−1, prototypes [K, d] raw: normalised here.
    """
    check_prototypes(embeddings, labels, prototypes)
    directions = F.normalize(at_least_single(prototypes), dim=1)
    return -(at_least_single(embeddings).detach() * directions[labels]).sum(dim=1).mean()


def check_prototypes(embeddings: Tensor, labels: Tensor, prototypes: Tensor) -> None:
    """A batch whose labels name one of the prototypes' rows each."""
    check_batch(embeddings, labels)
    check_rows("prototypes", prototypes)
    if prototypes.shape[1] != embeddings.shape[1]:
        raise ValueError(f"prototypes have {prototypes.shape[1]} columns, embeddings {embeddings.shape[1]}")
    if int(labels.min()) < 0 or int(labels.max()) >= len(prototypes):
        raise ValueError(f"labels must lie in 0…{len(prototypes) - 1}, one for each of the prototypes")
