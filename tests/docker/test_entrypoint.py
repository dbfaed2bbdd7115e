"""What the API's containers run, run here: keys once, then the service itself."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
KEY = re.compile(r"\brl_[A-Za-z0-9_-]{43}\b")


def command(script, *arguments, **settings):
    """How to start a script of `docker/`, with these settings and no others."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    environment |= {name: str(value) for name, value in settings.items()}
    return {"args": [sys.executable, ROOT / "docker" / script, *arguments], "env": environment, "text": True}


@contextmanager
def started(folder):
    """A start in the data folder; gives the service's URL and what was printed, and asks it to stop."""
    settings = {
        "METRICS_KEY_FILE": folder / "metrics",
        "READLEAF_DATA_DIR": folder / "data",
        "READLEAF_HOST": "0.0.0.0",
        "READLEAF_LOG_FORMAT": "json",
        "READLEAF_PORT": 0,
        "READLEAF_STARTER": "false",
        "READLEAF_UI": "false",
    }
    with (folder / "log").open("w+") as log:
        run = subprocess.Popen(**command("entrypoint.py", **settings), stdout=log, stderr=subprocess.PIPE)
        try:
            lines = []
            for line in run.stderr:
                lines.append(line)
                if line.startswith("{") and (event := json.loads(line))["event"] == "ready":
                    break
            else:
                pytest.fail("it did not start:\n" + "".join(lines))
            yield event["url"], (folder / "log").read_text()
            run.send_signal(signal.SIGTERM)
            run.stderr.read()
            assert run.wait(timeout=40) == 0
        finally:
            run.kill()
            run.wait()
            run.stderr.close()


def ask(url, path, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(url + path, headers=headers, trust_env=False)


def test_the_first_start_makes_keys_and_the_second_none(tmp_path):
    with started(tmp_path) as (url, printed):
        [admin] = KEY.findall(printed)
        assert "shown once" in printed
        assert ask(url, "/health/ready").status_code == 200
        assert ask(url, "/v1/models").status_code == 401
        assert ask(url, "/v1/session", admin).json()["role"] == "admin"
        metrics = (tmp_path / "metrics").read_text()
        assert stat.S_IMODE((tmp_path / "metrics").stat().st_mode) == 0o444  # Prometheus is another user
        assert ask(url, "/v1/session", metrics).json()["role"] == "read"
        assert "readleaf_requests" in ask(url, "/metrics", metrics).text
        healthy = subprocess.run(**command("healthcheck.py", f"{url}/health/ready", http_proxy="http://127.0.0.1:9"))
        assert healthy.returncode == 0
        unhealthy = subprocess.run(**command("healthcheck.py", f"{url}/v1/models"), capture_output=True)
        assert (unhealthy.returncode, "401" in unhealthy.stderr) == (1, True)
    with started(tmp_path) as (url, printed):
        assert not KEY.findall(printed)
        assert (tmp_path / "metrics").read_text() == metrics
        assert ask(url, "/v1/session", admin).json()["role"] == "admin"
    # With another volume for it, Prometheus gets a key again, and nobody else.
    (tmp_path / "metrics").unlink()
    with started(tmp_path) as (url, printed):
        assert not KEY.findall(printed)
        assert (tmp_path / "metrics").read_text() != metrics
        assert "readleaf_requests" in ask(url, "/metrics", (tmp_path / "metrics").read_text()).text


def test_a_data_folder_that_cannot_be_written():
    run = subprocess.run(**command("entrypoint.py", READLEAF_DATA_DIR="/proc/readleaf"), capture_output=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("readleaf: the data folder /proc/readleaf cannot be made")
    assert f"mount a volume there that user {os.getuid()} may write" in run.stderr


def test_a_key_that_cannot_be_handed_over_is_not_made(tmp_path):
    settings = {"READLEAF_DATA_DIR": tmp_path, "METRICS_KEY_FILE": "/proc/readleaf/metrics"}
    run = subprocess.run(**command("entrypoint.py", **settings), capture_output=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert "/proc/readleaf/metrics" in run.stderr
    listed = subprocess.run(
        [Path(sys.executable).with_name("readleaf"), "keys", "list", "--data-dir", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "admin" not in listed.stdout


def test_a_setting_that_does_not_exist(tmp_path):
    settings = {"READLEAF_DATA_DIR": tmp_path / "data", "READLEAF_HOSTS": "0.0.0.0"}
    run = subprocess.run(**command("entrypoint.py", **settings), capture_output=True)
    assert run.returncode == 1
    assert run.stderr.startswith("readleaf: READLEAF_HOSTS is not a setting")
    assert not (tmp_path / "data").exists()


def test_a_container_that_does_not_answer():
    run = subprocess.run(**command("healthcheck.py", "http://127.0.0.1:9/health/ready"), capture_output=True)
    assert run.returncode == 1
    assert "http://127.0.0.1:9/health/ready: " in run.stderr
    assert "Traceback" not in run.stderr
