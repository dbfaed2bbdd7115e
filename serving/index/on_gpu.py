"""Copies of large indexes on a GPU: which FAISS to take is chosen once, when the service starts."""

from collections.abc import Callable
from typing import Any

import faiss
import structlog

log = structlog.get_logger()

Copy = Callable[[Any], Any]  # a FAISS index on the CPU → one that is searched in its place


def choose_copy(device: str) -> Copy | None:
    """How to copy an index to the GPU, for `auto`, `cpu` or `cuda`; None where it is searched on the CPU.

    A GPU that cannot be used is no reason to fail: searching is exact and fast on a CPU, too.
    """
    reason = _why_not(device)
    if reason:
        log.info("index device chosen", device="cpu", why=reason)
        return None
    resources = faiss.StandardGpuResources()
    log.info("index device chosen", device="cuda", gpus=faiss.get_num_gpus())

    def copy(index: Any) -> Any:
        return faiss.index_cpu_to_gpu(resources, 0, index)

    return copy


def _why_not(device: str) -> str:
    if device == "cpu":
        return "READLEAF_DEVICE=cpu"
    if not hasattr(faiss, "StandardGpuResources"):
        return "this FAISS is built for the CPU; the gpu extra has another"
    if not faiss.get_num_gpus():
        return "FAISS finds no GPU"
    return ""
