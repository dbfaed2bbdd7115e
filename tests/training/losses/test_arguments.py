"""Bad batches: every loss on embeddings names what is wrong with them."""

import pytest
import torch

from training.losses import (
    contrastive,
    esupcon,
    margin,
    proxy_nca,
    recall_at_k,
    smooth_ap,
    spce,
    supcon,
    tightness,
    triplet,
)

PROTOTYPES = torch.eye(3, 4)
LOSSES = {
    "recall_at_k": recall_at_k,
    "smooth_ap": smooth_ap,
    "supcon": supcon,
    "esupcon": lambda embeddings, labels: esupcon(embeddings, labels, PROTOTYPES),
    "tightness": lambda embeddings, labels: tightness(embeddings, labels, PROTOTYPES),
    "contrastive": contrastive,
    "margin": margin,
    "triplet": triplet,
    "proxy_nca": lambda embeddings, labels: proxy_nca(embeddings, labels, PROTOTYPES),
    "spce": lambda embeddings, labels: spce(embeddings, labels, 3),
}
GOOD = torch.eye(4)
LABELS = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("embeddings", "labels", "error", "message"),
    [
        (torch.empty(0, 4), torch.empty(0, dtype=torch.int64), ValueError, "embeddings must be"),
        (torch.ones(4), LABELS, ValueError, "embeddings must be"),
        (GOOD.long(), LABELS, TypeError, "embeddings must be floating point"),
        (GOOD * float("nan"), LABELS, ValueError, "embeddings hold NaN"),
        (GOOD * 2, LABELS, ValueError, "embeddings must be unit rows"),
        (GOOD, LABELS[:3], ValueError, r"labels have shape \[3\]; embeddings want \[4\]"),
        (GOOD, LABELS.float(), TypeError, "labels must be a tensor of integers"),
        (GOOD, [0, 0, 1, 1], TypeError, "labels must be a tensor of integers"),
    ],
)
def test_bad_batches(name, embeddings, labels, error, message):
    with pytest.raises(error, match=message):
        LOSSES[name](embeddings, labels)


@pytest.mark.parametrize("name", LOSSES)
def test_one_class_only_is_finite(name):
    loss = LOSSES[name](GOOD, torch.zeros(4, dtype=torch.int64))
    assert torch.isfinite(loss)
