"""Batches larger than memory: back-propagation of any loss on embeddings, in stages (thesis, chapter 5).

1. Embed everything in chunks, without a graph.
2. The loss and its gradient with respect to the embeddings alone.
3. Embed each chunk again, now with a graph, and back-propagate its part of the stored gradient.

The gradients equal those of one pass over the whole batch; memory is that of one chunk. Each chunk is embedded
with the same random state both times, so dropout and random augmentation inside the network agree. A network in
training mode whose BatchNorm uses batch statistics would see chunks in place of the batch: it is refused.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]


def large_batch_step(
    network: nn.Module, images: Tensor, labels: Tensor, loss: Loss, *, chunk: int, scale: float = 1.0
) -> Tensor:
    """Add the gradient of `loss(network(images), labels)` to the parameters; returns the loss, detached.

    images [N, …], labels [N]. `scale` multiplies the gradient, for a GradScaler. Under torch.distributed every
    rank brings its own part of the batch (parts may differ in size): embeddings and labels are gathered, the loss
    is over all of them, and the gradients of all ranks *add up* to those of one process with the whole batch.
    """
    if len(images) == 0 or len(labels) != len(images):
        raise ValueError(f"images and labels must be as many and not empty: {len(images)} images, {len(labels)} labels")
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, not {chunk}")
    check_frozen_statistics(network)
    chunks = images.split(chunk)
    states = []
    parts = []
    with torch.no_grad():
        for part in chunks:
            states.append(_random_state(part.device))
            parts.append(network(part))
    own = torch.cat(parts)
    everything, everyone, start = _gather(own, labels)
    everything.requires_grad_(True)
    value = loss(everything, everyone)
    (gradient,) = torch.autograd.grad(value, everything)
    mine = gradient[start : start + len(own)] * scale
    after = _random_state(images.device)
    for part, state, slopes in zip(chunks, states, mine.split(chunk), strict=True):
        _set_random_state(state, part.device)
        network(part).backward(slopes)
    _set_random_state(after, images.device)
    return value.detach()


def check_frozen_statistics(network: nn.Module) -> None:
    """Refuse BatchNorm that learns its statistics from the batch: set such layers to eval first."""
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise ValueError(f"BatchNorm {name or 'network'} uses batch statistics; call .eval() on it first")


def _gather(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, int]:
    """Embeddings and labels of all ranks, and where this rank's begin."""
    if not (dist.is_available() and dist.is_initialized()):
        return embeddings.clone(), labels, 0
    sizes = [torch.zeros(1, dtype=torch.int64, device=labels.device) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(labels)], device=labels.device))
    counts = [int(size) for size in sizes]
    start = sum(counts[: dist.get_rank()])
    return _gather_rows(embeddings, counts), _gather_rows(labels, counts), start


def _gather_rows(rows: Tensor, counts: list[int]) -> Tensor:
    """Rows of all ranks; every rank sends as many as the largest one, the filling is cut off again."""
    padded = rows.new_zeros((max(counts), *rows.shape[1:]))
    padded[: len(rows)] = rows
    received = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(received, padded)
    return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)
