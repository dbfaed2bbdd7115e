"""The page in a process of its own, in front of a real API in another."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from PIL import Image, ImageDraw, ImageFont
from starlette.responses import PlainTextResponse
from typer.testing import CliRunner

import readleaf
from ui.standalone import FrontDoor

ROOT = Path(__file__).parents[2]
START = """
import sys
from pathlib import Path
from ui.standalone import run_page
run_page(sys.argv[1], "127.0.0.1", 0, Path(sys.argv[2]), 1_000_000)
"""
EVERYTHING_OF_GRADIO = ("/config", "/gradio_api/info", "/theme.css", "/gradio_api/queue/data", "/assets/index.js")


@contextmanager
def run_standalone(api_url, folder):
    """Start the page, wait until it listens, stop it at the end; gives an HTTP client and the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, api_url, str(folder)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    log = []
    try:
        for line in process.stderr:
            log.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                break
        else:
            pytest.fail("the page did not start:\n" + "".join(log))
        reader = threading.Thread(target=log.extend, args=(process.stderr,))
        reader.start()
        with httpx.Client(base_url=found[1], trust_env=False, timeout=60) as http:
            yield http, process
        process.terminate()
        process.wait(timeout=40)
        reader.join()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def make_key(data_dir, name, role):
    made = CliRunner().invoke(
        readleaf.app, ["keys", "create", "--name", name, "--role", role, "--data-dir", str(data_dir)]
    )
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@pytest.fixture(scope="module")
def page(service, tmp_path_factory):
    """A page of an API without keys."""
    with run_standalone(service.url, tmp_path_factory.mktemp("page")) as (http, _):
        yield http


@pytest.fixture(scope="module")
def guarded(run_service, tmp_path_factory):
    """A page of an API with keys, and the key of an expert named Ann."""
    folder = tmp_path_factory.mktemp("guarded")
    key = make_key(folder / "data", "Ann", "expert")
    with run_service(folder / "data") as api, run_standalone(api.url, folder / "page") as (http, _):
        yield http, key, folder / "data"


def test_the_page_is_served(page):
    answer = page.get("/")
    assert answer.status_code == 200
    assert "Ask a picture a question." in answer.text
    assert page.get("/config").json()["title"] == "Readleaf"


def opened(page, **headers):
    """What the page fills itself with when it is opened, asked for as its script does."""
    begun = [call["id"] for call in page.get("/config", headers=headers).json()["dependencies"] if not call["inputs"]]
    said = ""
    for number in begun:
        wanted = {"data": [], "fn_index": number, "session_hash": f"visit{number}"}
        if page.post("/gradio_api/queue/join", json=wanted, headers=headers).is_success:
            stream = page.get("/gradio_api/queue/data", params={"session_hash": f"visit{number}"}, headers=headers)
            said += stream.text
    return said


def test_what_the_page_asks_on_its_server(page, service):
    service.client.create_collection("birds")
    assert '"birds"' in opened(page)
    service.client.delete_collection("birds")


@pytest.mark.parametrize(
    "path",
    ["/v1/models", "/openapi.json", "/health/ready", "/swagger/swagger-ui.css", "/v1/taxa?limit=1&name=%C3%A4+b"],
)
def test_what_is_of_the_api_is_asked_of_it(page, service, path):
    through, direct = page.get(path), service.http.get(path)
    assert (through.status_code, through.content) == (200, direct.content)
    assert through.headers["content-type"] == direct.headers["content-type"]


def test_the_description_of_the_api_uses_files_of_the_page(page):
    assert f'href="{page.base_url}/swagger/swagger-ui.css"' in page.get("/docs").text


def test_a_call_keeps_its_headers(page):
    answer = page.get("/v1/models", headers={"X-Request-ID": "mine-7", "Connection": "keep-alive, X-Hop", "X-Hop": "1"})
    assert answer.headers["x-request-id"] == "mine-7"
    assert "total;dur=" in answer.headers["server-timing"]
    assert answer.headers.get_list("date", split_commas=False)[1:] == []
    counted = page.get("/metrics").text
    assert 'readleaf_requests_total{method="GET",route="/v1/models",status="200"}' in counted


