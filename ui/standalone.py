"""The page in a process of its own: Gradio here, everything else asked of an API elsewhere.

The page's scripts and pictures use addresses of the page's own origin, so what belongs to the API is passed on to it.
Who may come in is the API's to say: whoever it does not know is sent to it, and gets its sign-in page or its refusal.
"""

import asyncio
import ipaddress
import logging
import signal
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import httpx
import uvicorn
from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.schemas import Problem
from ui.page import mount_page
from ui.visitor import COOKIE

log = logging.getLogger("uvicorn.error")  # the one that uvicorn shows

OF_THE_API = ("/v1", "/health", "/docs", "/swagger", "/openapi.json", "/metrics")
REMEMBERED_SECONDS = 1.0  # with the API's own second, a revoked key is out within two, as the service promises
TIMEOUT = httpx.Timeout(300, connect=5)  # seconds; a large picture is read in well under that
GRACE_SECONDS = 30
# About one connection (RFC 9110, 7.6.1), or added anew by the server that answers.
OF_ONE_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "expect", "date", "server",
}  # fmt: skip


def create_page_app(api_url: str, *, data_dir: Path, max_file_size: int) -> FastAPI:
    """The page at `/`, and the API at `api_url` behind it; what visitors upload is kept below `data_dir`."""
    # trust_env=False: a proxy set for the internet must not stand between us and our own service.
    # No limit on connections: a page that waits for an event stream must not keep others out.
    api = httpx.AsyncClient(timeout=TIMEOUT, trust_env=False, limits=httpx.Limits(max_connections=None))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with api:
            yield

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(FrontDoor, api=api, api_url=httpx.URL(api_url))
    mount_page(app, api_url, data_dir=data_dir, max_file_size=max_file_size)
    return app


def run_page(api_url: str, host: str, port: int, data_dir: Path, max_file_size: int) -> None:
    """Serve the page until SIGINT or SIGTERM."""
    app = create_page_app(api_url, data_dir=data_dir, max_file_size=max_file_size)
    signal.signal(signal.SIGTERM, _exit_quietly)  # uvicorn sends itself the signal again once all is closed
    uvicorn.run(app, host=host, port=port, access_log=False, timeout_graceful_shutdown=GRACE_SECONDS)


