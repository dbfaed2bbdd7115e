"""`readleaf keys …`, as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def keys(tmp_path):
    """`keys("list")`: runs the command on a data folder of its own."""
    import os

    clean = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "readleaf", "keys", *map(str, arguments)],
            cwd=ROOT,
            env=clean | {"READLEAF_DATA_DIR": str(tmp_path / "data")} | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_create_list_revoke(keys, tmp_path):
    made = keys("create", "--name", "Ann [b]Lee", "--role", "expert", "--expires", 30)
    assert made.returncode == 0, made.stderr
    secret = made.stdout.removesuffix("\n")  # alone, so that it can be piped
    assert re.fullmatch(r"rl_[A-Za-z0-9_-]{43}", secret)
    assert "key 1 of Ann [b]Lee, role expert, until 2" in made.stderr
    assert "cannot be shown again" in made.stderr
    assert secret not in made.stderr
    assert "until it is revoked" in keys("create", "--name", "Ben", "--role", "read").stderr

    rows = [line.split() for line in keys("list").stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows[1:]] == [("1", "valid"), ("2", "valid")]
    assert rows[1][1:4] == ["Ann", "[b]Lee", "expert"]
    assert rows[2][1:3] == ["Ben", "read"]
    assert rows[2][-2] == "never"

    revoked = keys("revoke", 1)
    assert (revoked.returncode, revoked.stdout, revoked.stderr) == (0, "key 1 of Ann [b]Lee is revoked\n", "")
    assert keys("revoke", 1).returncode == 0
    assert "nobody is let in until one is made" in keys("revoke", 2).stderr
    assert keys("list").stdout.count("revoked") == 2
    for file in (tmp_path / "data").iterdir():
        assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--name", "Ann", "--role", "boss"), "'boss' is not one of 'read', 'write', 'expert', 'admin'"),
        (
            ("--name", "Ann", "--role", "read", "--expires", "-3"),
            "'--expires': Input should be greater than or equal to 1",
        ),
        (("--name", "Ann", "--role", "read", "--expires", "0"), "greater than or equal to 1"),
        (("--name", " ", "--role", "read"), "1 to 100 visible characters"),
        (("--name", "x" * 101, "--role", "read"), "1 to 100 visible characters"),
        (("--role", "read"), "Missing option '--name'"),
    ],
)
def test_what_cannot_be_made(keys, tmp_path, arguments, words):
    run = keys("create", *arguments)
    assert run.returncode == 2
    assert words in run.stderr
    assert not run.stdout
    assert not (tmp_path / "data").exists()


def test_an_unknown_number(keys):
    keys("create", "--name", "Ann", "--role", "read")
    run = keys("revoke", 7)
    assert run.returncode == 1
    assert run.stderr == "readleaf: there is no key 7; `readleaf keys list` shows all\n"
    assert keys("revoke", "one").returncode == 2
    assert keys("revoke", 2**63).returncode == 2


@pytest.mark.parametrize("arguments", [("list",), ("revoke", 1)])
def test_a_folder_without_a_database(keys, tmp_path, arguments):
    run = keys(*arguments, "--data-dir", tmp_path / "nowhere")
    assert run.returncode == 1
    assert run.stderr.startswith("readleaf: there is no database in")
    assert not (tmp_path / "nowhere").exists()


def test_a_command_that_calls_a_service_sends_the_key(keys, start_service, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    import readleaf

    service = start_service()
    secret = keys("create", "--name", "Ann", "--role", "read").stdout.strip()
    info = ["index", "info", "--url", service.url]
    assert CliRunner().invoke(readleaf.app, [*info, "--key", secret]).exit_code == 0
    assert CliRunner().invoke(readleaf.app, info, env={"READLEAF_KEY": secret}).exit_code == 0
    refused = CliRunner().invoke(readleaf.app, [*info, "--key", "rl_wrong"])
    assert "unknown, expired or revoked" in str(refused.exception)
