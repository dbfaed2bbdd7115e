"""The server process of a data folder."""

import os
import signal
import time
from pathlib import Path

import pytest

from serving.errors import DataFolderInUse, TritonUnusable
from serving.local_triton import model_repository
from serving.local_triton.server import LocalTriton, Ports
from serving.settings import Settings
from serving.store.data_folder import hold_data_folder

SHIPPED = Settings.model_fields["models_dir"].default
ANY = Ports(0, 0, 0)
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def local(tmp_path, triton_environment):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/venv").symlink_to(triton_environment / "venv")
    found = LocalTriton(tmp_path)
    yield found
    found.stop()


def test_a_triton_that_does_not_come_up(local, tmp_path, monkeypatch):
    broken = tmp_path / "model.py"
    broken.write_text("raise RuntimeError('no such luck')\n")
    monkeypatch.setattr(model_repository, "MODEL_CODE", broken)
    with pytest.raises(TritonUnusable, match=r"did not come up; .*log\.txt ends with: .*no such luck"):
        local.start(SHIPPED, ANY, str)
    assert local.running() is None


def test_two_who_start_it_at_once(local):
    with hold_data_folder(local.folder, "readleaf triton start"), pytest.raises(DataFolderInUse, match="is in use by"):
        local.start(SHIPPED, ANY, str)
    assert local.running() is None


@pytest.mark.parametrize(
    "noted", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "ports": {"grpc": 1, "metrics": 2, "http": 3}}']
)
def test_a_note_that_is_no_server_of_ours(local, noted):
    """Half written, or of a process whose number somebody else has by now."""
    (local.folder / "running.json").write_text(noted)
    assert local.running() is None
    assert local.stop() is False


def remains(local):
    stubs = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if command.startswith(str(local.environment.stub)):
            stubs.append(int(process.parent.name))
    return sorted(stubs), sorted(file.name for file in Path("/dev/shm").glob(f"{local._shared_memory}*"))


def test_what_a_killed_one_leaves_behind_is_cleared(local):
    first, _ = local.start(SHIPPED, ANY, str)
    stubs, memory = remains(local)
    assert len(stubs) == len(memory) == 4
    os.kill(first.pid, signal.SIGKILL)
    second, started = local.start(SHIPPED, ANY, str)
    assert started
    assert second.pid != first.pid
    later, memory_later = remains(local)
    assert len(later) == len(memory_later) == 4
    assert not set(stubs) & set(later)
    assert not set(memory) & set(memory_later)
    assert local.stop(patience=0)
    ends = time.monotonic() + 5
    while remains(local) != ([], []):  # a process that was killed takes a moment to go
        assert time.monotonic() < ends
