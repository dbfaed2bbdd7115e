"""What every request gets: an id, a limit on its body, a log line, its timings, and an answer to our own bugs."""

import asyncio
import re
import time
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.errors import BodyTooLarge, InternalError, RequestError
from serving.exchange import Exchange, allowed_seconds
from serving.metrics import Metrics
from serving.problems import problem_response
from serving.timing import Timings

log = structlog.get_logger()

REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
DRAIN_SECONDS = 10
QUIET_ROUTES = ("page", "/health/live", "/health/ready", "/metrics")


class RequestMiddleware:
    """Wraps the whole app, the page included."""

    def __init__(self, app: ASGIApp, metrics: Metrics, max_body_bytes: int) -> None:
        self._app = app
        self._metrics = metrics
        self._limit = max_body_bytes
        self._left_behind: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope=scope)
        scope["request_id"] = request_id = _request_id(headers)
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-ID"] = request_id
                out["Server-Timing"] = timings.header(total=time.perf_counter() - started)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                timings = scope["timings"] = Timings(allowed_seconds(headers))
                await self._answer(scope, receive, send_with_headers, headers)
            except RequestError as error:
                timings = scope["timings"] = Timings()
                await refuse(error, scope, receive, send_with_headers)
            except Exception:
                log.exception("request failed", path=scope["path"])
                if not status:
                    bug = InternalError("the request could not be finished; report its request_id to the operator")
                    await problem_response(bug, request_id)(scope, receive, send_with_headers)
            self._record(scope, status, timings, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        too_large = f"the request is larger than {self._limit:,} bytes, the most this server takes"
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self._limit:
            error = BodyTooLarge(too_large, headers={"Connection": "close"})
            await refuse(error, scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                await _drain(receive)
                raise HTTPException(413, too_large)  # the one kind that FastAPI's body parser lets through
            return message

        if scope["method"] == "POST" and scope["path"].startswith("/v1/"):
            await Exchange(receive_limited, send, scope["timings"]).run(self._app, scope, self._left_behind)
        else:
            await self._app(scope, receive_limited, send)

    def _record(self, scope: Scope, status: int, timings: Timings, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "page")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "PATCH", "DELETE") else "other"
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        if (waited := timings.seconds_of("queue")) is not None:
            self._metrics.queue_seconds.labels(route).observe(waited)
        write = log.debug if route in QUIET_ROUTES and status < 500 else log.info
        write("request", method=method, path=scope["path"], status=status, ms=round(1000 * seconds, 1))


async def refuse(error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with an error before the body was read."""
    if Headers(scope=scope).get("expect", "").lower() != "100-continue":
        await _drain(receive)
    await problem_response(error, scope["request_id"])(scope, receive, send)


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex[:16]


async def _drain(receive: Receive) -> None:
    """Throw the rest of the body away, so that the client, still writing, gets to read our answer."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while (await receive()).get("more_body", False):
                pass
    except (TimeoutError, HTTPException):  # too slow, or larger than any body may be
        return
