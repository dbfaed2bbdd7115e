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
            if self._failures >= FAILURES or surely:
                self._open(reason)
                self._watch()

    def doubted(self, reason: str) -> None:
        """A call was not answered, perhaps because nobody waited long enough: look whether all is well."""
        with self._lock:
            self._watch(reason)

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()

    def _open(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
            log.error("circuit open", of=self._what, reason=reason)

    def _watch(self, doubt: str | None = None) -> None:
        if self._watcher is None and not self._closing.is_set():
            self._watcher = threading.Thread(target=self._look, args=(doubt,), name="breaker", daemon=True)
            self._watcher.start()

    def _look(self, doubt: str | None) -> None:
        """Until it is well; a doubt is looked into at once."""
        while doubt is not None or not self._closing.wait(LOOK_AGAIN_SECONDS):
            well = self._answers()
            with self._lock:
                if well:
                    if self._reason is not None:
                        log.info("circuit closed", of=self._what)
                    self._failures, self._reason, self._watcher = 0, None, None
                    return
                if doubt is not None:
                    self._open(doubt)
            doubt = None

    def _answers(self) -> bool:
        try:
            return self._is_well()
        except Exception:  # whoever looks must not be lost
            log.exception("cannot look after it", of=self._what)
            return False
