import httpx
import pytest

from serving.keys import make_key
from serving.roles import Role
from serving.store.database import open_database


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keyed")


@pytest.fixture(scope="module")
def secrets(folder):
    with open_database(folder / "readleaf.db") as database, database.writing() as session:
        return {role: make_key(session, "Ann", role)[1] for role in (Role.READ, Role.WRITE)}


@pytest.fixture(scope="module")
def keyed(run_service, folder, secrets):
    with run_service(folder) as running:
        yield running


@pytest.fixture
def browser(keyed):
    """Keeps cookies, as a browser does."""
    with httpx.Client(base_url=keyed.url, trust_env=False, timeout=60) as http:
        yield http


def test_a_stranger_learns_that_a_key_is_needed(browser):
    assert browser.get("/v1/session").json() == {"name": None, "role": None, "keys": True}
    wrong = browser.get("/v1/session", headers={"Authorization": "Bearer rl_wrong", "X-Reviewer": "Ben"})
    assert wrong.json() == {"name": None, "role": None, "keys": True}


def test_sign_in_and_out(browser, secrets):
    answer = browser.post("/v1/session", json={"key": f" {secrets['write']}\n"})
    assert answer.json() == {"name": "Ann", "role": "write"}
    flags = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert "secure" not in flags
    assert browser.get("/v1/session").json() == {"name": "Ann", "role": "write", "keys": True}
    assert browser.get("/v1/models").status_code == 200
    assert browser.delete("/v1/session").status_code == 204
    assert browser.get("/v1/models").status_code == 401


def test_behind_a_proxy_with_tls_the_cookie_stays_there(browser, secrets):
    headers = {"X-Forwarded-Proto": "https"}
    answer = browser.post("/v1/session", json={"key": secrets["read"]}, headers=headers)
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_pictures_are_shown_to_who_signed_in(browser, secrets, photo, encoded):
    browser.post("/v1/session", json={"key": secrets["write"]})
    browser.post("/v1/collections", json={"name": "garden"})
    item = browser.post("/v1/collections/garden/items", files={"image": encoded(photo())}).json()
    for url in (item["image_url"], item["thumbnail_url"]):
        assert browser.get(url).headers["content-type"] == "image/jpeg"
        assert httpx.get(str(browser.base_url.join(url)), trust_env=False).status_code == 401


def test_the_cookies_role_counts(browser, secrets):
    browser.post("/v1/session", json={"key": secrets["read"]})
    assert browser.post("/v1/collections", json={"name": "garden"}).status_code == 403


def test_a_header_wins_over_the_cookie(browser, secrets):
    browser.post("/v1/session", json={"key": secrets["read"]})
    assert browser.get("/v1/models", headers={"Authorization": "Bearer rl_wrong"}).status_code == 401
    assert browser.get("/v1/models", headers={"Authorization": "Basic YTpi"}).status_code == 200  # a proxy's own


@pytest.mark.parametrize(
    ("body", "status"), [({"key": "rl_wrong"}, 401), ({"key": ""}, 422), ({"key": "x" * 201}, 422), ({}, 422)]
)
def test_what_is_no_key(browser, body, status):
    answer = browser.post("/v1/session", json=body)
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


def test_without_keys_one_gives_a_name(service):
    assert service.http.get("/v1/session").json() == {"name": None, "role": "admin", "keys": False}
    named = service.http.get("/v1/session", headers={"X-Reviewer": "Ji%C5%99%C3%AD"})
    assert named.json() == {"name": "Jiří", "role": "admin", "keys": False}
    assert service.http.post("/v1/session", json={"key": "rl_any"}).status_code == 401
