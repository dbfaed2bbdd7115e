"""Benchmarks take too long for tests, but what they import must be there."""

import importlib.util
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_it_can_be_started(file):
    spec = importlib.util.spec_from_file_location(f"benchmark_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert callable(module.main)
