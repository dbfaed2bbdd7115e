"""The command, as a user types it."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from training.evaluate_embedder import EmbedderFigures
from training.models.embedder import load_embedder, save_embedder

ROOT = Path(__file__).parents[1]


def readleaf(*arguments, **environment):
    import os

    clean = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    return subprocess.run(
        [sys.executable, "-m", "readleaf", *map(str, arguments)],
        cwd=ROOT,
        env=clean | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        timeout=120,
    )


def refused(run, code, *words):
    """It ended with `code` and one clear sentence, no traceback."""
    lines = [line for line in run.stderr.splitlines() if line.startswith("readleaf:")]
    assert run.returncode == code, run.stderr
    assert len(lines) == 1, run.stderr
    assert "Traceback" not in run.stderr
    for word in words:
        assert word in lines[0]


def test_help_lists_every_command():
    run = readleaf("--help")
    assert run.returncode == 0
    for command in ("serve", "page", "models", "triton", "evaluate", "export"):
        assert f"  {command}" in run.stdout


def test_models_list_checks_the_files(tmp_path):
    run = readleaf("models", "list", "--data-dir", tmp_path)
    assert run.returncode == 0
    assert "embedder" in run.stdout
    models = shutil.copytree(ROOT / "models", tmp_path / "models")
    (models / "embedder/1/model.onnx").write_bytes(b"")
    run = readleaf("models", "list", "--folder", models, "--data-dir", tmp_path, COLUMNS=400)
    assert run.returncode == 1
    assert "cannot be used" in run.stdout


def test_port_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(readleaf("serve", "--port", port, "--data-dir", tmp_path), 1, f"port {port}", "--port")


def test_an_address_open_to_others(tmp_path):
    refused(readleaf("serve", "--host", "0.0.0.0", "--data-dir", tmp_path), 1, "without API keys")


def test_missing_model_folder(tmp_path):
    run = readleaf("serve", "--port", 0, READLEAF_DATA_DIR=tmp_path, READLEAF_MODELS_DIR=tmp_path / "none")
    refused(run, 1, "no model folder", "READLEAF_MODELS_DIR")


@pytest.mark.parametrize("missing", ["detector", "recognizer", "embedder"])
def test_a_model_that_is_missing(tmp_path, missing):
    models = tmp_path / "models"
    models.mkdir()
    for name in {"detector", "recognizer", "embedder"} - {missing}:
        (models / name).symlink_to(ROOT / "models" / name)
    run = readleaf("serve", "--port", 0, READLEAF_DATA_DIR=tmp_path / "data", READLEAF_MODELS_DIR=models)
    refused(run, 1, f"no model named {missing}")


def test_model_with_a_wrong_sha256(tmp_path):
    models = shutil.copytree(ROOT / "models", tmp_path / "models")
    with (models / "embedder/1/model.onnx").open("ab") as file:
        file.write(b"\0")
    run = readleaf("serve", "--port", 0, READLEAF_DATA_DIR=tmp_path / "data", READLEAF_MODELS_DIR=models)
    refused(run, 1, "embedder", "sha256", "export the model again")


@pytest.mark.parametrize("page", ["true", "false"])
def test_data_folder_that_is_a_file(tmp_path, page):
    file = tmp_path / "file"
    file.touch()
    run = readleaf("serve", "--port", 0, "--data-dir", file, READLEAF_UI=page)
    refused(run, 1, "data folder", "READLEAF_DATA_DIR")


def test_a_disk_without_room(tmp_path):
    """/dev/full takes no byte."""
    (tmp_path / "labels.tsv").write_text(
        "file\tclass_name\tsource\tset\n"
        + "leaf.png\ta\tb\tval_unseen_class\n" * 2
        + "leaf.png\tc\tb\tval_unseen_class\n"
    )
    Image.new("RGB", (64, 64)).save(tmp_path / "leaf.png")
    run = readleaf("evaluate", "embedder", "--data", tmp_path, "--weights", "imagenet", "--table", "/dev/full")
    refused(run, 1, "No space left on device")


@pytest.mark.parametrize(
    ("name", "value"), [("READLEAF_PORT", "http"), ("READLEAF_DEVICE", "tpu"), ("READLEAF_TYPO", "1")]
)
def test_settings_that_cannot_be(tmp_path, name, value):
    refused(readleaf("serve", **{name: value}), 2, name)


def test_a_flag_that_cannot_be():
    run = readleaf("serve", "--port", "http")
    assert run.returncode == 2
    assert "Invalid value for '--port'" in run.stderr


def test_evaluate_without_data(tmp_path):
    words = ("evaluate", "embedder", "--data", tmp_path, "--weights", "imagenet")
    refused(readleaf(*words), 1, "neither labels.tsv nor a folder for each class")


def test_export_without_figures(tmp_path):
    weights = tmp_path / "best.pt"
    save_embedder(load_embedder("imagenet"), weights)
    export = ("export", "embedder", "--weights", weights, "--to", tmp_path / "models")
    refused(readleaf(*export), 1, "readleaf evaluate")
    scale = np.linspace(0, 1, 101).tolist()
    EmbedderFigures({}, "another", "nothing", scale, scale).write(tmp_path / "metrics.json")
    refused(readleaf(*export), 1, "holds the figures of other weights")
    assert not (tmp_path / "models").exists()


def test_a_data_folder_has_one_owner(start_service, tmp_path):
    """Two services on it would undo each other's work."""
    service = start_service()
    run = readleaf("serve", "--port", 0, "--data-dir", tmp_path / "data")
    refused(run, 1, f"in use by readleaf serve (process {service.process.pid})", "--data-dir")
    assert service.client.ready().status == "ready"
    service.process.kill()
    service.process.wait()
    assert start_service().client.ready().status == "ready"  # a kill leaves no lock behind


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_it_stops_when_told(start_service, signal_name):
    import signal

    service = start_service()
    service.process.send_signal(getattr(signal, signal_name))
    assert service.process.wait(timeout=30) == 0
    assert "Traceback" not in "".join(service.log)
