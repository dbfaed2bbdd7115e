import pytest
import torch
from torch import nn

from training.weight_average import WeightAverage


class Small(nn.Module):
    """A weight, and a number that counts."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))
        self.register_buffer("seen", torch.tensor(0))
        self.name = "small"


def set_to(model, value):
    model.weight.data.fill_(value)
    model.seen.fill_(int(value))


def test_the_slow_twin():
    model = Small()
    average, expected = WeightAverage(model, 0.9), 0.0
    for step in range(1, 200):
        set_to(model, step % 7)
        average.update(model)
        keep = min(0.9, step / (step + 10))
        expected = keep * expected + (1 - keep) * (step % 7)
    averaged = average.of(model)
    assert averaged.weight.tolist() == pytest.approx([expected] * 2, rel=1e-4)
    assert int(averaged.seen) == 199 % 7  # what is no number of the kind that can be averaged is the last
    assert average.steps == 199


def test_the_start_is_soon_forgotten():
    model = Small()
    set_to(model, 1000)
    average = WeightAverage(model, 0.998)
    set_to(model, 1)
    for _ in range(20):
        average.update(model)
    assert average.of(model).weight.tolist() == pytest.approx([1, 1], abs=0.01)


def test_what_stands_still_stays_as_it_is():
    model = Small()
    set_to(model, 0.1)
    before = model.weight.detach().clone()
    average = WeightAverage(model, 0.99)
    for _ in range(50):
        average.update(model)
    assert torch.equal(average.of(model).weight, before)


def test_the_average_is_a_network_of_its_own():
    model = Small().train()
    model.weight.sum().backward()
    average = WeightAverage(model, 0.5)
    set_to(model, 3)
    averaged = average.of(model)
    assert averaged.weight.tolist() == [0, 0]
    assert averaged.name == "small"
    assert not averaged.training
    assert model.training
    averaged.weight.data.fill_(9)
    assert model.weight.tolist() == [3, 3]
    assert average.weights["weight"].tolist() == [0, 0]
