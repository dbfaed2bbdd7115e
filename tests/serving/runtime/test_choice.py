import sys

import pytest

from serving.errors import SetupError
from serving.metrics import Metrics
from serving.runtime.choice import open_runtime
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings


def test_in_process_by_default(tmp_path):
    assert isinstance(open_runtime(Settings(data_dir=tmp_path), Metrics()), InProcessRuntime)


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tritonclient", None)
    monkeypatch.delitem(sys.modules, "serving.runtime.over_triton", raising=False)
    with pytest.raises(
        SetupError, match=r"READLEAF_RUNTIME=triton needs the package tritonclient.*; install the extra `triton`"
    ):
        open_runtime(Settings(runtime="triton"), Metrics())
