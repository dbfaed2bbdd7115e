"""A circuit breaker: what fails again and again is not asked until it is well, so that nobody waits in vain."""

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger()

FAILURES = 3  # in a row
LOOK_AGAIN_SECONDS = 0.25


class Breaker:
    """Open: refuse at once, and look after it in a thread of its own until it is well again."""

    def __init__(self, what: str, is_well: Callable[[], bool]) -> None:
        self._what, self._is_well = what, is_well
        self._lock = threading.Lock()
        self._failures = 0
        self._reason: str | None = None
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def reason(self) -> str | None:
        """Why it is open; None while it is not."""
        return self._reason

    def succeeded(self) -> None:
        """A call was answered."""
        self._failures = 0

    def failed(self, reason: str, *, surely: bool = False) -> None:
        """A call was not answered; `surely` says that the next one would fare no better."""
        with self._lock:
            self._failures += 1
            if self._reason is not None or (self._failures < FAILURES and not surely):
                return
            self._reason = reason
            log.error("circuit open", of=self._what, reason=reason)
            self._watcher = threading.Thread(target=self._watch, name="breaker", daemon=True)
            self._watcher.start()

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_AGAIN_SECONDS):
            if self._is_well():
                with self._lock:
                    self._failures, self._reason = 0, None
                log.info("circuit closed", of=self._what)
                return