class FrontDoor:
    """Lets a request in to the page, or passes it on to the API."""

    def __init__(self, app: ASGIApp, api: httpx.AsyncClient, api_url: httpx.URL) -> None:
        self._app = app
        self._api = api
        self._url = api_url
        self._known: dict[str, float] = {}  # secret → until when it need not be asked about again
        self._guarded_until = float("-inf")  # until when the API need not be asked whether it wants keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # the page uses no websockets
            return await send({"type": "websocket.close"})
        request = Request(scope, receive)
        try:
            if not _is_loopback(scope) and not await self._wants_keys():
                return await _open_to_others(request)(scope, receive, send)
            if not _is_of_the_api(scope["path"]) and await self._lets_in(request):
                return await self._app(scope, receive, send)
            answer = await self._ask_for(request)
        except ClientDisconnect:
            return None
        except httpx.TransportError as error:
            log.warning("no answer from %s to %s: %r", self._url, scope["path"], error)
            return await _unreachable(request)(scope, receive, send)
        try:
            return await _relay(answer)(scope, receive, send)
        finally:
            await answer.aclose()

    async def _wants_keys(self) -> bool:
        """Whether the API needs keys: if not, it answers its own machine only, and so must we."""
        if time.monotonic() > self._guarded_until:
            keys, _ = await self._session({"host": "localhost"})
            if not keys:
                return False
            self._guarded_until = time.monotonic() + REMEMBERED_SECONDS
        return True

    async def _lets_in(self, request: Request) -> bool:
        """Whether the API knows the visitor."""
        secret = request.headers.get("authorization", "") or request.cookies.get(COOKIE, "")
        now = time.monotonic()
        if self._known.get(secret, now) > now:
            return True
        shown = ("host", "cookie", "authorization")
        keys, role = await self._session({name: request.headers[name] for name in shown if name in request.headers})
        if role is None or not (keys or _is_from_here(request)):
            return False
        if keys:
            self._known = {known: until for known, until in self._known.items() if until > now}
            self._known[secret] = now + REMEMBERED_SECONDS
        return True

    async def _session(self, headers: dict[str, str]) -> tuple[bool, str | None]:
        """Whether the API needs keys, and the role it gives to whoever sends these headers."""
        answer = await self._api.send(httpx.Request("GET", self._address("/v1/session"), headers=headers))
        if answer.status_code == 403:
            return False, None
        try:
            session = answer.raise_for_status().json()
            return session["keys"], session["role"]
        except (httpx.HTTPStatusError, ValueError, KeyError, TypeError) as error:
            raise httpx.RemoteProtocolError(f"this is no answer of Readleaf's: {answer!r}") from error

    async def _ask_for(self, request: Request) -> httpx.Response:
        """The API's answer, while somebody waits for it; raises ClientDisconnect if not, and the API stops, too."""
        sent = asyncio.Event()
        asking, going = asyncio.create_task(self._ask(request, sent)), asyncio.create_task(_gone(request, sent))
        try:
            await asyncio.wait({asking, going}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise ClientDisconnect
            return asking.result()
        finally:
            going.cancel()
            asking.cancel()  # nothing, if it has ended

    async def _ask(self, request: Request, sent: asyncio.Event) -> httpx.Response:
        """The API's own answer. Host and Origin stay: without keys the API takes only names of its own machine."""

        async def body_of() -> AsyncIterator[bytes]:
            async for part in request.stream():
                yield part
            sent.set()

        if {"content-length", "transfer-encoding"} & set(request.headers):
            body = body_of()
        else:
            body = None
            sent.set()
        path = request.scope["raw_path"].decode("ascii")
        query = request.scope["query_string"].decode("ascii")
        address = self._address(f"{path}?{query}" if query else path)
        # Not by build_request(): it would add headers of its own, and cookies that were set for other visitors.
        asked = httpx.Request(request.method, address, headers=_end_to_end(request.headers.raw), content=body)
        return await self._api.send(asked, stream=True, follow_redirects=False)

    def _address(self, path: str) -> httpx.URL:
        return self._url.copy_with(raw_path=(self._url.path.rstrip("/") + path).encode("ascii"))


async def _gone(request: Request, sent: asyncio.Event) -> None:
    """Ends when the visitor hangs up; until the body is sent, whoever sends it notices."""
    await sent.wait()
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _relay(answer: httpx.Response) -> Response:
    relayed = StreamingResponse(answer.aiter_raw(), answer.status_code)
    relayed.raw_headers = [(name.lower(), value) for name, value in _end_to_end(answer.headers.raw)]
    return relayed


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    named = b",".join(value for name, value in headers if name.lower() == b"connection").decode("latin-1")
    dropped = OF_ONE_HOP | {name.strip().lower() for name in named.split(",")}
    return [(name, value) for name, value in headers if name.decode("latin-1").lower() not in dropped]


def _is_of_the_api(path: str) -> bool:
    return any(path == own or path.startswith(own + "/") for own in OF_THE_API)


def _is_loopback(scope: Scope) -> bool:
    """Whether the connection came in by an address that only this machine can reach."""
    server = scope.get("server") or ("", None)
    try:
        return ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return False


def _is_from_here(request: Request) -> bool:
    """Another site's page may send a form to 127.0.0.1, but its browser tells where it comes from."""
    origin = request.headers.get("origin", "")
    return not origin or request.method in ("GET", "HEAD") or urlsplit(origin).netloc == request.headers.get("host")


def _unreachable(request: Request) -> Response:
    detail = "the page cannot reach its API; try again in a moment, or ask the operator whether the API runs"
    return _problem(request, 502, "api-unreachable", "The API does not answer", detail)


def _open_to_others(request: Request) -> Response:
    detail = (
        "this page is open to other machines, and its API has no keys, so it answers nobody; "
        "make a key with `readleaf keys create`, or let the page listen on 127.0.0.1"
    )
    return _problem(request, 403, "host-refused", "Without API keys only this machine is answered", detail)


def _problem(request: Request, status: int, kind: str, title: str, detail: str) -> Response:
    request_id = request.headers.get("x-request-id", "") or uuid.uuid4().hex[:16]
    problem = Problem(
        type=f"urn:readleaf:problem:{kind}", title=title, status=status, detail=detail, request_id=request_id
    )
    headers = {"X-Request-ID": request_id}
    return JSONResponse(problem.model_dump(), status, headers, media_type="application/problem+json")


def _exit_quietly(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
