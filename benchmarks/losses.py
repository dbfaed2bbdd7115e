"""Time and memory of the ranking losses, each in a process of its own. Writes losses.md.

    python benchmarks/losses.py [--largest 16384]

Forward and backward, 512 dimensions, 4 images a class. Peers: the recall@k surrogate one query at a time, as its
authors released it (but with the query out of its own ranking, as in the equation), and the Smooth-AP of
pytorch-metric-learning.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

SIZES = (512, 2048, 4096, 8192, 16384)
# How large a batch these are given: the library's memory grows with batch³, the others' time is what stops them.
LARGEST = {"one query at a time": 8192, "pytorch-metric-learning Smooth-AP": 512, "**mixed_recall_at_k**": 4096}
KS = (1, 2, 4, 8, 16)


def ours(embeddings: Tensor, labels: Tensor) -> Tensor:
    """`recall_at_k`."""
    from training.losses import recall_at_k

    return recall_at_k(embeddings, labels)


def our_smooth_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    """`smooth_ap`."""
    from training.losses import smooth_ap

    return smooth_ap(embeddings, labels)


def our_mixed(embeddings: Tensor, labels: Tensor) -> Tensor:
    """`mixed_recall_at_k` with every pair of positives: 2.5 times as many rows."""
    from training.losses import mixed_recall_at_k, positive_pairs

    pairs = positive_pairs(labels)
    return mixed_recall_at_k(embeddings, labels, pairs, torch.rand(len(pairs)))


def one_query_at_a_time(embeddings: Tensor, labels: Tensor) -> Tensor:
    """The authors' form, written plainly: a query's similarities, its positives × database sigmoids, and on.

    Each query is walked back at once, so that no more than one query's sigmoids are kept.
    """
    leaf = embeddings.detach().requires_grad_(True)
    count = len(labels)
    total = 0.0
    for query in range(count):
        others = torch.arange(count) != query
        row = (leaf @ leaf[query])[others]
        positive = labels[others] == labels[query]
        steps = torch.sigmoid((row[None, :] - row[positive][:, None]) / 0.01)
        ranks = 0.5 + steps.sum(dim=1)
        found = torch.stack([torch.sigmoid(k - ranks).sum().clamp(max=k) / min(k, int(positive.sum())) for k in KS])
        loss = (1 - found).mean() / count
        loss.backward()
        total += loss.item()
    return total + ((embeddings - leaf.detach()) * leaf.grad).sum()


def metric_learning_smooth_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    """pytorch-metric-learning's Smooth-AP."""
    from pytorch_metric_learning.losses import SmoothAPLoss

    loss: Tensor = SmoothAPLoss(temperature=0.01)(embeddings, labels)
    return loss


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "**recall_at_k**": ours,
    "**mixed_recall_at_k**": our_mixed,
    "**smooth_ap**": our_smooth_ap,
    "one query at a time": one_query_at_a_time,
    "pytorch-metric-learning Smooth-AP": metric_learning_smooth_ap,
}


def measure(name: str, size: int) -> dict[str, float]:
    """Seconds of forward and backward (the better of two at 512) and the memory they added, in megabytes."""
    torch.manual_seed(0)
    embeddings = F.normalize(torch.randn(size, 512), dim=1).requires_grad_(True)
    labels = torch.arange(size) // 4
    small = F.normalize(torch.randn(16, 512), dim=1).requires_grad_(True)
    LOSSES[name](small, labels[:16]).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(2 if size <= 512 else 1):
        started = time.perf_counter()
        loss = LOSSES[name](embeddings, labels)
        loss.backward()
        seconds.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": min(seconds), "megabytes": (after - before) / 1024, "peak": after / 1024, "loss": loss.item()}


def main() -> None:
    """Run every loss at every size it can do and write the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--largest", type=int, default=16384)
    options.add_argument("--one", nargs=2, metavar=("NAME", "SIZE"), help="measure one and print JSON")
    arguments = options.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    sizes = [size for size in SIZES if size <= arguments.largest]
    rows, found = [], {}
    for name in LOSSES:
        cells = []
        for size in sizes:
            too_large = size > LARGEST.get(name, sizes[-1])
            if too_large:
                cells.append("–")
                continue
            run = [sys.executable, __file__, "--one", name, str(size)]
            found[name, size] = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
            cells.append("{seconds:.2f} s, {megabytes:.0f} MB".format(**found[name, size]))
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    ratio = found["one query at a time", 2048]["seconds"] / found["**recall_at_k**", 2048]["seconds"]
    apart = abs(found["one query at a time", 2048]["loss"] - found["**recall_at_k**", 2048]["loss"])
    largest = found["**recall_at_k**", sizes[-1]]
    table = "\n".join(
        [
            "# Ranking losses: time and memory",
            "",
            f"`make bench` on {os.cpu_count()} cores: forward and backward, 512 dimensions, 4 images a class;",
            "memory is what the process grew by.",
            "",
            "| | " + " | ".join(f"batch {size}" for size in sizes) + " |",
            "|---|" + "---|" * len(sizes),
            *rows,
            "",
            f"At batch 2048 `recall_at_k` is {ratio:.0f} times faster than one query at a time, which is how the",
            f"authors released it; the two losses differ by {apart:.0e}.",
            f"At {sizes[-1]} the whole process peaks at {largest['peak']:.0f} MB.",
            "",
            "Time grows with batch² × positives, memory with batch² (the similarities and their gradient).",
            "",
        ]
    )
    Path(__file__).with_suffix(".md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
