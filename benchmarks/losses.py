"""Time and memory of the ranking losses, each in a process of its own. Writes losses.md.

    python benchmarks/losses.py [--largest 16384]

Forward and backward, 512 dimensions, 4 images a class. Peers: the recall@k surrogate one query at a time, as it
was released (all differences of a query's similarities) and as one would first improve it (its positives only),
and the Smooth-AP of pytorch-metric-learning.
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
# How large a batch each peer is given: beyond, it would take minutes or more memory than there is.
LARGEST = {"one query at a time, as released": 2048, "one query at a time, positives only": 4096}
LARGEST["pytorch-metric-learning Smooth-AP"] = 512
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
    """All differences of a query's similarities: database × database sigmoids for each query."""
    similarities = embeddings @ embeddings.T
    return _mean_over_queries(similarities, labels, positives_only=False)


def one_query_positives_only(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Positives × database sigmoids for each query."""
    similarities = embeddings @ embeddings.T
    return _mean_over_queries(similarities, labels, positives_only=True)


def _mean_over_queries(similarities: Tensor, labels: Tensor, positives_only: bool) -> Tensor:
    """Each query's graph is walked back at once: kept until the end, they would fill the machine at 2048."""
    count = len(labels)
    leaf = similarities.detach().requires_grad_(True)
    total = 0.0
    for query in range(count):
        others = torch.arange(count) != query
        row = leaf[query][others]
        positive = labels[others] == labels[query]
        items = row[positive] if positives_only else row
        steps = torch.sigmoid((row[None, :] - items[:, None]) / 0.01)
        ranks = 0.5 + steps.sum(dim=1)
        ranks = ranks if positives_only else ranks[positive]
        found = torch.stack([torch.sigmoid(k - ranks).sum().clamp(max=k) / min(k, int(positive.sum())) for k in KS])
        loss = (1 - found).mean() / count
        loss.backward()
        total += loss.item()
    return total + ((similarities - leaf.detach()) * leaf.grad).sum()


def metric_learning_smooth_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    """pytorch-metric-learning's Smooth-AP."""
    from pytorch_metric_learning.losses import SmoothAPLoss

    loss: Tensor = SmoothAPLoss(temperature=0.01)(embeddings, labels)
    return loss


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "**recall_at_k**": ours,
    "**mixed_recall_at_k**": our_mixed,
    "**smooth_ap**": our_smooth_ap,
    "one query at a time, positives only": one_query_positives_only,
    "one query at a time, as released": one_query_at_a_time,
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
            too_large = size > LARGEST.get(name, 6554 if "mixed" in name else sizes[-1])
            if too_large:
                cells.append("–")
                continue
            run = [sys.executable, __file__, "--one", name, str(size)]
            found[name, size] = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
            cells.append("{seconds:.2f} s, {megabytes:.0f} MB".format(**found[name, size]))
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    ratios = [
        found[peer, 2048]["seconds"] / found["**recall_at_k**", 2048]["seconds"]
        for peer in ("one query at a time, as released", "one query at a time, positives only")
    ]
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
            f"At batch 2048 `recall_at_k` is {ratios[0]:.0f} times faster than the released form and",
            f"{ratios[1]:.0f} times faster than that form on positives only.",
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
