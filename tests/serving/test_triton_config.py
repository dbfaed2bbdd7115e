"""What Triton is told of the models; whether it understands is tested with a real one."""

import re

import pytest

from serving.manifest import Tensor, read_manifest
from serving.settings import Settings
from serving.triton_config import TYPES, triton_config

SHIPPED = Settings.model_fields["models_dir"].default
NAMES = ["classifier", "detector", "embedder", "recognizer"]


@pytest.fixture(scope="module")
def embedder():
    return read_manifest(SHIPPED / "embedder/1")


def next_version(manifest, **changes):
    return manifest.model_copy(update={"version": manifest.version + 1, "sha256": "f" * 64, **changes})


def smaller(manifest):
    """The next version takes smaller pictures, and answers with shorter vectors."""
    [taken], [given] = manifest.inputs, manifest.outputs
    return next_version(
        manifest,
        inputs=[taken.model_copy(update={"shape": [-1, 160, 224, 3]})],
        outputs=[given.model_copy(update={"shape": [-1, 256]})],
        max_batch=16,
    )


def parameters(text):
    return dict(re.findall(r'^parameters \{ key: "(\w+)" value: \{ string_value: "(\w+)" \} \}$', text, re.MULTILINE))


def tensors(text):
    """Name, type and lengths of all inputs and outputs, in order."""
    found = re.findall(r'^  \{ name: "(\w+)" data_type: (\w+) dims: \[ (.*) \] \},?$', text, re.MULTILINE)
    return [(name, kind, [int(length) for length in dims.split(", ")]) for name, kind, dims in found]


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_configs_belong_to_their_manifests(name):
    manifest = read_manifest(SHIPPED / name / "1")
    text = triton_config({1: manifest})
    assert (SHIPPED / name / "config.pbtxt").read_text() == text
    assert [*manifest.inputs, *manifest.outputs] == [
        Tensor(name=name, dtype=next(dtype for dtype, known in TYPES.items() if known == kind), shape=[-1, *lengths])
        for name, kind, lengths in tensors(text)
    ]


def test_onnxruntime(embedder):
    text = triton_config({1: embedder})
    assert text.startswith('name: "embedder"\nbackend: "onnxruntime"\nmax_batch_size: 64\n')
    assert 'name: "images" data_type: TYPE_UINT8 dims: [ 224, 224, 3 ]' in text
    assert 'name: "embeddings" data_type: TYPE_FP32 dims: [ 512 ]' in text
    assert "version_policy: { all: { } }" in text
    assert "instance_group [ { count: 1 kind: KIND_AUTO } ]" in text
    assert "TYPE_UINT8 dims: [ 224, 224, 3 ] random_data: true" in text  # the first picture does not wait for a warm-up
    assert parameters(text) == {
        "intra_op_thread_count": "1",
        "inter_op_thread_count": "1",
        "cudnn_conv_algo_search": "1",
        "sha256_1": embedder.sha256,
    }


def test_python(embedder):
    text = triton_config({1: embedder}, "python", instances=3)
    assert text.startswith('name: "embedder"\nbackend: "python"\nmax_batch_size: 64\n')
    assert tensors(text) == tensors(triton_config({1: embedder}))
    assert "instance_group [ { count: 3 kind: KIND_CPU } ]" in text
    assert parameters(text) == {"sha256_1": embedder.sha256}  # all else is for onnxruntime's backend
    assert "model_warmup" not in text


@pytest.mark.parametrize("backend", ["onnxruntime", "python"])
def test_nobody_waits_for_ever(embedder, backend):
    """Triton's queue is endless unless it is told."""
    text = triton_config({1: embedder}, backend)
    for line in (
        "max_queue_size: 256",
        "timeout_action: REJECT",
        "default_timeout_microseconds: 10000000",
        "allow_timeout_override: true",
    ):
        assert line in text


@pytest.mark.parametrize("backend", ["onnxruntime", "python"])
def test_versions_that_are_alike(embedder, backend):
    text = triton_config({2: next_version(embedder, max_batch=32), 1: embedder}, backend)
    assert tensors(text) == tensors(triton_config({1: embedder}, backend))
    assert "max_batch_size: 32" in text  # what all of them take
    assert "version_policy: { all: { } }" in text
    known = parameters(text)
    assert (known["sha256_1"], known["sha256_2"]) == (embedder.sha256, "f" * 64)
    assert ("model_warmup" in text) == (backend == "onnxruntime")


def test_versions_that_differ_in_shape(embedder):
    """No configuration can name the tensors of both, so Triton takes those of each graph."""
    text = triton_config({1: embedder, 2: smaller(embedder)})
    assert tensors(text) == []
    assert not re.search(r"^(input|output)", text, re.MULTILINE)
    assert "model_warmup" not in text
    assert "max_batch_size: 16" in text
    assert {"sha256_1", "sha256_2"} < parameters(text).keys()


def test_versions_that_differ_in_shape_with_python(embedder):
    """It must be told, so lengths in which they differ are any."""
    text = triton_config({1: embedder, 2: smaller(embedder)}, "python")
    assert tensors(text) == [("images", "TYPE_UINT8", [-1, 224, 3]), ("embeddings", "TYPE_FP32", [-1])]
    assert "max_batch_size: 16" in text


@pytest.mark.parametrize("name", NAMES)
def test_tensorrt_only_for_models_of_one_size(name):
    """It compiles anew for every size of picture, which takes minutes."""
    text = triton_config({1: read_manifest(SHIPPED / name / "1")}, tensorrt=True)
    assert ('name: "tensorrt"' in text) == (name in ("classifier", "embedder"))


def test_tensorrt_is_wanted_and_whole(embedder):
    assert "tensorrt" not in triton_config({1: embedder})
    assert "tensorrt" not in triton_config({1: embedder}, "python", tensorrt=True)  # it runs on the CPU
    text = triton_config({1: embedder}, tensorrt=True)
    assert 'parameters { key: "precision_mode" value: "FP32" }' in text
    assert 'parameters { key: "trt_engine_cache_enable" value: "true" }' in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["onnxruntime", "python"])
def test_brackets_are_closed(name, backend):
    text = triton_config({1: read_manifest(SHIPPED / name / "1")}, backend, tensorrt=True)
    open_ones = []
    for sign in re.sub(r'"[^"]*"', "", text):
        if sign in "{[":
            open_ones.append({"{": "}", "[": "]"}[sign])
        elif sign in "}]":
            assert sign == open_ones.pop()
    assert not open_ones
