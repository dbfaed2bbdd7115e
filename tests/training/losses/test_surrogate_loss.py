import pytest
import torch

from training.losses import surrogate_loss
from training.losses.surrogate_loss import surrogate_distance


def slow_surrogate_loss(embed, prediction, truth, metric, weight):
    """One pair at a time, the slope by finite differences."""
    total = 0.0
    step = 1e-6
    for z, y, e in zip(prediction, truth, metric, strict=True):

        def distance(point, y=y):
            return (embed(point[None]) - embed(y[None])).norm().item()

        slopes = []
        for column in range(len(z)):
            shift = torch.zeros_like(z)
            shift[column] = step
            slopes.append((distance(z + shift) - distance(z - shift)) / (2 * step))
        total += (distance(z) - e.item()) ** 2 + weight * (torch.tensor(slopes).norm().item() - 1) ** 2
    return total / len(metric)


def test_golden(golden, matches):
    def loss(matrix):
        data = (golden[name].to(matrix.dtype) for name in ("ls_pred", "ls_truth", "ls_metric"))
        return surrogate_loss(lambda z: torch.tanh(z @ matrix), *data)

    matches("ls", loss, golden["ls_M"])


def test_equals_its_slow_twin():
    torch.manual_seed(0)
    matrix = torch.randn(4, 3, dtype=torch.float64)
    prediction, truth = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    metric = torch.rand(5, dtype=torch.float64)
    loss = surrogate_loss(lambda z: torch.tanh(z @ matrix), prediction, truth, metric, 0.3)
    expected = slow_surrogate_loss(lambda z: torch.tanh(z @ matrix), prediction, truth, metric, 0.3)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_gradcheck():
    torch.manual_seed(0)
    prediction, truth = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    metric = torch.rand(3, dtype=torch.float64)
    matrix = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda m: surrogate_loss(lambda z: torch.tanh(z @ m), prediction, truth, metric), matrix
    )


def test_equal_pairs_give_no_nan():
    matrix = torch.randn(4, 2, requires_grad=True)
    points = torch.randn(3, 4)
    surrogate_loss(lambda z: torch.tanh(z @ matrix), points, points.clone(), torch.zeros(3)).backward()
    assert torch.isfinite(matrix.grad).all()
    assert surrogate_distance(lambda z: z, points, points).max() < 1e-5


@pytest.mark.parametrize(
    ("prediction", "truth", "metric", "weight", "message"),
    [
        (torch.ones(2, 3), torch.ones(2, 4), torch.ones(2), 0.1, "must be equal, not empty"),
        (torch.ones(0, 3), torch.ones(0, 3), torch.ones(0), 0.1, "must be equal, not empty"),
        (torch.ones(2, 3), torch.ones(2, 3), torch.ones(3), 0.1, r"metric has shape \[3\]"),
        (torch.ones(2, 3), torch.ones(2, 3), torch.ones(2), -1, "gradient_weight"),
        (torch.full((2, 3), float("nan")), torch.ones(2, 3), torch.ones(2), 0.1, "prediction holds NaN"),
    ],
)
def test_arguments_that_cannot_be(prediction, truth, metric, weight, message):
    with pytest.raises(ValueError, match=message):
        surrogate_loss(lambda z: z, prediction, truth, metric, weight)
