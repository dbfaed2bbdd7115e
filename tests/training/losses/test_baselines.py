"""The losses a user compares with: each against its formula, two also against pytorch-metric-learning."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import losses as peers
from pytorch_metric_learning.distances import LpDistance

from training.losses import contrastive, cross_entropy, margin, proxy_nca, triplet

CLASSES = st.lists(st.integers(0, 3), min_size=1, max_size=12)
SEEDS = st.integers(0, 1000)


def rows(count, seed, dim=5):
    found = torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(found, dim=1)


def distance(a, b):
    return float(torch.linalg.vector_norm(a - b))


def mean(values):
    return sum(values) / len(values) if values else 0.0


def slow_contrastive(z, labels, m=0.5):
    pairs = [(i, j) for i in range(len(z)) for j in range(len(z)) if i != j]
    positive = [distance(z[i], z[j]) ** 2 for i, j in pairs if labels[i] == labels[j]]
    negative = [max(0.0, m - distance(z[i], z[j])) ** 2 for i, j in pairs if labels[i] != labels[j]]
    return mean(positive) + mean(negative)


def slow_triplet(z, labels, m=0.2):
    count = range(len(z))
    triplets = [
        (a, p, n) for a in count for p in count for n in count if p != a and labels[p] == labels[a] != labels[n]
    ]
    terms = [distance(z[a], z[p]) - distance(z[a], z[n]) + m for a, p, n in triplets]
    return mean([term for term in terms if term > 0])


def slow_margin(z, labels, beta=1.2, alpha=0.2):
    terms = []
    for i in range(len(z)):
        for j in range(len(z)):
            if i != j:
                sign = 1 if labels[i] == labels[j] else -1
                terms.append(alpha + sign * (distance(z[i], z[j]) - beta))
    return mean([term for term in terms if term > 0])


def slow_proxy_nca(z, labels, proxies):
    points = [proxy / proxy.norm() for proxy in proxies]
    terms = []
    for row, label in zip(z, labels, strict=True):
        weights = [torch.exp(torch.tensor(-(distance(row, point) ** 2))) for point in points]
        terms.append(-float(torch.log(weights[label] / sum(weights))))
    return mean(terms)


TWINS = {contrastive: slow_contrastive, triplet: slow_triplet, margin: slow_margin}


@pytest.mark.parametrize("loss", TWINS)
@settings(max_examples=40, deadline=None)
@given(labels=CLASSES, seed=SEEDS)
def test_equals_its_slow_twin(loss, labels, seed):
    z = rows(len(labels), seed)
    assert float(loss(z, torch.tensor(labels))) == pytest.approx(TWINS[loss](z, labels), abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(labels=CLASSES, seed=SEEDS)
def test_proxy_nca_equals_its_slow_twin(labels, seed):
    z, proxies = rows(len(labels), seed), 3 * rows(4, seed + 1)
    assert float(proxy_nca(z, torch.tensor(labels), proxies)) == pytest.approx(slow_proxy_nca(z, labels, proxies))


@pytest.mark.parametrize("loss", TWINS)
def test_gradients_are_those_of_the_value(loss):
    z, labels = rows(7, 3).requires_grad_(True), torch.tensor([0, 0, 1, 1, 2, 2, 3])

    def value(raw):
        return loss(torch.nn.functional.normalize(raw, dim=1), labels)

    assert torch.autograd.gradcheck(value, z)


def test_proxy_nca_gradients():
    labels = torch.tensor([0, 2, 1])

    def value(raw, proxies):
        return proxy_nca(torch.nn.functional.normalize(raw, dim=1), labels, proxies)

    assert torch.autograd.gradcheck(value, (rows(3, 1).requires_grad_(True), rows(4, 2).requires_grad_(True)))


def test_equal_to_the_library():
    z, labels = rows(12, 9), torch.arange(12) % 3
    euclid = LpDistance(normalize_embeddings=False)
    ours = triplet(z, labels, margin=0.2)
    torch.testing.assert_close(ours, peers.TripletMarginLoss(0.2, distance=euclid)(z, labels), rtol=1e-6, atol=1e-6)
    nca = peers.ProxyNCALoss(3, 5).double()
    torch.testing.assert_close(proxy_nca(z, labels, nca.proxies), nca(z, labels))


def test_a_boundary_can_be_learned():
    boundary = torch.tensor(1.2, dtype=torch.float64, requires_grad=True)
    margin(rows(8, 1), torch.arange(8) % 2, boundary).backward()
    assert boundary.grad is not None
    assert boundary.grad != 0


def test_no_pairs_at_all_is_zero_with_a_gradient():
    for loss in TWINS:
        z = rows(1, 1).requires_grad_(True)
        value = loss(z, torch.tensor([0]))
        value.backward()
        assert value == 0
        assert (z.grad == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda z, y: contrastive(z, y, margin=0), "margin must be above 0"),
        (lambda z, y: triplet(z, y, margin=-1), "margin must be above 0"),
        (lambda z, y: margin(z, y, width=0), "width must be above 0"),
        (lambda z, y: proxy_nca(z, y, rows(2, 1)), "labels must be 0 to 1"),
        (lambda z, y: proxy_nca(z, y, rows(3, 1), scale=0), "scale must be above 0"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(ValueError, match=message):
        call(rows(3, 1), torch.tensor([0, 1, 2]))


def test_cross_entropy_is_the_well_known_one():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    expected = -torch.log_softmax(logits, dim=1)[[0, 1], [0, 1]].mean()
    torch.testing.assert_close(cross_entropy(logits, torch.tensor([0, 1])), expected)
