"""The thesis' seven ways to learn a classifier, each as what one training loop needs to know of it.

                 the embedding learns by       the classifier learns by           projection
ce               cross-entropy                 the same                           no
supcon_ce        SupCon                        cross-entropy, afterwards          for SupCon
supcon_ce_n      SupCon                        the same on unit vectors, no bias  for SupCon
supcon_tt        SupCon                        tightness, meanwhile               for SupCon
spce             SPCE                          tightness, meanwhile               no
spce_m           SPCE                          means of each class, afterwards    no
esupcon          ESupCon                       the same                           no
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.losses import esupcon, spce, supcon, tightness
from training.models.classifier import Classifier

PROJECTED = 128  # dimensions that SupCon compares in

# (classifier, projection, embeddings [R, d] as they come from the backbone, labels [R], τ) → the loss
RowLoss = Callable[[Classifier, nn.Module, Tensor, Tensor, float], Tensor]


@dataclass(frozen=True)
class Method:
    """One of the seven."""

    title: str
    loss: RowLoss
    cosine: bool = True  # unit embeddings and prototypes, no bias
    projects: bool = False
    afterwards: Literal["nothing", "cross-entropy", "means"] = "nothing"  # on the finished embedding


def _cross_entropy(model: Classifier, _: nn.Module, rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    return F.cross_entropy(model.scores(rows), labels)


def _supcon(model: Classifier, projection: nn.Module, rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    return supcon(F.normalize(projection(rows), dim=1), labels, temperature)


def _supcon_tightness(
    model: Classifier, projection: nn.Module, rows: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    represented = _supcon(model, projection, rows, labels, temperature)
    return represented + tightness(F.normalize(rows, dim=1), labels, model.weights)


def _spce(model: Classifier, _: nn.Module, rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    units = F.normalize(rows, dim=1)
    return spce(units, labels, len(model.classes)) + tightness(units, labels, model.weights)


def _esupcon(model: Classifier, _: nn.Module, rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    return esupcon(F.normalize(rows, dim=1), labels, model.weights, temperature)


METHODS: dict[str, Method] = {
    "ce": Method("CE", _cross_entropy, cosine=False),
    "supcon_ce": Method("SupCon+CE", _supcon, cosine=False, projects=True, afterwards="cross-entropy"),
    "supcon_ce_n": Method("SupCon+CE(n)", _supcon, projects=True, afterwards="cross-entropy"),
    "supcon_tt": Method("SupCon+Tt", _supcon_tightness, projects=True),
    "spce": Method("SPCE", _spce),
    "spce_m": Method("SPCE(M)", _spce, afterwards="means"),
    "esupcon": Method("ESupCon", _esupcon),
}


def new_projection(method: Method, dim: int) -> nn.Module:
    """What SupCon sees the embedding through; it is thrown away after training."""
    if not method.projects:
        return nn.Identity()
    return nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, PROJECTED))


def class_means(embeddings: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The mean direction of each class: unit embeddings [R, d], labels [R] → [K, d]; of no rows, a row of noise."""
    sums = torch.zeros(classes, embeddings.shape[1]).index_add_(0, labels, embeddings)
    seen = torch.bincount(labels, minlength=classes) > 0
    return torch.where(seen[:, None], F.normalize(sums, dim=1), torch.randn(sums.shape) * sums.shape[1] ** -0.5)


def learn_on_finished(
    model: Classifier,
    method: Method,
    embeddings: Tensor,
    labels: Tensor,
    *,
    steps: int = 400,
    batch: int = 256,
    rate: float = 1e-2,
) -> None:
    """What comes after the embedding: cross-entropy on rows that no longer change, or their means."""
    if method.afterwards == "means":
        model.weights.data = class_means(F.normalize(embeddings, dim=1), labels, len(model.classes))
    if method.afterwards != "cross-entropy":
        return
    learned = [model.weights] if method.cosine else [model.weights, model.bias]
    optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = torch.randint(len(embeddings), (batch,))
        optimizer.zero_grad()
        F.cross_entropy(model.scores(embeddings[chosen]), labels[chosen]).backward()
        optimizer.step()
        schedule.step()
