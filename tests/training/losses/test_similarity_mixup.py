import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from training.losses import mixed_recall_at_k, positive_pairs, recall_at_k_from_similarities, similarity_mixup

KS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)


def test_golden(golden, matches):
    labels, pairs, alphas = golden["y"], golden["simix_pairs"], golden["simix_alphas"]

    def from_embeddings(rows):
        return mixed_recall_at_k(normalize(rows, dim=1), labels, pairs, alphas)

    def from_similarities(rows):
        unit = normalize(rows, dim=1)
        return recall_at_k_from_similarities(*similarity_mixup(unit @ unit.T, labels, pairs, alphas), ks=KS)

    matches("simix", from_embeddings, golden["X"])
    matches("simix", from_similarities, golden["X"])
    assert torch.equal(positive_pairs(labels), pairs)


@settings(deadline=None, max_examples=30)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=10), seed=st.integers(0, 99))
def test_equals_the_product_with_its_matrix(labels, seed):
    generator = torch.Generator().manual_seed(seed)
    similarities = torch.randn(len(labels), len(labels), dtype=torch.float64, generator=generator)
    given_labels = torch.tensor(labels)
    pairs = positive_pairs(given_labels)
    assert pairs.tolist() == [
        [a, b] for a in range(len(labels)) for b in range(a + 1, len(labels)) if labels[a] == labels[b]
    ]
    alphas = torch.rand(len(pairs), dtype=torch.float64, generator=generator)
    matrix = torch.eye(len(labels), dtype=torch.float64)
    for (first, second), alpha in zip(pairs.tolist(), alphas, strict=True):
        row = torch.zeros(1, len(labels), dtype=torch.float64)
        row[0, first], row[0, second] = alpha, 1 - alpha
        matrix = torch.cat([matrix, row])
    mixed, mixed_labels = similarity_mixup(similarities, given_labels, pairs, alphas)
    torch.testing.assert_close(mixed, matrix @ similarities @ matrix.T)
    assert mixed_labels.tolist() == labels + [labels[first] for first, _ in pairs.tolist()]


def test_gradcheck(unit_rows):
    labels = torch.tensor([0, 0, 1, 1, 0])
    pairs, alphas = positive_pairs(labels), torch.tensor([0.2, 0.5, 0.9, 0.4], dtype=torch.float64)
    raw = unit_rows(5).requires_grad_(True)
    assert torch.autograd.gradcheck(
        lambda rows: mixed_recall_at_k(normalize(rows, dim=1), labels, pairs, alphas, (1, 2), 1.0, 0.2), raw
    )


@pytest.mark.parametrize(
    ("pairs", "alphas", "message"),
    [
        (torch.tensor([0, 1]), torch.rand(2), r"pairs must be \[V, 2\]"),
        (torch.tensor([[0, 1]]), torch.rand(2), r"alphas have shape \[2\]; pairs want \[1\]"),
        (torch.tensor([[0, 2]]), torch.rand(1), "pairs must join equal labels"),
    ],
)
def test_arguments_that_cannot_be(pairs, alphas, message):
    with pytest.raises(ValueError, match=message):
        similarity_mixup(torch.eye(4), torch.tensor([0, 0, 1, 1]), pairs, alphas)
