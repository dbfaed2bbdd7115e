"""Which runtime a service uses; each needs packages of its own, so only the chosen one is imported."""

from serving.errors import SetupError
from serving.metrics import Metrics
from serving.runtime import Runtime
from serving.settings import Settings


def open_runtime(settings: Settings, metrics: Metrics) -> Runtime:
    """The runtime that the settings name; raises a SetupError if it cannot be had."""
    try:
        if settings.runtime == "triton":
            from serving.runtime.over_triton import TritonRuntime

            return TritonRuntime(settings.triton_url, settings.triton_timeout, metrics)
        from serving.runtime.in_process import InProcessRuntime

        return InProcessRuntime(settings.device, metrics, settings.data_dir / "tensorrt")
    except ImportError as error:
        extra = "triton" if settings.runtime == "triton" else "cpu` or `gpu"
        raise SetupError(
            f"READLEAF_RUNTIME={settings.runtime} needs the package {error.name}; install the extra `{extra}`"
        ) from error
