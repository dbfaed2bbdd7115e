"""The loop is general: here with a third metric, the Dice distance of two masks, and a model to tune."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from training.surrogates.learning import Schedule, Surrogate, alternate, learn
from training.surrogates.pairs import ModelBatch, Sources
from training.surrogates.quality import draw_band, draw_learning, measure

SIZE = 8


def one_minus_dice(prediction, truth):
    """On masks [N, 1, 8, 8], after rounding: not differentiable, one number a pair."""
    found, true = (mask.detach().flatten(1) > 0.5 for mask in (prediction, truth))
    return 1 - 2 * (found & true).sum(dim=1) / (found.sum(dim=1) + true.sum(dim=1)).clamp(min=1).float()


def rectangles(count, random):
    """Random upright rectangles as masks."""
    places = torch.arange(SIZE)
    start, end = torch.randint(0, SIZE // 2, (2, count, 2), generator=random).unbind(0)
    end = start + 2 + end
    inside = [(places >= start[:, axis, None]) & (places < end[:, axis, None]) for axis in (0, 1)]
    return (inside[0][:, :, None] & inside[1][:, None, :]).float().unsqueeze(1)


def mask_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.LeakyReLU(),
        nn.Flatten(),
        nn.Linear(16 * SIZE**2, 128),
        nn.LeakyReLU(),
        nn.Linear(128, 32),
    )


@pytest.fixture
def random():
    torch.manual_seed(0)
    return torch.Generator().manual_seed(1)


def distorted_masks(random, count=64):
    """Global pairs: truths with a share of their pixels flipped, from none to half."""
    truth = rectangles(count, random)
    share = torch.rand(count, 1, 1, 1, generator=random) / 2
    flip = torch.rand(truth.shape, generator=random) < share
    return torch.where(flip, 1 - truth, truth), truth


class Segmenter:
    """A model to tune: finds the rectangle in noise; its bias starts wrong, so that it says "inside" too rarely."""

    def __init__(self, random):
        self.network = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.random = random
        optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-2)
        for _ in range(60):
            prediction, truth = self.predict()
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy(prediction, truth).backward()
            optimizer.step()
        with torch.no_grad():
            self.network[-1].bias -= 1.5

    def predict(self, count=64):
        truth = rectangles(count, self.random)
        noisy = truth + torch.randn(truth.shape, generator=self.random)
        return self.network(noisy).sigmoid(), truth

    def __call__(self):
        return ModelBatch(*self.predict())

    def distance(self):
        with torch.no_grad():
            return float(one_minus_dice(*self.predict(1000)).mean())


@pytest.mark.parametrize("source", ["global", "local", "local-global"])
@pytest.mark.parametrize("threshold", [None, 0.25])
def test_tuning_on_the_surrogate_lowers_the_metric(random, source, threshold):
    model, surrogate = Segmenter(random), Surrogate(mask_network(), one_minus_dice)
    generator = (lambda: distorted_masks(random)) if source != "local" else None
    sources = Sources(generator, model)
    before = model.distance()
    schedule = Schedule(rounds=10, surrogate_steps=20, model_steps=10, filter_threshold=threshold, filter_target="zero")
    optimizers = [torch.optim.Adam(network.parameters(), lr=3e-3) for network in (surrogate.embed, model.network)]
    # Global: the surrogate learns from generated pairs alone, and only then the model from it.
    learning = Sources(generator) if source == "global" else sources
    list(alternate(surrogate, learning, Schedule(rounds=10, surrogate_steps=20), optimizers[0]))
    list(alternate(surrogate, sources, schedule, *optimizers))
    assert model.distance() < 0.9 * before


def test_the_error_falls_and_is_drawn(random, tmp_path: Path):
    surrogate = Surrogate(mask_network(), one_minus_dice)
    rounds = list(learn(surrogate, Sources(lambda: distorted_masks(random)), steps=300, steps_a_round=50))
    assert [entry.steps for entry in rounds] == [50, 100, 150, 200, 250, 300]
    assert rounds[-1].error < rounds[0].error / 1.5
    quality = measure(surrogate, *distorted_masks(random, 400), edges=(0.2, 0.4))
    draw_learning(rounds, tmp_path / "learning.png")
    draw_band(quality, tmp_path / "band.png")
    for name in ("learning.png", "band.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_surrogate_stands_still_while_the_model_learns(random):
    model, surrogate = Segmenter(random), Surrogate(mask_network(), one_minus_dice)
    before = [parameter.clone() for parameter in surrogate.embed.parameters()]
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in (surrogate.embed, model.network)]
    list(alternate(surrogate, Sources(model=model), Schedule(rounds=1, surrogate_steps=0, model_steps=3), *optimizers))
    for old, new in zip(before, surrogate.embed.parameters(), strict=True):
        assert torch.equal(old, new)
        assert new.requires_grad


def test_the_rest_of_the_loss_is_learned_too(random):
    """What the surrogate does not replace still reaches the model."""
    extra = nn.Parameter(torch.tensor(1.0))
    prediction, truth = distorted_masks(random)
    sources = Sources(model=lambda: ModelBatch(prediction, truth, rest=extra.square()))
    schedule = Schedule(rounds=1, surrogate_steps=0, model_steps=1)
    surrogate = Surrogate(mask_network(), one_minus_dice)
    optimizer = torch.optim.SGD([extra], lr=0.1)
    list(alternate(surrogate, sources, schedule, torch.optim.SGD(surrogate.embed.parameters()), optimizer))
    assert extra.item() == pytest.approx(0.8)


def test_stopped_and_gone_on_equals_one_go(random):
    """A round can be the last before a stop: with the states loaded, the next one is the same as without it."""

    def fresh():
        torch.manual_seed(3)
        surrogate = Surrogate(mask_network(), one_minus_dice)
        return surrogate, torch.optim.Adam(surrogate.embed.parameters(), lr=1e-3)

    pairs = [distorted_masks(random) for _ in range(40)]
    schedule = Schedule(rounds=4, surrogate_steps=5)
    surrogate, optimizer = fresh()
    feed = iter(pairs)
    whole = list(alternate(surrogate, Sources(lambda: next(feed)), schedule, optimizer))
    other, other_optimizer = fresh()
    feed = iter(pairs)
    rounds = alternate(other, Sources(lambda: next(feed)), schedule, other_optimizer)
    first = [next(rounds), next(rounds)]
    resumed, resumed_optimizer = fresh()
    resumed.embed.load_state_dict(other.embed.state_dict())
    resumed_optimizer.load_state_dict(other_optimizer.state_dict())
    rest = list(alternate(resumed, Sources(lambda: next(feed)), schedule, resumed_optimizer, start=2))
    assert first + rest == whole


def test_empty_bins_have_no_error(random):
    surrogate = Surrogate(mask_network(), one_minus_dice)
    truth = rectangles(5, random)
    quality = measure(surrogate, truth, truth, edges=(0.5,))
    assert max(quality.by_bin[0], quality.mean) < 1e-5
    assert math.isnan(quality.by_bin[1])


def test_bad_sources():
    with pytest.raises(ValueError, match="a generator, a model, or both"):
        Sources()
    surrogate = Surrogate(mask_network(), one_minus_dice)
    optimizer = torch.optim.SGD(surrogate.embed.parameters())
    with pytest.raises(ValueError, match="model_steps need a model"):
        next(alternate(surrogate, Sources(lambda: None), Schedule(1, 1, model_steps=1), optimizer))
