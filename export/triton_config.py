"""`config.pbtxt`: how Triton serves a model of the repository."""

from serving.manifest import Manifest, Tensor

TYPES = {"uint8": "TYPE_UINT8", "float32": "TYPE_FP32", "int64": "TYPE_INT64"}


def triton_config(manifest: Manifest) -> str:
    """The configuration that belongs to the manifest; batches are gathered for at most two milliseconds."""
    return f"""name: "{manifest.name}"
backend: "onnxruntime"
max_batch_size: {manifest.max_batch}
{_tensors("input", manifest.inputs)}
{_tensors("output", manifest.outputs)}
version_policy: {{ specific: {{ versions: [ {manifest.version} ] }} }}
dynamic_batching {{
  max_queue_delay_microseconds: 2000
  default_queue_policy {{ max_queue_size: 256 default_timeout_microseconds: 10000000 }}
}}
"""


def _tensors(kind: str, tensors: list[Tensor]) -> str:
    entries = ",\n".join(
        f'  {{ name: "{tensor.name}" data_type: {TYPES[tensor.dtype]} '
        f"dims: [ {', '.join(map(str, tensor.shape[1:]))} ] }}"
        for tensor in tensors
    )
    return f"{kind} [\n{entries}\n]"
