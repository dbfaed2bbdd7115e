import shutil

import numpy as np
import pytest

from serving.errors import DeadlineExceeded, ManifestInvalid, ModelRefused, RequestAbandoned, SetupError
from serving.metrics import Metrics
from serving.repository import StoredModel, load_repository
from serving.runtime.devices import CPU
from serving.runtime.in_process import InProcessRuntime
from serving.runtime.probe import probe_picture
from serving.settings import Settings
from serving.timing import Timings

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture(scope="module")
def models():
    """The shipped models."""
    return load_repository(SHIPPED)


def test_any_batch_and_counted(models):
    metrics = Metrics()
    runtime = InProcessRuntime("cpu", metrics)
    network = runtime.load(models["embedder"])
    manifest = models["embedder"].manifest
    assert network.place == f"onnx ({CPU})"
    assert runtime.trouble() is None
    for batch in (1, 3, manifest.max_batch):
        pixels = np.repeat(probe_picture(manifest.example_shape)[None], batch, axis=0)
        assert network.run({"images": pixels})["embeddings"].shape == (batch, manifest.dim)
    labels = {"model": "embedder", "runtime": "onnx"}
    count = metrics.registry.get_sample_value("readleaf_inference_seconds_count", labels)
    assert count == 5  # the probe is two runs: of a picture alone, and beside another
    pictures = metrics.registry.get_sample_value("readleaf_inference_batch_size_sum", labels)
    assert pictures == 1 + 2 + 1 + 3 + manifest.max_batch
    runtime.close()


@pytest.mark.parametrize("name", ["embedder", "classifier", "detector", "recognizer"])
def test_shipped_models_answer_as_at_their_export(models, name):
    assert models[name].manifest.probe is not None
    InProcessRuntime("cpu", Metrics()).load(models[name])


def test_a_run_that_is_alone_gives_the_same(models):
    """It is spread over all cores, unless another run is under way: of any model."""
    runtime = InProcessRuntime("cpu", Metrics())
    network, other = runtime.load(models["recognizer"]), runtime.load(models["embedder"])
    pixels = np.random.default_rng(0).integers(0, 256, (2, 48, 160, 3), dtype=np.uint8)
    usual, alone = (network.run({"images": pixels}, alone=alone) for alone in (False, True))
    np.testing.assert_allclose(usual["probabilities"], alone["probabilities"], atol=1e-5)
    with network._chosen(alone=True) as first, network._chosen(alone=True) as second:
        assert first is not second
    with network._chosen(alone=True) as third:
        assert third is first
    with other._chosen(alone=False), network._chosen(alone=True) as fourth:
        assert fourth is second


def test_two_versions_side_by_side(models):
    """A request that began before a switch goes on with the network it has."""
    runtime = InProcessRuntime("cpu", Metrics())
    old, new = runtime.load(models["embedder"]), runtime.load(models["embedder"])
    pixels = probe_picture(models["embedder"].manifest.example_shape)[None]
    np.testing.assert_array_equal(old.run({"images": pixels})["embeddings"], new.run({"images": pixels})["embeddings"])


def test_nothing_is_run_for_nobody(models):
    metrics = Metrics()
    network = InProcessRuntime("cpu", metrics).load(models["embedder"])
    pixels = probe_picture(models["embedder"].manifest.example_shape)[None]
    gone = Timings()
    gone.abandon()
    with pytest.raises(RequestAbandoned):
        network.run({"images": pixels}, gone)
    with pytest.raises(DeadlineExceeded):
        network.run({"images": pixels}, Timings(0))
    assert network.run({"images": pixels}, Timings(60))["embeddings"].shape == (1, 512)
    labels = {"model": "embedder", "runtime": "onnx"}
    assert metrics.registry.get_sample_value("readleaf_inference_seconds_count", labels) == 2 + 1  # probed, and run


def test_a_run_that_fails_is_counted(models):
    metrics = Metrics()
    network = InProcessRuntime("cpu", metrics).load(models["embedder"])
    with pytest.raises(Exception, match="Got invalid dimensions") as failure:
        network.run({"images": np.zeros((1, 7, 7, 3), np.uint8)})
    labels = {"model": "embedder", "runtime": "onnx", "error": type(failure.value).__name__}
    assert metrics.registry.get_sample_value("readleaf_inference_errors_total", labels) == 1
    assert not network._running.count  # the next one may be alone


def test_a_manifest_that_is_not_the_graphs(models):
    model = models["embedder"]
    renamed = [tensor.model_copy(update={"name": "pictures"}) for tensor in model.manifest.inputs]
    wrong = StoredModel(model.manifest.model_copy(update={"inputs": renamed}), model.folder)
    with pytest.raises(ManifestInvalid, match=r"the manifest's inputs are .*pictures.*the graph's are .*images"):
        InProcessRuntime("cpu", Metrics()).load(wrong)


def test_answers_that_are_not_those_of_the_export(models):
    model = models["embedder"]
    other = model.manifest.probe.model_copy(update={"answers": [0.5] * 64})
    wrong = StoredModel(model.manifest.model_copy(update={"probe": other}), model.folder)
    with pytest.raises(
        ModelRefused, match="embedder version 1: what runs it here answers otherwise than at its export"
    ):
        InProcessRuntime("cpu", Metrics()).load(wrong)


def test_a_graph_that_cannot_be_run(models):
    model = models["embedder"]
    other = model.manifest.probe.model_copy(update={"shape": [7, 7, 3]})
    wrong = StoredModel(model.manifest.model_copy(update={"probe": other}), model.folder)
    with pytest.raises(ModelRefused, match="embedder: its graph cannot be run"):
        InProcessRuntime("cpu", Metrics()).load(wrong)


def test_a_file_that_is_no_graph(models, tmp_path):
    shutil.copy(SHIPPED / "embedder/1/manifest.json", tmp_path / "model.onnx")
    with pytest.raises(SetupError, match="embedder: onnxruntime cannot load"):
        InProcessRuntime("cpu", Metrics()).load(StoredModel(models["embedder"].manifest, tmp_path))


def test_a_device_that_is_not_there():
    with pytest.raises(SetupError, match="READLEAF_DEVICE=cuda, but"):
        InProcessRuntime("cuda", Metrics())
