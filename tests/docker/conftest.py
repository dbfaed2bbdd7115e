"""What the tests of images and compose files share: Dockerfiles, read."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Dockerfile:
    """Its instructions in order, as (name, arguments); lines that go on are joined."""

    path: Path
    instructions: list[tuple[str, str]]

    def all(self, name: str) -> list[str]:
        return [arguments for given, arguments in self.instructions if given == name]

    def listens_on(self) -> set[int]:
        return {int(port) for arguments in self.all("EXPOSE") for port in arguments.split()}

    def environment(self) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S+)", " ".join(self.all("ENV"))))

    def program(self) -> list[str]:
        """What is run: the last ENTRYPOINT and CMD, which are JSON or fail here."""
        return [word for name in ("ENTRYPOINT", "CMD") for given in self.all(name)[-1:] for word in json.loads(given)]


def _read(path: Path) -> Dockerfile:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    parts = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return Dockerfile(path, [(name, arguments) for name, arguments in parts])


@pytest.fixture(scope="session")
def dockerfiles() -> dict[str, Dockerfile]:
    """By the file's path from the root."""
    return {str(path.relative_to(ROOT)): _read(path) for path in sorted((ROOT / "docker").glob("*.Dockerfile"))}
