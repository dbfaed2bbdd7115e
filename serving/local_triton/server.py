"""The server process: started apart from the command that starts it, found again by what it noted, stopped cleanly."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from serving.errors import TritonUnusable
from serving.local_triton.environment import TritonEnvironment
from serving.local_triton.model_repository import write_python_repository
from serving.repository import find_versions
from serving.store.data_folder import hold_data_folder

HOST = "127.0.0.1"
READY_SECONDS = 180
STOP_SECONDS = 40  # Triton lets runs end, for 30 seconds at most
LOG_LINES = 5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ports:
    """Where it listens, on this machine alone; 0 is any free one."""

    grpc: int = 8001
    metrics: int = 8002
    http: int = 8003

    def filled(self) -> "Ports":
        """Free ports in place of 0."""
        return Ports(*(port or _free_port() for port in (self.grpc, self.metrics, self.http)))


def ports_from(url: str, grpc: int | None, metrics: int | None, http: int | None) -> Ports:
    """Ports as they were asked for, else those of READLEAF_TRITON_URL and the next two; raises TritonUnusable."""
    if grpc is None:
        host, _, port = url.rpartition(":")
        if host not in (HOST, "localhost") or not port.isdecimal():
            raise TritonUnusable(
                f"READLEAF_TRITON_URL={url!r} is no port of this machine, such as {HOST}:8001; give --grpc-port"
            )
        grpc = int(port)
    after = 0 if grpc == 0 else 1
    return Ports(grpc, grpc + after if metrics is None else metrics, grpc + 2 * after if http is None else http)


@dataclass(frozen=True)
class Running:
    """A server that was started."""

    pid: int
    ports: Ports

    @property
    def url(self) -> str:
        """What READLEAF_TRITON_URL is set to."""
        return f"{HOST}:{self.ports.grpc}"

    def is_ready(self) -> bool:
        """Whether it has loaded all models."""
        try:
            with httpx.Client(trust_env=False, timeout=2) as http:
                return http.get(f"http://{HOST}:{self.ports.http}/v2/health/ready").status_code == 200
        except httpx.HTTPError:
            return False


class LocalTriton:
    """Triton of one data folder."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "triton"
        self.environment = TritonEnvironment(self.folder)
        self.log = self.folder / "log.txt"
        self._state = self.folder / "running.json"
        self._repository = self.folder / "models"
        self._process: subprocess.Popen[bytes] | None = None  # if this very process has started it

    def running(self) -> Running | None:
        """The server, if it runs: a process of its number that is ours."""
        try:
            noted = json.loads(self._state.read_text())
            found = Running(noted["pid"], Ports(**noted["ports"]))
            command = Path(f"/proc/{found.pid}/cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if f"--model-repository={self._repository}" in command.split("\0") else None

    def start(self, models_dir: Path, ports: Ports, say: Say, instances: int = 1) -> tuple[Running, bool]:
        """Install it, give it our models, start it, wait until it is ready; (server, whether it was started now).

        One that runs already is given the models anew, and takes up new versions when it is asked to load them.
        Raises TritonUnusable or another SetupError.
        """
        with hold_data_folder(self.folder, "readleaf triton start"):
            models = find_versions(models_dir)
            self.environment.install(say)
            try:
                write_python_repository(models, self._repository, instances)
            except OSError as error:
                raise TritonUnusable(f"{self._repository} cannot be written ({error.strerror})") from error
            if (found := self.running()) is not None:
                return found, False
            self._forget()
            self._clear_remains()
            ports = ports.filled()
            _refuse_taken(ports)
            say(f"Starting Triton; it logs to {self.log}")
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._command(ports),
                    env=self.environment.variables(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C in this terminal is not meant for it
                )
            running = Running(self._process.pid, ports)
            self._state.write_text(json.dumps(asdict(running)))
            self._wait(self._process, running)
            return running, True

    def stop(self, patience: float = STOP_SECONDS) -> bool:
        """End it after the runs that are under way, or after so many seconds; False if none runs."""
        running = self.running()
        if running is not None:
            os.kill(running.pid, signal.SIGTERM)
            if not self._gone_within(patience):
                os.kill(running.pid, signal.SIGKILL)
                self._gone_within(STOP_SECONDS)
        self._state.unlink(missing_ok=True)
        self._clear_remains()
        return running is not None

    def _command(self, ports: Ports) -> list[str]:
        return [
            str(self.environment.binary),
            f"--model-repository={self._repository}",
            f"--backend-directory={self.environment.backends}",
            "--model-control-mode=explicit",
            "--load-model=*",
            f"--grpc-address={HOST}",
            f"--grpc-port={ports.grpc}",
            f"--http-address={HOST}",
            f"--http-port={ports.http}",
            f"--metrics-address={HOST}",
            f"--metrics-port={ports.metrics}",
            "--allow-gpu-metrics=false",
            f"--backend-config=python,shm-region-prefix-name={self._shared_memory}",
        ]

    def _wait(self, process: "subprocess.Popen[bytes]", running: Running) -> None:
        ends = time.monotonic() + READY_SECONDS
        while not running.is_ready():
            if process.poll() is not None or time.monotonic() > ends:
                process.kill()
                process.wait()
                self._state.unlink(missing_ok=True)
                raise TritonUnusable(f"Triton did not come up; {self.log} ends with: {self._last_lines()}")
            time.sleep(0.2)

    def _last_lines(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith("E")] or lines
        return " | ".join(telling[-LOG_LINES:])

    def _gone_within(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while self.running() is not None:
            if time.monotonic() > ends:
                return False
            time.sleep(0.1)
        self._forget()
        return True

    @property
    def _shared_memory(self) -> str:
        """How names of the memory begin through which Triton and its models' processes talk."""
        return f"readleaf-{hashlib.sha256(str(self.folder.absolute()).encode()).hexdigest()[:12]}-"

    def _clear_remains(self) -> None:
        """A server that was killed leaves its models' processes behind, and the memory that they share with it."""
        stub = str(self.environment.stub)
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if process.read_bytes().decode(errors="replace").split("\0")[0] == stub:
                    os.kill(int(process.parent.name), signal.SIGKILL)
            except OSError:  # it has gone meanwhile
                continue
        for left in Path("/dev/shm").glob(f"{self._shared_memory}*"):
            left.unlink(missing_ok=True)

    def _forget(self) -> None:
        """If this very process has started a server that is gone, its entry stays until it is asked for."""
        if self._process is not None:
            self._process.wait()
            self._process = None


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _refuse_taken(ports: Ports) -> None:
    for name, port in asdict(ports).items():
        try:
            socket.create_server((HOST, port)).close()
        except OSError as error:
            raise TritonUnusable(
                f"port {port} for Triton's {name} cannot be had ({error.strerror}); choose another with --{name}-port"
            ) from error