def test_an_upload_is_passed_on(page, service, photo, encoded):
    files = [("images", ("a.jpg", encoded(photo(seed=number)))) for number in range(3)]
    direct = service.http.post("/v1/embed", files=files)
    assert direct.json()["dim"] == 512
    assert page.post("/v1/embed", files=files).json() == direct.json()


def test_an_upload_without_a_length_is_passed_on(page, service, photo, encoded):
    whole = httpx.Request("POST", "http://any/", files=[("images", ("a.jpg", encoded(photo())))])
    body, kind = whole.read(), {"Content-Type": whole.headers["content-type"]}
    pieces = (body[start : start + 1000] for start in range(0, len(body), 1000))
    answer = page.post("/v1/embed", content=pieces, headers=kind)
    assert "transfer-encoding" in answer.request.headers
    assert answer.json() == service.http.post("/v1/embed", content=body, headers=kind).json()


def test_who_hangs_up_is_not_worked_for(page, service, encoded):
    picture = Image.new("RGB", (3000, 3000), (245, 245, 240))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(40)
    for row in range(45):
        pen.text((20, 10 + 66 * row), "a page with very many words " * 5, (20, 20, 20), font)
    with pytest.raises(httpx.ReadTimeout):
        page.post("/v1/read", files={"image": encoded(picture, "PNG")}, timeout=httpx.Timeout(30, read=0.3))
    ends = time.monotonic() + 30
    while not any('"path": "/v1/read"' in line and '"status": 499' in line for line in service.log):
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_picture_of_an_item_comes_back_whole(page, photo, encoded):
    page.post("/v1/collections", json={"name": "ä b"}).raise_for_status()
    item = page.post("/v1/collections/%C3%A4%20b/items", files={"image": encoded(photo(), "PNG")}).json()
    assert page.get(item["image_url"]).content == encoded(photo(), "PNG")
    assert page.head("/v1/collections/%C3%A4%20b").status_code == 405
    assert page.delete("/v1/collections/%C3%A4%20b").status_code == 204


def test_a_refusal_is_the_apis_own(page):
    answer = page.get("/v1/nothing")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["type"] == "urn:readleaf:problem:not-found"


@pytest.mark.parametrize("path", ["/", "/config", "/v1/models"])
def test_without_keys_only_names_of_this_machine(page, path):
    answer = page.get(path, headers={"Host": "leaf.example"})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:readleaf:problem:host-refused"


@pytest.mark.parametrize("path", ["/gradio_api/upload", "/v1/embed"])
def test_without_keys_no_form_of_another_site(page, path, photo, encoded):
    field = "files" if "upload" in path else "images"
    files = {field: ("a.jpg", encoded(photo()))}
    assert page.post(path, files=files, headers={"Origin": "http://evil.example"}).status_code == 403
    own = f"http://{page.base_url.host}:{page.base_url.port}"
    assert page.post(path, files=files, headers={"Origin": own}).status_code == 200


def test_a_stranger_sees_the_sign_in_and_nothing_else(guarded):
    page, _, _ = guarded
    answer = page.get("/")
    assert (answer.status_code, "Your API key" in answer.text) == (401, True)
    for path in (*EVERYTHING_OF_GRADIO, "/v1/models", "/metrics"):
        refused = page.get(path)
        assert refused.status_code == 401, path
        assert refused.json()["type"] == "urn:readleaf:problem:key-missing"
    assert page.post("/gradio_api/upload", files={"files": b"x" * 100_000}).status_code == 401
    assert page.get("/config", headers={"Cookie": "readleaf_key=rl_wrong"}).status_code == 401
    assert page.get("/config", headers={"Authorization": "Bearer rl_wrong"}).status_code == 401
    assert page.get("/health/ready").status_code == 200


