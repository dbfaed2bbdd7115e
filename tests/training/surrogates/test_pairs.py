import pytest
import torch

from training.surrogates.pairs import ModelBatch, RecentPairs, Sources


def difference(prediction, truth):
    return (prediction - truth).abs().sum(dim=1)


def recent_of(values, **options):
    """Pairs with these values of the metric; the prediction is the value, the truth 0."""
    recent = RecentPairs(100, difference, batch=4000, **options)
    recent.add(torch.tensor(values, dtype=torch.float64)[:, None], torch.zeros(len(values), 1))
    return recent


def shares(recent):
    """How often each value is drawn."""
    prediction, truth = recent()
    assert not truth.any()
    values, counts = prediction[:, 0].unique(return_counts=True)
    return {round(float(value), 3): int(count) / len(prediction) for value, count in zip(values, counts, strict=True)}


def test_ranges_between_the_edges_are_drawn_equally_often():
    """0, 1, 2, and 3 or more; within each all pairs alike."""
    found = shares(recent_of([0] * 90 + [1, 1] + [2] + [3, 4, 9]))
    assert found == pytest.approx({0: 0.25, 1: 0.25, 2: 0.25, 3: 0.083, 4: 0.083, 9: 0.083}, abs=0.03)


def test_edges_of_ones_own():
    found = shares(recent_of([0.0] * 50 + [0.05] * 2 + [0.1, 0.45, 0.5, 1.0], edges=(0.1, 0.5)))
    low = found[0] + found[0.05]
    assert low == pytest.approx(1 / 3, abs=0.03)
    assert found[0.1] + found[0.45] == pytest.approx(1 / 3, abs=0.03)  # an edge belongs to what lies above it
    assert found[0.5] + found[1] == pytest.approx(1 / 3, abs=0.03)


def test_ranges_without_a_pair_do_not_matter():
    assert shares(recent_of([0, 0, 3], edges=(1, 2, 3))) == pytest.approx({0: 0.5, 3: 0.5}, abs=0.03)


@pytest.mark.parametrize(
    ("dtype", "kept"), [(torch.float16, 1 + 2**-10), (torch.float32, pytest.approx(1.0008, abs=1e-7))]
)
def test_pairs_are_kept_as_asked_and_given_in_full(dtype, kept):
    recent = recent_of([1.0008], dtype=dtype)
    prediction, _ = recent()
    assert recent.prediction.dtype == recent.truth.dtype == dtype
    assert prediction.dtype == torch.float32
    assert float(prediction[0, 0]) == kept
    assert float(recent.exact[0]) == pytest.approx(1.0008)  # of the pair as it was


def test_the_oldest_go():
    recent = RecentPairs(5, difference, batch=200)
    for start in (0, 3, 6):
        recent.add(torch.arange(start, start + 3.0)[:, None], torch.zeros(3, 1))
        assert len(recent) == min(start + 3, 5)
    assert set(recent()[0][:, 0].tolist()) == {4, 5, 6, 7, 8}


def test_the_same_seed_draws_the_same():
    one, same, other = (recent_of(list(range(50)), seed=seed)()[0] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_pairs_have_no_graph():
    recent = RecentPairs(5, difference, batch=3)
    recent.add(torch.ones(2, 1, requires_grad=True) * 2, torch.zeros(2, 1))
    assert not recent()[0].requires_grad


def test_where_pairs_come_from():
    generated, local, earlier = ((torch.full((1, 1), float(value)),) * 2 for value in (1, 2, 3))

    def values(sources):
        return [int(prediction) for prediction, _ in sources.pairs()]

    def generator():
        return generated

    def model():
        return ModelBatch(*local)

    assert values(Sources(generator)) == [1]
    assert values(Sources(model=model)) == [2]
    assert values(Sources(generator, model)) == [1, 2]
    assert values(Sources(generator, model, lambda: earlier)) == [1, 3]
    assert values(Sources(generator, model, lambda: earlier, local=False)) == [1]
    with pytest.raises(ValueError, match="a generator, a model, or both"):
        Sources()
