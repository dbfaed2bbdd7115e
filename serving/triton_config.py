"""`config.pbtxt`: how Triton serves a model of the repository, all versions side by side."""

from collections.abc import Mapping, Sequence
from typing import Literal

from serving.manifest import Manifest, Tensor

CONFIG_FILE = "config.pbtxt"  # in the folder of a model
Backend = Literal["onnxruntime", "python"]
TYPES = {"uint8": "TYPE_UINT8", "float32": "TYPE_FP32", "int64": "TYPE_INT64"}
MOST_WAITING = 256
LONGEST_WAIT_SECONDS = 10
GATHERING_MICROSECONDS = 2000


def triton_config(
    versions: Mapping[int, Manifest], backend: Backend = "onnxruntime", *, instances: int = 1, tensorrt: bool = False
) -> str:
    """The configuration for these versions of one model.

    With `onnxruntime`, Triton's own backend, instances are on the GPUs if there are some, else on the CPU; `tensorrt`
    compiles models of one input size for the GPU. With `python` they are on the CPU, as the wheel has nothing else.
    """
    manifest = versions[max(versions)]
    alike = all(_signature(each) == _signature(manifest) for each in versions.values())
    parts = [
        f'name: "{manifest.name}"',
        f'backend: "{backend}"',
        f"max_batch_size: {min(each.max_batch for each in versions.values())}",
    ]
    if alike or backend == "python":
        parts += [
            _tensors("input", _widest([each.inputs for each in versions.values()])),
            _tensors("output", _widest([each.outputs for each in versions.values()])),
        ]  # else Triton takes them from each version's own graph, as one configuration cannot name them all
    parts += [
        "version_policy: { all: { } }",
        _batching(),
        f"instance_group [ {{ count: {instances} kind: {'KIND_AUTO' if backend == 'onnxruntime' else 'KIND_CPU'} }} ]",
    ]
    if backend == "onnxruntime":
        parts += [*([_warm_up(manifest)] if alike else []), *_threads(), _convolutions()]
        if tensorrt and all(length > 0 for each in versions.values() for length in each.inputs[0].shape[1:]):
            parts.append(_tensorrt())
    parts += [_parameter(sha256_key(version), each.sha256) for version, each in sorted(versions.items())]
    return "\n".join(parts) + "\n"


def _signature(manifest: Manifest) -> tuple[list[Tensor], list[Tensor]]:
    return manifest.inputs, manifest.outputs


def _widest(versions: Sequence[list[Tensor]]) -> list[Tensor]:
    """Tensors that fit all versions: a length in which they differ is any."""

    def fit(tensors: tuple[Tensor, ...]) -> Tensor:
        lengths = zip(*(tensor.shape for tensor in tensors), strict=True)
        return tensors[-1].model_copy(update={"shape": [each[0] if len({*each}) == 1 else -1 for each in lengths]})

    return [fit(tensors) for tensors in zip(*versions, strict=True)]


def sha256_key(version: int) -> str:
    """The parameter that says which graph a version is: names and shapes of another one may be the same."""
    return f"sha256_{version}"


def _tensors(kind: str, tensors: list[Tensor]) -> str:
    entries = ",\n".join(
        f'  {{ name: "{tensor.name}" data_type: {TYPES[tensor.dtype]} '
        f"dims: [ {', '.join(map(str, tensor.shape[1:]))} ] }}"
        for tensor in tensors
    )
    return f"{kind} [\n{entries}\n]"


def _batching() -> str:
    """Inputs of one shape are gathered for two milliseconds; a full queue and a long wait are refused, not borne."""
    return f"""dynamic_batching {{
  max_queue_delay_microseconds: {GATHERING_MICROSECONDS}
  default_queue_policy {{
    timeout_action: REJECT
    default_timeout_microseconds: {LONGEST_WAIT_SECONDS * 1_000_000}
    allow_timeout_override: true
    max_queue_size: {MOST_WAITING}
  }}
}}"""


def _warm_up(manifest: Manifest) -> str:
    dims = ", ".join(map(str, manifest.example_shape))
    [tensor] = manifest.inputs
    return f"""model_warmup [
  {{
    name: "one picture"
    batch_size: 1
    inputs {{
      key: "{tensor.name}"
      value: {{ data_type: {TYPES[tensor.dtype]} dims: [ {dims} ] random_data: true }}
    }}
  }}
]"""


def _threads() -> list[str]:
    """On a CPU one thread an instance, as in process: more pictures a second than one run over all cores."""
    return [_parameter("intra_op_thread_count", "1"), _parameter("inter_op_thread_count", "1")]


def _convolutions() -> str:
    """On a GPU, ways to convolve are chosen by rule: trying all of them at each new size of picture takes seconds."""
    return _parameter("cudnn_conv_algo_search", "1")


def _tensorrt() -> str:
    """Whole precision, so that answers stay the same; what was compiled is kept, as it takes minutes."""
    options = {"precision_mode": "FP32", "trt_engine_cache_enable": "true", "trt_engine_cache_path": "/tmp/tensorrt"}
    given = "\n".join(f'        parameters {{ key: "{key}" value: "{value}" }}' for key, value in options.items())
    return f"""optimization {{
  execution_accelerators {{
    gpu_execution_accelerator [
      {{
        name: "tensorrt"
{given}
      }}
    ]
  }}
}}"""


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}'
