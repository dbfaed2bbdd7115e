"""What the documents say is true: links, commands, figures."""

import os
import re
import shlex
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from serving.repository import load_repository

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(path for path in ROOT.glob("**/*.md") if ".venv" not in path.parts)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_make_target_that_is_named_exists():
    text = "".join(document.read_text() for document in DOCUMENTS)
    for target in set(re.findall(r"`?make ([a-z]+)`", text)) | {"serve", "test"}:
        run = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, f"make {target}: {run.stderr}"


def test_every_command_of_readleaf_that_is_named_exists():
    text = "".join(document.read_text() for document in DOCUMENTS)
    verbs, nouns = (
        "serve|page|read|classify|models|keys|index|triton|train|evaluate|export",
        "list|activate|compare|start|stop|status|create|revoke|import|identify|embedder|classify|classifier|recognizer|detector|tune-recognizer|tune-detector|mix-recognizers|language|starter",
    )
    named = set(re.findall(rf"readleaf ((?:{verbs})(?: (?:{nouns})\b)?)", text))
    assert {"serve", "evaluate embedder"} <= named
    for words in sorted(named):
        run = subprocess.run([ROOT / ".venv/bin/readleaf", *words.split(), "--help"], capture_output=True, text=True)
        assert run.returncode == 0, words


def test_the_readmes_curl_command_works(service, photo, tmp_path):
    [command] = re.findall(r"^curl .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    photo().save(tmp_path / "sign.jpg")
    words = shlex.split(command.replace("http://127.0.0.1:8000", service.url))
    run = subprocess.run(
        [*words, "--silent", "--noproxy", "*"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert '"text"' in run.stdout


def test_the_readmes_python_example_works(service, photo, tmp_path, monkeypatch, capsys):
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "serving/README.md").read_text(), re.DOTALL)
    photo(seed=1).save(tmp_path / "leaf.jpg")
    photo(seed=2).save(tmp_path / "other.jpg")
    monkeypatch.chdir(tmp_path)
    exec(example.replace("http://127.0.0.1:8000", service.url), {})
    assert re.match(r"512 0\.\d+", capsys.readouterr().out)


def test_the_figures_are_the_models_own():
    models = load_repository(ROOT / "models")
    metrics = models["embedder"].manifest.metrics
    text = (ROOT / "README.md").read_text()
    assert f"| {models['recognizer'].manifest.metrics['all/accuracy']:.3f} |" in text
    found = models["detector"].manifest.metrics
    assert f"| {found['reading/f1']:.3f}, {found['reading/end to end f1']:.3f} |" in text
    named = models["classifier"].manifest.metrics
    assert f"| {named['flowers102/val/accuracy']:.3f}, {named['plantdoc/val/accuracy']:.3f} |" in text
    assert f"| {named['val/ece']:.3f} |" in text
    for name in ("flowers102/val_unseen_class/r@1", "cub200/val_unseen_class/r@1"):
        assert f"| {metrics[name]:.3f} |" in text


def test_the_architecture_names_every_dependency():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    block = project[project.index("dependencies = [") : project.index("[project.scripts]")]
    names = set(re.findall(r'"([A-Za-z0-9_-]+)(?:\[[a-z,]+\])?[>=<]', block)) - {"onnxruntime-gpu", "pytest-timeout"}
    assert len(names) > 20
    for name in names:
        assert name in text, f"ARCHITECTURE.md does not say why {name}"


def test_the_map_shows_every_folder():
    text = (ROOT / "README.md").read_text()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {line.split("/")[0] for line in tracked.splitlines() if "/" in line and not line.startswith(".")}
    for folder in folders:
        assert f"\n{folder}/ " in text


@pytest.mark.timeout(900)
def test_the_readmes_way_to_triton_works(tmp_path, triton_environment, photo, encoded):
    """Word for word, but on a data folder and ports of the test's own."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"## Over Triton.*?```sh\n(.*?)```", text, re.DOTALL)[1]
    start, serve, stop = (line.partition("#")[0].strip() for line in block.strip().splitlines())
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/venv").symlink_to(triton_environment / "venv")  # else it would be installed here once more
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"127.0.0.1:{free.getsockname()[1]}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("READLEAF_")}
    own = {"READLEAF_DATA_DIR": str(tmp_path), "READLEAF_TRITON_URL": url, "READLEAF_PORT": "0", "READLEAF_UI": "false"}
    options = {"shell": True, "cwd": ROOT, "env": clean | own, "text": True}
    try:
        run = subprocess.run(start, capture_output=True, **options)
        assert run.returncode == 0, run.stderr
        service = subprocess.Popen(f"exec env {serve}", stderr=subprocess.PIPE, **options)
        try:
            address = next(
                found[1] for line in service.stderr if (found := re.search(r"url=.*?(http://[\d.:]+)", line))
            )
            models = httpx.get(f"{address}/v1/models", trust_env=False).json()["models"]
            assert {model["runtime"] for model in models} == {f"triton ({url})"}
            answer = httpx.post(f"{address}/v1/embed", files={"images": encoded(photo())}, trust_env=False)
            assert answer.json()["dim"] == 512
        finally:
            service.terminate()
            service.stderr.close()
            service.wait(timeout=60)
    finally:
        run = subprocess.run(stop, capture_output=True, **options)
    assert run.stdout == "Triton has stopped\n"
