"""Who is let in, asked of running services."""

import time
from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from serving.access import AccessMiddleware, CurrentCaller, CurrentReviewer
from serving.app import create_app
from serving.client import ApiError, Client
from serving.keys import make_key, revoke_key
from serving.problems import install_error_handlers
from serving.roles import Role, needed_role
from serving.settings import Settings
from serving.store.database import open_database

ROLES = ["read", "write", "expert", "admin"]


def make(data_dir, owner, role, lifetime=None):
    """Make a key as the command does, beside a service that may run; its number and secret."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_database(data_dir / "readleaf.db") as database, database.writing() as session:
        key, secret = make_key(session, owner, Role(role), lifetime)
        return key.id, secret


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keyed")


@pytest.fixture(scope="module")
def secrets(folder):
    return {role: make(folder, f"{role} person", role)[1] for role in ROLES}


@pytest.fixture(scope="module")
def keyed(run_service, folder, secrets):
    """A service with a key of each role, open to other machines."""
    with run_service(folder, host="0.0.0.0") as running:
        yield running


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def kind(answer):
    return answer.json()["type"].removeprefix("urn:readleaf:problem:")


def test_it_listens_on_all_addresses_and_warns(keyed):
    assert keyed.url.startswith("http://127.0.0.1:")
    assert any("put a proxy with TLS in front" in line for line in keyed.log)


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/docs", "/openapi.json"])
def test_what_needs_no_key(keyed, path):
    assert keyed.http.get(path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("POST", "/v1/embed"),
        ("DELETE", "/v1/collections/any"),
        ("GET", "/v1/collections/any/items/1/image"),
        ("GET", "/v1/nowhere"),
        ("GET", "/v1"),
        ("GET", "/v1/session/more"),
        ("GET", "/v1/nowhere%0A"),
        ("GET", "/metrics"),
    ],
)
def test_without_a_key(keyed, method, path):
    answer = keyed.http.request(method, path)
    assert (answer.status_code, kind(answer)) == (401, "key-missing")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Authorization: Bearer KEY" in answer.json()["detail"]


@pytest.mark.parametrize("header", ["Bearer wrong", "bearer rl_wrong", "Bearer \xe9"])
def test_with_a_wrong_key(keyed, header):
    answer = keyed.http.get("/v1/models", headers={"Authorization": header.encode("latin-1")})
    assert (answer.status_code, kind(answer)) == (401, "key-missing")
    assert "invalid_token" in answer.headers["www-authenticate"]


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc", "rl_wrong"])
def test_with_no_bearer_key(keyed, header):
    assert keyed.http.get("/v1/models", headers={"Authorization": header}).headers["www-authenticate"] == "Bearer"


def test_a_strangers_upload_is_refused_with_an_answer(keyed):
    answer = keyed.http.post("/v1/embed", files={"images": bytes(20_000_000)})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "needed", "status"),
    [
        ("GET", "/v1/models", "read", 200),
        ("GET", "/metrics", "read", 200),
        ("POST", "/v1/embed", "read", 422),
        ("POST", "/v1/collections/none/search", "read", 422),
        ("POST", "/v1/collections", "write", 422),
        ("DELETE", "/v1/collections/none/items/1", "write", 404),
        ("DELETE", "/v1/collections/none", "admin", 404),
        ("GET", "/v1/nowhere", "read", 404),
        ("PUT", "/v1/models", "read", 405),
    ],
)
@pytest.mark.parametrize("role", ROLES)
def test_roles(keyed, secrets, role, method, path, needed, status):
    answer = keyed.http.request(method, path, headers=bearer(secrets[role]))
    if Role(role).allows(Role(needed)):
        assert answer.status_code == status
    else:
        assert (answer.status_code, kind(answer)) == (403, "role-too-low")
        assert f"needs the role {needed}, and your key has {role}" in answer.json()["detail"]


def test_a_host_of_any_name_is_answered_with_a_key(keyed, secrets):
    answer = keyed.http.get("/v1/models", headers=bearer(secrets["read"]) | {"Host": "leaf.example"})
    assert answer.status_code == 200


def test_the_client_sends_its_key(keyed, secrets):
    with Client(keyed.url, key=secrets["expert"] + "\n", reviewer="somebody else") as client:
        assert len(client.models().models) > 1
        session = client.session()
    assert (session.name, session.role, session.keys) == ("expert person", "expert", True)
    with Client(keyed.url) as client, pytest.raises(ApiError, match="needs an API key"):
        client.models()


def test_revoked_and_expired_are_refused_within_two_seconds(keyed, folder):
    number, revoked = make(folder, "Ann", "read")
    _, expiring = make(folder, "Ben", "read", timedelta(seconds=1.5))
    for secret in (revoked, expiring):
        assert keyed.http.get("/v1/models", headers=bearer(secret)).status_code == 200
    with open_database(folder / "readleaf.db") as database, database.writing() as session:
        revoke_key(session, number)
    time.sleep(2)
    for secret in (revoked, expiring):
        answer = keyed.http.get("/v1/models", headers=bearer(secret))
        assert answer.status_code == 401
        assert "expired or revoked" in answer.json()["detail"]


def test_no_secret_is_logged(keyed, secrets):
    keyed.http.get("/v1/models", headers=bearer(secrets["read"]))
    httpx.post(f"{keyed.url}/v1/session", json={"key": secrets["read"]}, trust_env=False)
    assert not any(secret in line for secret in secrets.values() for line in keyed.log)


def test_the_first_key_closes_a_running_service(start_service, tmp_path):
    service = start_service()
    assert service.http.get("/v1/models").status_code == 200
    number, secret = make(tmp_path / "data", "Ann", "read")
    time.sleep(1.2)
    assert service.http.get("/v1/models").status_code == 401
    assert service.http.get("/v1/models", headers=bearer(secret)).status_code == 200
    with open_database(tmp_path / "data/readleaf.db") as database, database.writing() as session:
        revoke_key(session, number)
    time.sleep(1.2)
    assert service.http.get("/v1/models").status_code == 401  # and it does not open again


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1", "127.1.2.3:8000", "[::1]", "[::1]:8000"])
def test_names_of_this_machine(service, host):
    assert service.http.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["leaf.example", "localhost.leaf.example:8000", "192.0.2.7", "[2001:db8::1]:80", "127.0.0.1.leaf.example", ""],
)
@pytest.mark.parametrize("path", ["/v1/models", "/v1/session", "/metrics", "/docs", "/"])
def test_names_of_other_machines(service, host, path):
    answer = service.http.get(path, headers={"Host": host})
    assert (answer.status_code, kind(answer)) == (403, "host-refused")
    assert "readleaf keys create" in answer.json()["detail"]


def test_health_is_told_to_any_host(service):
    assert service.http.get("/health/live", headers={"Host": "probe.example"}).status_code == 200


def test_every_operation_has_a_role_and_says_so(tmp_path):
    app = create_app(Settings(data_dir=tmp_path))
    open_to_all = {"/health/live", "/health/ready", "/v1/session"}
    description = app.openapi()
    guarded = 0
    for path, operations in description["paths"].items():
        for operation in operations.values():
            if path in open_to_all:
                continue
            guarded += 1
            for status in ("401", "403"):
                problem = operation["responses"][status]["content"]["application/problem+json"]
                assert problem["examples"], (path, status)
    assert guarded > 15
    assert description["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_every_operation_checks_who_asks(keyed, secrets):
    """Whatever routes there will be: a stranger is refused, and a key for reading where it takes more."""
    for path, operations in keyed.http.get("/openapi.json").json()["paths"].items():
        for method in map(str.upper, operations):
            if path.startswith("/health/") or path == "/v1/session":
                continue
            url = path.replace("{", "").replace("}", "")
            assert keyed.http.request(method, url).status_code == 401, (method, path)
            answer = keyed.http.request(method, url, headers=bearer(secrets["read"]))
            enough = needed_role(method, path) == Role.READ
            assert (answer.status_code == 403) == (not enough), (method, path)


class Ring:
    """Keys that need no database."""

    def __init__(self, needed):
        self._needed = needed

    def needed(self):
        return self._needed

    def find(self, secret):
        return None


def small_app(needed):
    app = FastAPI()
    app.state.services = type("Services", (), {"keys": Ring(needed)})
    app.add_middleware(AccessMiddleware)

    @app.middleware("http")
    async def number(request, call_next):
        request.scope["request_id"] = "1"
        return await call_next(request)

    @app.get("/vote")
    async def vote(reviewer: CurrentReviewer) -> str:
        return reviewer

    @app.get("/name")
    async def name(caller: CurrentCaller) -> str:
        return caller.name

    install_error_handlers(app)
    return TestClient(app, base_url="http://localhost")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (quote("Jiří Čech"), "Jiří Čech"),
        ("Jiří".encode(), "Jiří"),
        ("%20Ann%20", "Ann"),
        ("x" * 100, "x" * 100),
        ("x" * 101, ""),
        ("%ff", ""),
        ("%00", ""),
        ("%20", ""),
        ("%E2%80%8B", ""),
        ("", ""),
    ],
)
def test_the_reviewers_name(header, name):
    client = small_app(needed=False)
    assert client.get("/name", headers={"X-Reviewer": header}).json() == name
    answer = client.get("/vote", headers={"X-Reviewer": header})
    if name:
        assert answer.json() == name
    else:
        assert (answer.status_code, kind(answer)) == (422, "reviewer-unnamed")
        assert "X-Reviewer" in answer.json()["detail"]


def test_a_route_outside_the_keyed_addresses_still_needs_a_caller():
    """The middleware lets `/name` through, as it might be the page; the route does not."""
    answer = small_app(needed=True).get("/name", headers={"X-Reviewer": "Ann"})
    assert (answer.status_code, kind(answer)) == (401, "key-missing")
