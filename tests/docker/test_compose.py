"""The compose files: valid, and everything that a name in them means is there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from compose_spec import PyOptions

from serving.settings import Settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker"
FILES = ["compose.yaml", "compose.gpu.yaml"]


@pytest.fixture(params=FILES)
def file(request):
    return FOLDER / request.param


@pytest.fixture
def services(file):
    return yaml.safe_load(file.read_text())["services"]


def test_all_are_tested():
    assert sorted(path.name for path in FOLDER.glob("compose*")) == sorted(FILES)


def test_they_keep_to_the_specification(file):
    """Unknown keys, and networks or volumes that are not defined, are errors."""
    composed = PyOptions(apply_merge=True).from_yaml(file.read_text())
    composed.validate()


def test_compose_takes_them(file):
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode if _has_docker() else 1:
        pytest.skip("no docker compose on this machine")
    run = subprocess.run(["docker", "compose", "-f", file, "config", "--quiet"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def _has_docker():
    return shutil.which("docker") is not None


def _image(services, name, dockerfiles):
    """The Dockerfile of a service; none for an image that is not ours."""
    build = services[name].get("build")
    return dockerfiles[build["dockerfile"]] if build else None


def test_nothing_runs_with_more_rights_than_it_needs(services):
    for name, service in services.items():
        assert service["read_only"], name
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["mem_limit"]
        assert service["restart"] == "unless-stopped"
        assert service["stop_grace_period"] == "40s"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} is open to the network"


def test_who_waits_for_whom(services, dockerfiles):
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert _image(services, other, dockerfiles).all("HEALTHCHECK")


def test_ports_are_listened_on(services, dockerfiles):
    published = [port.split(":")[1] for service in services.values() for port in service.get("ports", [])]
    assert len(published) == len(set(published))
    for name, service in services.items():
        image = _image(services, name, dockerfiles)
        for port in service.get("ports", []) if image else []:
            assert int(port.split(":")[2]) in image.listens_on()


def test_addresses_lead_to_services(services, dockerfiles):
    text = yaml.safe_dump(services) + (FOLDER / "prometheus.yml").read_text() * ("prometheus" in services)
    found = re.findall(r"\b([a-z]+):(8\d\d\d)\b", text)
    assert ("api", "8000") in found
    for name, port in found:
        assert int(port) in _image(services, name, dockerfiles).listens_on()


def test_volumes_are_writable_folders_of_the_image(services, dockerfiles):
    for name, service in services.items():
        image = _image(services, name, dockerfiles)
        for volume in service.get("volumes", []):
            source, target, *_ = volume.split(":")
            if source.startswith("."):
                assert (FOLDER / source).is_file()
            elif image:
                assert any(target in line.split() for line in image.all("RUN") if "install --directory" in line)


def test_settings_exist(services):
    known = {f"READLEAF_{name.upper()}" for name in Settings.model_fields}
    for service in services.values():
        assert {name for name in service.get("environment", {}) if name.startswith("READLEAF_")} <= known


def test_images_are_named_for_the_version(services):
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    for service in services.values():
        own = "build" in service
        assert re.search(rf":{re.escape(version)}$" if own else r":v\d+\.\d+\.\d+$", service["image"])
        assert not own or (ROOT / "docker" / service["build"]["context"]).resolve() == ROOT


def test_prometheus_may_read_what_it_scrapes():
    services = yaml.safe_load((FOLDER / "compose.gpu.yaml").read_text())["services"]
    jobs = {job["job_name"]: job for job in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]}
    assert jobs.keys() == {"readleaf", "triton"}
    key = jobs["readleaf"]["authorization"]["credentials_file"]
    assert key == services["api"]["environment"]["METRICS_KEY_FILE"]
    volume = f"keys:{Path(key).parent}"
    assert volume in services["api"]["volumes"]
    assert f"{volume}:ro" in services["prometheus"]["volumes"]
    assert jobs["triton"]["static_configs"] == [{"targets": ["triton:8002"]}]
