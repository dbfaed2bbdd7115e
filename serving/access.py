"""Who is asking, and whether they may."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
from fastapi import Depends, FastAPI, Header, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.errors import HostRefused, KeyMissing, RequestError, ReviewerUnnamed, RoleTooLow
from serving.keys import KeyRing, clean_owner
from serving.middleware import refuse
from serving.problems import describe
from serving.roles import Role, needed_role

log = structlog.get_logger()

COOKIE = "readleaf_key"  # a page's <img> cannot send a header
OPEN = ("/v1/session", "/docs", "/openapi.json")  # how to get in, and what is here
SIGN_IN = Path(__file__).with_name("sign_in.html")
HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")
REFUSALS = describe(KeyMissing, RoleTooLow, HostRefused)


@dataclass(frozen=True)
class Caller:
    """Somebody who was let in; the name is empty where nobody needs to give one."""

    name: str
    role: Role


class AccessMiddleware:
    """Finds out who is asking before the body is read, so that a stranger's upload costs nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope; a browser that comes for the page without a key is asked for one."""
        if scope["type"] == "http" and not scope["path"].startswith("/health/"):
            ring: KeyRing = scope["app"].state.services.keys
            try:
                scope["caller"] = await run_in_threadpool(_identify, ring, HTTPConnection(scope))
            except RequestError as error:
                log.info("refused", path=scope["path"], reason=error.kind)
                if scope["path"] == "/" and scope["method"] == "GET" and isinstance(error, KeyMissing):
                    await HTMLResponse(SIGN_IN.read_text(), error.status)(scope, receive, send)
                else:
                    await refuse(error, scope, receive, send)
                return
        await self._app(scope, receive, send)


def _identify(ring: KeyRing, request: HTTPConnection) -> Caller | None:
    secret = _secret(request)
    key = ring.find(secret) if secret else None
    if key is not None:
        return Caller(key.name, Role(key.role))
    if not ring.needed():
        _check_host(request.headers.get("host", ""))
        _check_origin(request)
        return Caller(_reviewer_name(request.headers.get("x-reviewer", "")), Role.ADMIN)
    if request.scope["path"] in OPEN or request.scope["path"].startswith("/docs/"):
        return None
    raise unknown_key() if secret else _no_key()


def _secret(request: HTTPConnection) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")


def _check_host(host: str) -> None:
    """A page that lets its name lead to 127.0.0.1 gets past the browser's rules, but cannot change this header."""
    found = HOST.fullmatch(host)
    name = found[1].strip("[]").lower() if found else ""
    try:
        own = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        own = False
    if not own:
        raise HostRefused(
            f"without API keys only this machine is answered, by the names localhost, 127.0.0.1 and [::1], "
            f"and not as {host!r}; make a key with `readleaf keys create`"
        )


def _check_origin(request: HTTPConnection) -> None:
    """Another site's page may send a form to 127.0.0.1, but its browser tells where it comes from."""
    origin = request.headers.get("origin", "")
    if origin and request.scope["method"] not in ("GET", "HEAD") and urlsplit(origin).netloc != request.headers["host"]:
        raise HostRefused(f"without API keys only this machine's own page is answered, and not one of {origin!r}")


def _reviewer_name(header: str) -> str:
    try:
        return clean_owner(unquote_to_bytes(header.encode("latin-1")).decode())
    except ValueError:
        return ""


def _no_key() -> KeyMissing:
    return KeyMissing(
        "this service needs an API key; send it as `Authorization: Bearer KEY`, or sign in on the page",
        headers={"WWW-Authenticate": "Bearer"},
    )


def unknown_key() -> KeyMissing:
    """The error for a key that lets nobody in."""
    return KeyMissing(
        "the API key is unknown, expired or revoked; ask the operator for another",
        headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
    )


async def _caller(request: Request) -> Caller:
    caller: Caller | None = request.scope["caller"]
    if caller is None:
        raise _no_key()
    return caller


CurrentCaller = Annotated[Caller, Depends(_caller)]


async def check_role(request: Request, caller: CurrentCaller) -> None:
    """Raise RoleTooLow; for every router of the API."""
    needed = needed_role(request.method, request.scope["route"].path)
    if not caller.role.allows(needed):
        raise RoleTooLow(f"this needs the role {needed}, and your key has {caller.role}; ask the operator for another")


async def _reviewer(
    caller: CurrentCaller,
    x_reviewer: Annotated[
        str | None,
        Header(description="who says it, in UTF-8, URL-encoded; with API keys it is the key's owner", examples=["Ann"]),
    ] = None,
) -> str:
    """The middleware has read the header; here it is described."""
    if not caller.name:
        raise ReviewerUnnamed("say who you are: send your name, 1 to 100 characters, URL-encoded, as X-Reviewer")
    return caller.name


CurrentReviewer = Annotated[str, Depends(_reviewer)]


def describe_keys(app: FastAPI) -> None:
    """Add keys to the OpenAPI description, so that `/docs` has a field for one."""
    describe_routes = app.openapi
    schemes = {
        "key": {"type": "http", "scheme": "bearer", "description": "an API key; needed once one was made"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "set by POST /v1/session"},
    }

    def openapi() -> dict[str, object]:
        description = describe_routes()
        description["components"]["securitySchemes"] = schemes
        description["security"] = [{}, {"key": []}, {"cookie": []}]
        return description

    app.openapi = openapi  # type: ignore[method-assign]
