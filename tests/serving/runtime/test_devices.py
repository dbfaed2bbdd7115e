"""Which of onnxruntime's providers are used; no GPU is needed to know."""

import pytest

from serving.errors import SetupError
from serving.repository import load_repository
from serving.runtime import devices
from serving.runtime.devices import (
    CPU,
    CUDA,
    CUDA_LIBRARY,
    CUDA_OPTIONS,
    TENSORRT,
    TENSORRT_LIBRARY,
    choose_providers,
    is_loadable,
    name_of,
    providers_for,
)
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default
ALL = [TENSORRT, CUDA, CPU]


@pytest.fixture
def machine(monkeypatch):
    """`machine(CUDA_LIBRARY)`: one that has these libraries and no others."""

    def has(*libraries):
        monkeypatch.setattr(devices, "is_loadable", lambda library: library in libraries)

    return has


@pytest.mark.parametrize(
    ("device", "available", "chosen"),
    [
        ("auto", [CPU], [CPU]),
        ("auto", [CPU, CUDA], [(CUDA, CUDA_OPTIONS), CPU]),
        ("auto", ALL, [(CUDA, CUDA_OPTIONS), CPU]),  # there is no folder for what TensorRT compiles
        ("cpu", [CPU, CUDA], [CPU]),
        ("cuda", [CPU, CUDA], [(CUDA, CUDA_OPTIONS), CPU]),
    ],
)
def test_providers(machine, device, available, chosen):
    machine(CUDA_LIBRARY, TENSORRT_LIBRARY)
    assert choose_providers(device, available) == chosen


def test_answers_of_cuda_are_those_of_a_cpu():
    assert CUDA_OPTIONS["use_tf32"] == "0"


def test_tensorrt_keeps_what_it_compiled(machine, tmp_path):
    machine(CUDA_LIBRARY, TENSORRT_LIBRARY)
    chosen = choose_providers("auto", ALL, tmp_path / "engines")
    assert [name_of(provider) for provider in chosen] == ALL
    name, options = chosen[0]
    assert name == TENSORRT
    assert options["trt_engine_cache_enable"]
    assert options["trt_engine_cache_path"] == str(tmp_path / "engines")
    assert not options["trt_fp16_enable"]  # answers are those of a CPU
    assert (tmp_path / "engines").is_dir()


@pytest.mark.parametrize(
    ("available", "libraries", "device", "names"),
    [
        (ALL, [CUDA_LIBRARY], "auto", [CUDA, CPU]),
        ([CUDA, CPU], [CUDA_LIBRARY, TENSORRT_LIBRARY], "auto", [CUDA, CPU]),
        (ALL, [TENSORRT_LIBRARY], "auto", [CPU]),
        (ALL, [CUDA_LIBRARY, TENSORRT_LIBRARY], "cpu", [CPU]),
    ],
)
def test_what_is_listed_but_not_there_is_not_used(machine, tmp_path, available, libraries, device, names):
    machine(*libraries)
    assert [name_of(provider) for provider in choose_providers(device, available, tmp_path / "engines")] == names
    assert not (tmp_path / "engines").exists()


def test_cuda_that_is_not_there(machine):
    with pytest.raises(SetupError, match="offers only CPUExecutionProvider; install the gpu extra"):
        choose_providers("cuda", [CPU])
    machine()
    with pytest.raises(
        SetupError, match=r"no NVIDIA driver \(libcuda\.so\.1 cannot be loaded\); install the gpu extra"
    ):
        choose_providers("cuda", [CPU, CUDA])


def test_tensorrt_only_for_models_of_one_size():
    models, tensorrt = load_repository(SHIPPED), (TENSORRT, {"trt_fp16_enable": False})
    chosen = [tensorrt, (CUDA, CUDA_OPTIONS), CPU]
    for name in ("embedder", "classifier"):
        assert providers_for(models[name].manifest, chosen) == chosen
    for name in ("detector", "recognizer"):
        assert providers_for(models[name].manifest, chosen) == chosen[1:]
        assert providers_for(models[name].manifest, [CPU]) == [CPU]


def test_a_library_is_looked_for():
    assert is_loadable("libc.so.6")
    assert not is_loadable("libnowhere.so.7")
