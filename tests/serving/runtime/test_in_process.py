import shutil

import numpy as np
import pytest

from serving.errors import ManifestInvalid, SetupError
from serving.metrics import Metrics
from serving.repository import StoredModel, load_repository
from serving.runtime.in_process import InProcessRuntime, choose_providers, warm_up_inputs
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default
CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"


@pytest.mark.parametrize(
    ("device", "available", "chosen"),
    [
        ("auto", [CPU], [CPU]),
        ("auto", [CPU, CUDA], [CUDA, CPU]),
        ("auto", [CPU, CUDA, TENSORRT], [TENSORRT, CUDA, CPU]),
        ("cpu", [CPU, CUDA], [CPU]),
        ("cuda", [CPU, CUDA], [CUDA, CPU]),
    ],
)
def test_providers(device, available, chosen):
    assert choose_providers(device, available) == chosen


def test_cuda_that_is_not_there():
    with pytest.raises(SetupError, match="offers only CPUExecutionProvider; install the gpu extra"):
        choose_providers("cuda", [CPU])


def test_any_batch_and_counted():
    models = load_repository(SHIPPED)
    metrics = Metrics()
    runtime = InProcessRuntime(models, "cpu", metrics)
    manifest = models["embedder"].manifest
    assert runtime.describe("embedder") == f"onnx ({CPU})"
    for batch in (1, 3, manifest.max_batch):
        pixels = np.repeat(warm_up_inputs(manifest)["images"], batch, axis=0)
        assert runtime.run("embedder", {"images": pixels})["embeddings"].shape == (batch, manifest.dim)
    count = metrics.registry.get_sample_value("readleaf_inference_seconds_count", {"model": "embedder"})
    assert count == 4  # the warm-up is a run too


def test_a_run_that_is_alone_gives_the_same():
    """It is spread over all cores, unless another run is under way."""
    models = load_repository(SHIPPED)
    runtime = InProcessRuntime({"recognizer": models["recognizer"]}, "cpu", Metrics())
    pixels = np.random.default_rng(0).integers(0, 256, (2, 48, 160, 3), dtype=np.uint8)
    usual, alone = (runtime.run("recognizer", {"images": pixels}, alone=alone) for alone in (False, True))
    np.testing.assert_allclose(usual["probabilities"], alone["probabilities"], atol=1e-5)
    with runtime._session("recognizer", alone=True) as first, runtime._session("recognizer", alone=True) as second:
        assert first is not second
    with runtime._session("recognizer", alone=True) as third:
        assert third is first


def test_a_manifest_that_is_not_the_graphs():
    model = load_repository(SHIPPED)["embedder"]
    renamed = [tensor.model_copy(update={"name": "pictures"}) for tensor in model.manifest.inputs]
    wrong = StoredModel(model.manifest.model_copy(update={"inputs": renamed}), model.folder)
    with pytest.raises(ManifestInvalid, match=r"the manifest's inputs are .*pictures.*the graph's are .*images"):
        InProcessRuntime({"embedder": wrong}, "cpu", Metrics())


def test_a_file_that_is_no_graph(tmp_path):
    model = load_repository(SHIPPED)["embedder"]
    (tmp_path / "1").mkdir()
    shutil.copy(SHIPPED / "embedder/manifest.json", tmp_path / "1/model.onnx")
    with pytest.raises(SetupError, match="embedder: onnxruntime cannot load"):
        InProcessRuntime({"embedder": StoredModel(model.manifest, tmp_path)}, "cpu", Metrics())
