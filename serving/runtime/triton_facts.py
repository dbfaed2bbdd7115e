"""What a Triton says of its models: compared with our manifests, and its own figures."""

import tritonclient.grpc as grpc
from tritonclient.utils import InferenceServerException

from serving.errors import TritonUnusable
from serving.manifest import Manifest
from serving.metrics import ModelServerStatistics
from serving.triton_config import sha256_key

TYPES = {"uint8": "UINT8", "float32": "FP32", "int64": "INT64"}
CHECK_SECONDS = 2.0  # for questions that are no inference


def compare_with_manifest(client: grpc.InferenceServerClient, url: str, manifest: Manifest) -> None:
    """Raise TritonUnusable if Triton's model of this name and version is another one."""
    where = f"Triton at {url}: {manifest.name} version {manifest.version}"
    version = str(manifest.version)
    try:
        found = client.get_model_metadata(manifest.name, version, client_timeout=CHECK_SECONDS)
        config = client.get_model_config(manifest.name, version, client_timeout=CHECK_SECONDS).config
    except InferenceServerException as error:
        raise TritonUnusable(f"{where} cannot be looked at ({sentence_of(error)})") from error
    for kind, wanted, actual in (
        ("inputs", manifest.inputs, found.inputs),
        ("outputs", manifest.outputs, found.outputs),
    ):
        promised = sorted((tensor.name, TYPES[tensor.dtype], tensor.shape) for tensor in wanted)
        served = sorted((tensor.name, tensor.datatype, list(tensor.shape)) for tensor in actual)
        if len(promised) != len(served) or not all(map(_fits, promised, served)):
            raise TritonUnusable(f"{where} has the {kind} {served}, its manifest says {promised}")
    sha256 = config.parameters[sha256_key(manifest.version)].string_value or manifest.sha256
    if sha256 != manifest.sha256:
        raise TritonUnusable(
            f"{where} is another graph: sha256 {sha256[:12]}…, and {manifest.sha256[:12]}… in the manifest; "
            "give both the same model repository"
        )


def read_statistics(client: grpc.InferenceServerClient) -> list[ModelServerStatistics.Row]:
    """Time, failures and images in a run, by model and version; nothing if Triton does not say."""
    try:
        found = client.get_inference_statistics(client_timeout=CHECK_SECONDS).model_stats
    except InferenceServerException:
        return []
    return [
        ModelServerStatistics.Row(
            model=each.name,
            version=each.version,
            queue_seconds=each.inference_stats.queue.ns / 1e9,
            compute_seconds=each.inference_stats.compute_infer.ns / 1e9,
            failures=each.inference_stats.fail.count,
            runs={int(batch.batch_size): int(batch.compute_infer.count) for batch in each.batch_stats},
        )
        for each in found
    ]


def sentence_of(error: InferenceServerException) -> str:
    """Its message in one line."""
    return str(error.message() or error).splitlines()[0][:300]


def _fits(promised: tuple[str, str, list[int]], served: tuple[str, str, list[int]]) -> bool:
    """Whether a served tensor is the promised one; a length of -1 is any, for versions that differ in it."""
    (name, kind, wanted), (found_name, found_kind, found) = promised, served
    alike = len(wanted) == len(found) and all(own in (length, -1) for length, own in zip(wanted, found, strict=True))
    return (name, kind) == (found_name, found_kind) and alike
