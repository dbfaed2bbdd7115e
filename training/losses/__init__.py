"""The thesis' losses and their building blocks, as pure functions; one loss a file. `cross_entropy` is torch's own."""

from torch.nn.functional import cross_entropy

from training.losses.contrastive import contrastive
from training.losses.esupcon import esupcon, tightness
from training.losses.filtered import filtered
from training.losses.margin import margin
from training.losses.proxy_nca import proxy_nca
from training.losses.recall_at_k import mixed_recall_at_k, recall_at_k, recall_at_k_from_similarities
from training.losses.similarity_mixup import mix_embeddings, positive_pairs, similarity_mixup
from training.losses.smooth_ap import smooth_ap
from training.losses.soft_sorting import soft_count, soft_rank
from training.losses.spce import spce
from training.losses.supcon import supcon
from training.losses.surrogate_loss import surrogate_loss
from training.losses.triplet import triplet

__all__ = [
    "contrastive",
    "cross_entropy",
    "esupcon",
    "filtered",
    "margin",
    "mix_embeddings",
    "mixed_recall_at_k",
    "positive_pairs",
    "proxy_nca",
    "recall_at_k",
    "recall_at_k_from_similarities",
    "similarity_mixup",
    "smooth_ap",
    "soft_count",
    "soft_rank",
    "spce",
    "supcon",
    "surrogate_loss",
    "tightness",
    "triplet",
]
