import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import spce


def slow_spce(embeddings, labels, num_classes):
    similarities = (embeddings @ embeddings.T).tolist()
    count = len(labels)
    losses = []
    for i in range(count):
        logits = [sum(similarities[i][j] for j in range(count) if labels[j] == k) / count for k in range(num_classes)]
        losses.append(math.log(sum(map(math.exp, logits))) - logits[labels[i]])
    return sum(losses) / count


def test_golden(golden, matches):
    matches("spce", lambda rows: spce(normalize(rows, dim=1), golden["y"], 8), golden["X"])


@settings(deadline=None, max_examples=30)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=10), seed=st.integers(0, 99))
def test_equals_its_slow_twin(unit_rows, labels, seed):
    embeddings = unit_rows(len(labels), seed=seed)
    assert spce(embeddings, torch.tensor(labels), 5).item() == pytest.approx(slow_spce(embeddings, labels, 5), abs=1e-9)


def test_gradcheck(unit_rows):
    raw = unit_rows(5).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: spce(normalize(rows, dim=1), torch.tensor([0, 0, 1, 1, 2]), 3), raw)


def test_a_label_beyond_the_classes(unit_rows):
    with pytest.raises(ValueError, match="as num_classes is 2"):
        spce(unit_rows(2), torch.tensor([0, 2]), 2)
