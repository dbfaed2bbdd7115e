import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from training.large_batch import large_batch_step
from training.losses import recall_at_k, supcon


class Network(nn.Module):
    """Dropout, a BatchNorm whose statistics are frozen, unit rows."""

    def __init__(self, dropout=0.3):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 6)
        )
        self.layers[1].eval()
        self.layers[1].running_mean.normal_()

    def forward(self, images):
        return F.normalize(self.layers(images), dim=1)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(24, 5, dtype=torch.float64, generator=generator), torch.arange(24) % 6


def loss(embeddings, labels):
    return recall_at_k(embeddings, labels, similarity_temperature=0.1)


def gradients(network):
    return {name: parameter.grad for name, parameter in network.named_parameters()}


def make_network(**options):
    torch.manual_seed(1)
    return Network(**options).double()


@pytest.mark.parametrize("chunk", [1, 7, 24, 1000])
@pytest.mark.parametrize("function", [loss, supcon])
def test_gradients_equal_one_pass(batch, chunk, function):
    images, labels = batch
    staged, whole = make_network(dropout=0), make_network(dropout=0)
    value = large_batch_step(staged, images, labels, function, chunk=chunk)
    expected = function(whole(images), labels)
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(gradients(staged), gradients(whole), atol=1e-9, rtol=0)


def test_dropout_is_the_same_in_both_passes(batch):
    """One pass over the same chunks with the same random numbers."""
    images, labels = batch
    staged, whole = make_network(), make_network()
    torch.manual_seed(5)
    large_batch_step(staged, images, labels, loss, chunk=7)
    torch.manual_seed(5)
    loss(torch.cat([whole(part) for part in images.split(7)]), labels).backward()
    torch.testing.assert_close(gradients(staged), gradients(whole), atol=1e-9, rtol=0)
    assert any(gradient.abs().sum() > 0 for gradient in gradients(staged).values())


def test_random_numbers_go_on_afterwards(batch):
    """Two steps in a row must not drop the same units twice."""
    images, labels = batch
    torch.manual_seed(5)
    network = make_network()
    first = large_batch_step(network, images, labels, loss, chunk=7)
    second = large_batch_step(network, images, labels, loss, chunk=7)
    assert first != second


def test_gradients_are_added_and_scaled(batch):
    images, labels = batch
    once, twice = make_network(dropout=0), make_network(dropout=0)
    large_batch_step(once, images, labels, loss, chunk=5, scale=3.0)
    for _ in range(3):
        large_batch_step(twice, images, labels, loss, chunk=5)
    torch.testing.assert_close(gradients(once), gradients(twice))


def test_mixed_precision_and_a_scaler(batch):
    """Under autocast the two passes agree with one, and a GradScaler undoes its own scale."""
    images, labels = batch[0].float(), batch[1]
    staged, whole = (make_network(dropout=0).float() for _ in range(2))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.AdamW(staged.parameters(), lr=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        large_batch_step(staged, images, labels, loss, chunk=7, scale=scaler.scale(torch.ones(())).item())
        expected = loss(whole(images), labels)
    expected.backward()
    scaler.unscale_(optimizer)
    torch.testing.assert_close(gradients(staged), gradients(whole), atol=1e-3, rtol=2e-2)
    assert all(gradient.dtype == torch.float32 for gradient in gradients(staged).values())


def test_batch_statistics_are_refused(batch):
    network = make_network()
    network.train()
    with pytest.raises(ValueError, match=r"BatchNorm layers\.1 uses batch statistics"):
        large_batch_step(network, *batch, loss, chunk=7)


@pytest.mark.parametrize(
    ("images", "labels", "chunk", "message"),
    [
        (torch.ones(0, 5), torch.ones(0), 2, "not empty"),
        (torch.ones(3, 5), torch.ones(2), 2, "3 images, 2 labels"),
        (torch.ones(3, 5), torch.ones(3), 0, "chunk must be at least 1"),
    ],
)
def test_arguments_that_cannot_be(images, labels, chunk, message):
    with pytest.raises(ValueError, match=message):
        large_batch_step(make_network(), images, labels, loss, chunk=chunk)


def one_rank(rank, folder):
    """What each of the two processes of the test below does."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    images, labels = torch.load(folder / "batch.pt", weights_only=True)
    own = slice(0, 9) if rank == 0 else slice(9, 24)  # parts of unequal size
    network = make_network(dropout=0)
    value = large_batch_step(network, images[own], labels[own], loss, chunk=4)
    for parameter in network.parameters():
        dist.all_reduce(parameter.grad)
    torch.save({"value": value, "gradients": gradients(network)}, folder / f"rank-{rank}.pt")
    dist.destroy_process_group()


def test_two_ranks_equal_one_process(batch, tmp_path):
    alone = make_network(dropout=0)
    value = large_batch_step(alone, *batch, loss, chunk=4)
    torch.save(batch, tmp_path / "batch.pt")
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank), str(tmp_path)]) for rank in (0, 1)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    for rank in (0, 1):
        found = torch.load(tmp_path / f"rank-{rank}.pt", weights_only=True)
        torch.testing.assert_close(found["value"], value)
        torch.testing.assert_close(found["gradients"], gradients(alone), atol=1e-9, rtol=0)


if __name__ == "__main__":
    one_rank(int(sys.argv[1]), Path(sys.argv[2]))
