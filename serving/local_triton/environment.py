"""Triton's own virtual environment: its binary and python backend come from a wheel, and must not meet numpy 2."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from serving.errors import TritonUnusable

# With numpy 2 the python backend of this release hands over empty tensors without a word.
PACKAGES = ("nvidia-pytriton==0.7.0", "numpy<2", "onnxruntime>=1.22")
STAMP = "installed"


class TritonEnvironment:
    """Where it is, and how a process in it is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # links below it must not depend on where they are looked at from
        self._venv = self.folder / "venv"
        self._python = f"{sys.version_info.major}.{sys.version_info.minor}"

    @property
    def _package(self) -> Path:
        return self._venv / f"lib/python{self._python}/site-packages/pytriton/tritonserver"

    @property
    def binary(self) -> Path:
        """The server."""
        return self._package / "bin/tritonserver"

    @property
    def backends(self) -> Path:
        """The folder of backends, with the python one alone."""
        return self.folder / "backends"

    @property
    def stub(self) -> Path:
        """What runs a model, in a process of its own."""
        return self.backends / "python/triton_python_backend_stub"

    def install(self, say: Callable[[str], None]) -> None:
        """Make it, unless it is there; raises TritonUnusable."""
        wanted = "\n".join(PACKAGES)
        stamp = self._venv / STAMP
        if not (stamp.is_file() and stamp.read_text() == wanted and self.binary.is_file()):
            say(f"Installing Triton into {self._venv} (some 440 MB, once)")
            self._run(sys.executable, "-m", "venv", "--clear", str(self._venv))
            self._run(str(self._venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES)
            stamp.write_text(wanted)
        stub = self._package / f"python_backend_stubs/{self._python}/triton_python_backend_stub"
        if not self.binary.is_file() or not stub.is_file():
            raise TritonUnusable(
                f"the wheel has no Triton for Python {self._python} on this machine; it has one for Linux on x86-64 "
                "with Python 3.8 to 3.13. Use Docker (docker/README.md) instead"
            )
        python = self.backends / "python"
        python.mkdir(parents=True, exist_ok=True)
        shipped = self._package / "backends/python"
        for file in (shipped / "libtriton_python.so", shipped / "triton_python_backend_utils.py", stub):
            link = python / file.name
            link.unlink(missing_ok=True)
            link.symlink_to(file)

    def variables(self) -> dict[str, str]:
        """The environment of the server: its Python first on the path, which is how the backend finds it."""
        own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        libraries = [str(sysconfig.get_config_var("LIBDIR") or ""), os.environ.get("LD_LIBRARY_PATH", "")]
        return own | {
            "PATH": f"{self._venv / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
            "OMP_NUM_THREADS": "1",
        }

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise TritonUnusable(
                f"Triton cannot be installed ({' '.join(last)}); is there a network and room on the disk?"
            )
