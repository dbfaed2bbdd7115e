"""What is installed under which name, and what a command imports."""

import importlib
import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("training", "export", "serving", "ui")


@pytest.mark.parametrize("name", [*PACKAGES, "readleaf"])
def test_our_names_belong_to_us_alone(name):
    assert packages_distributions()[name] == ["readleaf"]
    assert Path(str(importlib.import_module(name).__file__)).is_relative_to(ROOT)


def test_every_folder_with_code_is_a_package_with_one_sentence():
    folders = {file.parent for name in PACKAGES for file in (ROOT / name).rglob("*.py")}
    for folder in folders:
        first = (folder / "__init__.py").read_text().splitlines()[0]
        assert re.fullmatch(r'"""[A-Z].*[.]"""', first), folder


def imported_by(*statements):
    """Top-level modules in memory after running `statements` in a new interpreter."""
    script = "; ".join([*statements, "import sys, json", "print(json.dumps(sorted(sys.modules)))"])
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return {name.partition(".")[0] for name in json.loads(run.stdout.splitlines()[-1])}


def test_help_imports_nothing_heavy():
    modules = imported_by(
        "import readleaf",
        "from typer.testing import CliRunner",
        "assert CliRunner().invoke(readleaf.app, ['--help']).exit_code == 0",
    )
    assert not modules & {"torch", "gradio", "fastapi", "onnxruntime", "numpy", "pydantic", "PIL", "cv2"}


def test_the_service_imports_neither_torch_nor_gradio():
    assert not imported_by("import serving.server") & {"torch", "gradio", "timm", "onnx"}


def test_the_client_needs_no_server():
    assert not imported_by("import serving.client") & {"fastapi", "onnxruntime", "PIL", "cv2", "structlog"}


def test_the_page_needs_no_model_runtime():
    assert not imported_by("import ui") & {"torch", "onnxruntime", "cv2"}
