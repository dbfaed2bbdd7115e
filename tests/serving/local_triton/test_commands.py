"""`readleaf triton start|stop|status`, as a user types it, with a real Triton."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(900)
FREE = ("--grpc-port", 0, "--http-port", 0, "--metrics-port", 0)


@pytest.fixture
def data_dir(tmp_path, triton_environment):
    """A data folder with Triton installed; whatever runs there is stopped at the end."""
    folder = tmp_path / "data"
    (folder / "triton").mkdir(parents=True)
    (folder / "triton/venv").symlink_to(triton_environment / "venv")
    yield folder
    triton(folder, "stop")


def triton(data_dir, *arguments, **settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    return subprocess.run(
        [sys.executable, "-m", "readleaf", "triton", *map(str, arguments), "--data-dir", str(data_dir)],
        cwd=ROOT,
        env=clean | {name: str(value) for name, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=300,
    )


def refused(run, *words):
    """It ended with 1 and one clear sentence."""
    lines = [line for line in run.stderr.splitlines() if line.startswith("readleaf:")]
    assert (run.returncode, len(lines), "Traceback" in run.stderr) == (1, 1, False), run.stderr
    for word in words:
        assert word in lines[0]


def process_of(status):
    return int(status.stdout.split()[1].rstrip(","))


def test_start_status_stop(data_dir):
    status = triton(data_dir, "status")
    assert (status.returncode, status.stdout) == (1, "no Triton runs on this data folder\n")
    started = triton(data_dir, "start", *FREE)
    assert started.returncode == 0, started.stderr
    for name in ("classifier", "detector", "embedder", "recognizer"):
        assert f"{name} 1: answers as at its export\n" in started.stdout
    address = started.stdout.split("READLEAF_TRITON_URL=")[1].split()[0]
    status = triton(data_dir, "status")
    assert status.returncode == 0
    assert f"gRPC {address}" in status.stdout
    assert "embedder 1: ready" in status.stdout
    again = triton(data_dir, "start", *FREE)
    assert f"Triton ran already at {address}, process {process_of(status)}" in again.stdout
    stopped = triton(data_dir, "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "Triton has stopped\n")
    assert not Path(f"/proc/{process_of(status)}/exe").exists()  # gone, but for what nobody has asked for
    assert triton(data_dir, "status").returncode == 1
    assert triton(data_dir, "stop").stdout == "no Triton runs on this data folder\n"


def test_a_killed_one_is_started_anew(data_dir):
    assert triton(data_dir, "start", *FREE).returncode == 0
    first = process_of(triton(data_dir, "status"))
    os.kill(first, signal.SIGKILL)
    assert triton(data_dir, "start", *FREE).returncode == 0
    assert process_of(triton(data_dir, "status")) != first


def test_a_new_version_is_taken_up_by_the_one_that_runs(data_dir, models, add_version):
    settings = {"READLEAF_MODELS_DIR": models}
    assert "embedder 2" not in triton(data_dir, "start", *FREE, **settings).stdout
    add_version(models, "embedder")
    (models / "recognizer/2").mkdir()  # half written
    (models / "recognizer/2/model.onnx").write_bytes(b"half")
    again = triton(data_dir, "start", *FREE, **settings)
    assert again.returncode == 0, again.stderr
    assert "embedder 1: answers as at its export\nembedder 2: answers as at its export\n" in again.stdout
    assert "recognizer 2: left out, " in again.stdout
    assert "manifest.json" in again.stdout
    assert "embedder 2: ready" in triton(data_dir, "status").stdout


def test_a_port_that_is_taken(data_dir):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(
            triton(data_dir, "start", *FREE[2:], "--grpc-port", port), f"port {port} for Triton's grpc", "--grpc-port"
        )
    assert triton(data_dir, "status").returncode == 1


def test_models_that_are_not_there(data_dir, models):
    refused(triton(data_dir, "start", *FREE, READLEAF_MODELS_DIR=data_dir / "none"), "no model folder", "MODELS_DIR")
    shutil.rmtree(models / "embedder/1")
    refused(triton(data_dir, "start", *FREE, READLEAF_MODELS_DIR=models), "embedder", "holds no version")


def test_a_folder_that_cannot_be_written(data_dir):
    (data_dir / "triton/models").symlink_to("/proc/readleaf")
    refused(triton(data_dir, "start", *FREE), f"{data_dir}/triton/models cannot be written")
    refused(triton("/proc/readleaf", "start", *FREE), "cannot be made", "READLEAF_DATA_DIR")


def test_a_version_that_answers_wrongly_stops_the_start(data_dir, models, add_version):
    from serving.manifest import read_manifest

    add_version(models, "classifier")
    manifest = read_manifest(models / "classifier/2")
    wrong = manifest.probe.model_copy(update={"answers": [value + 0.1 for value in manifest.probe.answers]})
    manifest.model_copy(update={"probe": wrong}).write(models / "classifier/2")
    run = triton(data_dir, "start", *FREE, READLEAF_MODELS_DIR=models)
    refused(run, "classifier version 2: ", "answers otherwise than at its export")
    assert triton(data_dir, "status").returncode == 1  # it was stopped again