def test_signing_in_through_the_page(guarded):
    page, key, _ = guarded
    assert page.post("/v1/session", json={"key": "rl_wrong"}).status_code == 401
    with httpx.Client(base_url=page.base_url, trust_env=False, timeout=60) as ann:
        ann.post("/v1/session", json={"key": key}).raise_for_status()
        assert ann.get("/v1/session").json()["name"] == "Ann"
        for path in ("/", "/config", "/v1/models"):
            assert ann.get(path).status_code == 200
        # What Ann's browser was given is hers alone.
        assert page.get("/config").status_code == 401
        assert page.get("/v1/session").json()["name"] is None
    assert page.get("/config", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_what_the_page_asks_on_its_server_it_asks_with_the_visitors_key(guarded):
    page, key, _ = guarded
    page.post("/v1/collections", json={"name": "moths"}, headers={"Authorization": f"Bearer {key}"}).raise_for_status()
    assert '"moths"' in opened(page, Cookie=f"readleaf_key={key}")
    assert '"moths"' not in opened(page, Authorization=f"Bearer {key}")  # a browser has the cookie alone


def test_a_revoked_key_is_soon_out(guarded):
    page, _, data_dir = guarded
    cookie = {"Cookie": f"readleaf_key={make_key(data_dir, 'Ben', 'read')}"}
    assert page.get("/config", headers=cookie).status_code == 200
    assert CliRunner().invoke(readleaf.app, ["keys", "revoke", "2", "--data-dir", str(data_dir)]).exit_code == 0
    while page.get("/config", headers=cookie).status_code == 200:  # for ever, if it is remembered for ever
        pass
    assert page.get("/config", headers=cookie).status_code == 401


def test_an_api_that_is_gone(run_service, tmp_path):
    with run_service(tmp_path / "data") as api, run_standalone(api.url, tmp_path / "page") as (page, process):
        assert page.get("/").status_code == 200
        api.process.terminate()
        api.process.wait()
        for path in ("/", "/config", "/v1/models", "/health/ready"):
            answer = page.get(path, headers={"X-Request-ID": "mine-8"})
            assert (answer.status_code, answer.headers["content-type"]) == (502, "application/problem+json")
            problem = answer.json()
            assert (problem["type"], problem["status"]) == ("urn:readleaf:problem:api-unreachable", 502)
            assert problem["request_id"] == "mine-8"
            assert "cannot reach its API" in problem["detail"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=40) == 0


async def _ask(api_url, url, **request):
    async def inner(scope, receive, send):
        await PlainTextResponse("the page")(scope, receive, send)

    async with httpx.AsyncClient(trust_env=False) as api:
        door = FrontDoor(inner, api, httpx.URL(api_url))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(door)) as visitor:
            return await visitor.get(url, **request)


@pytest.mark.parametrize("path", ["/", "/v1/models", "/health/ready"])
def test_open_to_other_machines_only_with_keys(service, path):
    """Else whoever reaches the page would be an administrator of an API that trusts its own machine."""
    answer = asyncio.run(_ask(service.url, f"http://192.0.2.7{path}", headers={"Host": "localhost"}))
    assert answer.status_code == 403
    assert "has no keys" in answer.json()["detail"]
    assert asyncio.run(_ask(service.url, "http://127.0.0.1/")).text == "the page"


def test_open_to_other_machines_with_keys(guarded):
    page, key, _ = guarded  # which answers for its API
    assert asyncio.run(_ask(str(page.base_url), "http://192.0.2.7/")).status_code == 401
    with_key = asyncio.run(_ask(str(page.base_url), "http://192.0.2.7/", headers={"Authorization": f"Bearer {key}"}))
    assert with_key.text == "the page"


class Stranger(BaseHTTPRequestHandler):
    """A server that is not Readleaf."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>It works!</h1>")

    def log_message(self, *_):
        pass


def test_an_address_where_something_else_answers():
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            answer = asyncio.run(_ask(f"http://127.0.0.1:{other.server_port}", "http://127.0.0.1/"))
        finally:
            other.shutdown()
            thread.join()
    assert answer.status_code == 502
