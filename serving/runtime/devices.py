"""Where onnxruntime runs models: on a GPU through TensorRT or CUDA where there is one, else on the CPU."""

import ctypes
from pathlib import Path
from typing import Any

import structlog

from serving.errors import SetupError
from serving.manifest import Manifest

log = structlog.get_logger()

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
CUDA_LIBRARY, TENSORRT_LIBRARY = "libcuda.so.1", "libnvinfer.so.10"
# Ways to convolve are chosen by rule, as trying all of them at each new size takes seconds; and all digits of a number
# are used, so that answers are those of a CPU.
CUDA_OPTIONS = {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"}
Provider = str | tuple[str, dict[str, Any]]


def choose_providers(device: str, available: list[str], engines: Path | None = None) -> list[Provider]:
    """onnxruntime's execution providers for `auto`, `cpu` or `cuda`, best first; logs what was chosen and why.

    onnxruntime-gpu lists its providers whether or not the machine has a driver and TensorRT, so their libraries are
    looked for. Raises a SetupError if `cuda` is asked for and cannot be had.
    """
    if device == "cpu":
        log.info("device chosen", device="cpu", why="READLEAF_DEVICE=cpu")
        return [CPU]
    missing = _missing_for_cuda(available)
    if missing:
        if device == "cuda":
            raise SetupError(
                f"READLEAF_DEVICE=cuda, but {missing}; install the gpu extra and NVIDIA's driver, or set "
                "READLEAF_DEVICE to auto or cpu"
            )
        log.info("device chosen", device="cpu", why=missing)
        return [CPU]
    chosen: list[Provider] = [(CUDA, CUDA_OPTIONS), CPU]
    if engines is not None and TENSORRT in available and is_loadable(TENSORRT_LIBRARY):
        engines.mkdir(parents=True, exist_ok=True)
        # What it compiles takes minutes and is kept; whole precision, so that answers stay the same.
        options = {
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(engines),
            "trt_timing_cache_enable": True,
            "trt_fp16_enable": False,
        }
        chosen.insert(0, (TENSORRT, options))
    log.info("device chosen", device="cuda", providers=[name_of(provider) for provider in chosen])
    return chosen


def providers_for(manifest: Manifest, providers: list[Provider]) -> list[Provider]:
    """Those that suit a model: TensorRT compiles anew for every size of picture, so it gets models of one size only."""
    if all(length > 0 for length in manifest.inputs[0].shape[1:]):
        return providers
    return [provider for provider in providers if name_of(provider) != TENSORRT]


def name_of(provider: Provider) -> str:
    """A provider's name without its options."""
    return provider if isinstance(provider, str) else provider[0]


def is_loadable(library: str) -> bool:
    """Whether this machine has a shared library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _missing_for_cuda(available: list[str]) -> str:
    """What keeps models from running on a GPU; empty if nothing does."""
    if CUDA not in available:
        return f"this onnxruntime offers only {', '.join(available)}"
    if not is_loadable(CUDA_LIBRARY):
        return f"this machine has no NVIDIA driver ({CUDA_LIBRARY} cannot be loaded)"
    return ""
