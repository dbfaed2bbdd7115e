"""Golden values, and small random batches."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="session")
def golden():
    """`golden/losses.npz` as tensors."""
    with np.load(GOLDEN / "losses.npz") as stored:
        return {name: torch.from_numpy(np.asarray(value)) for name, value in stored.items()}


@pytest.fixture(scope="session")
def matches(golden):
    """`matches(name, loss, *leaves)`: value and gradients are the golden ones, in float64 and in float32."""

    def check(name, loss, *leaves):
        for dtype, tolerance in (
            (torch.float64, {"rtol": 0, "atol": 1e-8}),
            (torch.float32, {"rtol": 1e-4, "atol": 1e-5}),
        ):
            given = [leaf.to(dtype).requires_grad_(True) for leaf in leaves]
            value = loss(*given)
            torch.testing.assert_close(value, golden[f"{name}_loss"].to(dtype), **tolerance)
            for number, gradient in enumerate(torch.autograd.grad(value, given)):
                torch.testing.assert_close(gradient, golden[f"{name}_grad{number}"].to(dtype), **tolerance)

    return check


@pytest.fixture(scope="session")
def unit_rows():
    """`unit_rows(count, dim, seed)`: random float64 rows of length 1."""

    def make(count, dim=6, seed=0):
        return normalize(
            torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), dim=1
        )

    return make
