"""The Dockerfiles, as far as that goes without an engine: linted, complete, and their install lines run."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from serving.settings import Settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAMES = [f"docker/{name}.Dockerfile" for name in ("api", "api-gpu", "triton", "ui")]
# What each image is for, tried where its install line was run.
WORKS = {
    "docker/api.Dockerfile": "import faiss, onnxruntime, serving.server; assert 'page' not in serving.__dict__",
    "docker/api-gpu.Dockerfile": "import faiss, onnxruntime, serving.server, tritonclient.grpc; "
    "faiss.StandardGpuResources",
    "docker/ui.Dockerfile": "import ui.standalone",
}


@pytest.fixture(params=NAMES)
def image(request, dockerfiles):
    return dockerfiles[request.param]


def test_all_are_tested(dockerfiles):
    assert sorted(dockerfiles) == sorted(NAMES)


def test_the_linter_has_nothing_to_say(image):
    linter = Path(sys.executable).with_name("hadolint")
    run = subprocess.run([linter, "--no-color", image.path], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")


def test_bases_are_pinned(image):
    stages = {words[-1] for given in image.all("FROM") if len(words := given.split()) == 3}
    bases = {given.split()[0] for given in image.all("FROM")} - stages
    assert bases
    for base in bases:
        assert re.search(r":\d+\.\d+[\w.-]*-[\w.-]+$", base), f"{base} is no full tag"


def test_who_runs_what(image):
    user = image.all("USER")[-1]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "a number, so that an orchestrator sees that it is not root"
    assert image.program()
    [health] = image.all("HEALTHCHECK")
    *_, script, url = json.loads(health.partition("CMD ")[2])
    assert Path(script).name == "healthcheck.py"
    assert int(re.search(r"127\.0\.0\.1:(\d+)/", url)[1]) in image.listens_on()


def test_labels(image):
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', " ".join(image.all("LABEL"))))
    assert labels["version"] == PROJECT["version"]
    assert labels["licenses"] == PROJECT["license"]
    assert labels.keys() == {"title", "description", "licenses", "version"}


def test_settings_are_the_services_own(image):
    known = {f"READLEAF_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in image.environment() if name.startswith("READLEAF_")} <= known


def test_the_program_is_in_the_image(image):
    """A script that is run was copied, and the command is one of ours or of the base."""
    copied = {PurePosixPath(source).name for source in _sources(image)}
    for word in (*image.program(), *image.all("HEALTHCHECK")[0].split('"')):
        if word.endswith(".py"):
            assert PurePosixPath(word).name in copied


def _sources(image, stage=None):
    """What COPY takes from the checkout, of one stage or of all."""
    found, now = [], ""
    for name, arguments in image.instructions:
        if name == "FROM":
            now = arguments.split()[-1]
        if name == "COPY" and "--from=" not in arguments and stage in (None, now):
            found += [word.rstrip("/") for word in arguments.split()[:-1]]
    return found


def _is_sent(path):
    """Whether .dockerignore lets a path into the context: the last pattern that fits it or a folder above decides."""
    sent = True
    for pattern in filter(None, (ROOT / ".dockerignore").read_text().splitlines()):
        if pattern.startswith("#"):
            continue
        wanted = pattern.removeprefix("!").removeprefix("**/")
        parents = [path, *PurePosixPath(path).parents]
        names = [PurePosixPath(each).name if "**/" in pattern else str(each) for each in parents]
        if any(fnmatch(name, wanted) for name in names if name not in ("", ".")):
            sent = pattern.startswith("!")
    return sent


def test_what_is_copied_is_there(image):
    for source in _sources(image):
        assert (ROOT / source).exists(), source
        assert _is_sent(source), f".dockerignore keeps {source} back"


def test_nothing_else_is_sent_to_the_builder(dockerfiles):
    copied = {PurePosixPath(source).parts[0] for image in dockerfiles.values() for source in _sources(image)}
    sent = {path.name for path in ROOT.iterdir() if _is_sent(path.name)}
    assert sent == copied
    assert {".git", ".venv", "tests", "benchmarks", "runs"}.isdisjoint(sent)
    assert not _is_sent("serving/__pycache__/app.cpython-311.pyc")
    assert _is_sent("serving/routes/health.py")


def _install_line(image):
    """The arguments of its one `pip install`."""
    [line] = [line for line in image.all("RUN") if "pip install" in line]
    return shlex.split(line.partition("pip install ")[2])


@pytest.fixture(params=sorted(WORKS))
def installed(request, dockerfiles):
    return dockerfiles[request.param]


def test_extras_exist_and_are_pinned(installed):
    line = _install_line(installed)
    assert line[:2] == ["--constraint", "constraints.txt"]
    chosen = re.fullmatch(r"\.\[(.+)\]", line[-1])[1].split(",")
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pinned = {canonicalize_name(name) for name in pins}
    needed = [*PROJECT["dependencies"], *(each for extra in chosen for each in EXTRAS[extra])]
    assert {canonicalize_name(Requirement(each).name) for each in needed} <= pinned


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    """`clean_python(name)`: the interpreter of a virtual environment with nothing in it."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("clean")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            made[name] = folder / "bin" / "python"
        return made[name]

    yield make
    for python in made.values():
        shutil.rmtree(python.parents[1])  # a gigabyte each, when in full


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_the_install_line_runs_on_what_was_copied(installed, clean_python, rounds, tmp_path):
    """In full it installs and tries; else it only asks pip whether this is a distribution."""
    for source in _sources(installed, stage="build"):
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, tmp_path / source)
    in_full = bool(rounds(0, 1))
    python = clean_python(installed.path.name if in_full else "any")
    line = [*([] if in_full else ["--dry-run", "--no-deps"]), *_install_line(installed)]
    run = subprocess.run([python, "-m", "pip", "install", *line], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    if not in_full:
        assert f"Would install readleaf-{PROJECT['version']}" in run.stdout
        return
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    works = WORKS[str(installed.path.relative_to(ROOT))]
    for command in ([python, "-c", works], [python.with_name("readleaf"), "--help"]):
        run = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr[-3000:]
