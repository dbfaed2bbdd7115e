import pytest
import torch

from training.losses import filtered


def test_golden(golden, matches):
    matches(
        "feds", lambda surrogate: filtered(surrogate, golden["feds_edit"].to(surrogate.dtype)), golden["feds_surrogate"]
    )


def test_both_readings_are_silent_outside_the_band():
    metric = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    surrogate = torch.tensor([0.1, 1.2, 2.9, 1.0], dtype=torch.float64, requires_grad=True)
    (towards_metric,) = torch.autograd.grad(filtered(surrogate, metric), surrogate)
    (towards_zero,) = torch.autograd.grad(filtered(surrogate, metric, target="zero"), surrogate)
    assert towards_metric.tolist() == [0.25, 0.25, 0, 0]
    assert towards_zero.tolist() == [0.25, 0.25, 0, 0]


def test_the_readings_differ_below_the_metric():
    """ê under e: the equation pulls it up, the other reading pushes it on down."""
    surrogate = torch.tensor([0.9], requires_grad=True)
    metric = torch.tensor([1.0])
    assert torch.autograd.grad(filtered(surrogate, metric), surrogate)[0].item() == -1
    assert torch.autograd.grad(filtered(surrogate, metric, target="zero"), surrogate)[0].item() == 1


def test_gradcheck():
    metric = torch.tensor([0.0, 1.0], dtype=torch.float64)
    surrogate = torch.tensor([0.1, 1.2], dtype=torch.float64, requires_grad=True)
    for target in ("metric", "zero"):
        assert torch.autograd.gradcheck(lambda s, target=target: filtered(s, metric, target=target), surrogate)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(2), torch.ones(3)), "must be equal and not empty"),
        ((torch.ones(0), torch.ones(0)), "must be equal and not empty"),
        ((torch.ones(1), torch.tensor([float("nan")])), "NaN"),
        ((torch.ones(1), torch.ones(1), 0), "threshold must be above 0"),
        ((torch.ones(1), torch.ones(1), 0.25, "nothing"), "target must be metric or zero"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        filtered(*arguments)
