"""One request and its answer: in time, or refused; and work that nobody waits for any more is told so."""

import asyncio
import math

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.errors import RequestInvalid
from serving.problems import problem_response
from serving.timing import Timings

log = structlog.get_logger()

TIMEOUT_HEADER = "x-request-timeout"
LONGEST_SECONDS = 3600.0


def allowed_seconds(headers: Headers) -> float:
    """What the caller gives with `X-Request-Timeout`, in seconds; infinite if nothing. Raises RequestInvalid."""
    given = headers.get(TIMEOUT_HEADER)
    if given is None:
        return math.inf
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_SECONDS:
        raise RequestInvalid(
            f"X-Request-Timeout is {given!r:.40}; it must be seconds above 0, up to {LONGEST_SECONDS:g}"
        )
    return seconds


class Exchange:
    """Stands between the server and the app while one request is answered."""

    def __init__(self, receive: Receive, send: Send, timings: Timings) -> None:
        self._receive, self._send, self._timings = receive, send, timings
        self._started = self._closed = False
        self._watcher: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, scope: Scope, left_behind: set[asyncio.Task[None]]) -> None:
        """Let the app answer. When its time is up it is answered for, and goes on to its next step in `left_behind`.

        It is not cancelled: a write that has begun is finished, as ever.
        """
        work = asyncio.ensure_future(app(scope, self.receive, self.send))
        timeout = None if math.isinf(self._timings.allowed) else max(0.0, self._timings.left)
        try:
            await asyncio.wait({work}, timeout=timeout)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            if self._watcher is not None:
                self._watcher.cancel()
        if work.done():
            return work.result()
        self._timings.abandon()
        left_behind.add(work)
        work.add_done_callback(left_behind.discard)
        work.add_done_callback(_note_failure)
        if not self._started:
            self._closed = True
            await problem_response(self._timings.late(), scope["request_id"])(scope, self._receive, self._send)
            return None
        return await work  # half an answer helps nobody

    async def receive(self) -> Message:
        """The app's next part of the body; after the last one, watch for a client that goes away."""
        if self._watcher is not None:
            await self._timings.gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._timings.abandon()
        elif not message.get("more_body", False):
            self._watcher = asyncio.ensure_future(self._watch())
        return message

    async def send(self, message: Message) -> None:
        """A part of the app's answer; lost if the request was answered already."""
        if not self._closed:
            self._started = True
            await self._send(message)

    async def _watch(self) -> None:
        if (await self._receive())["type"] == "http.disconnect":
            self._timings.abandon()


def _note_failure(work: "asyncio.Task[None]") -> None:
    if work.cancelled() or (error := work.exception()) is None:
        return
    if not isinstance(error, ClientDisconnect):  # it hung up while it still sent its pictures
        log.error("a request failed after its time was up", reason=repr(error))
