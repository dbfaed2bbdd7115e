"""The time of a request: how long each step took, by when it must be done, and whether anybody still waits."""

import asyncio
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from serving.errors import DeadlineExceeded, RequestAbandoned


class Timings:
    """Goes with a request through all threads that work on it. Work stops at the next step once it is of no use."""

    def __init__(self, seconds: float = math.inf) -> None:
        """`seconds` is what the caller allows from now on."""
        self.allowed = seconds
        self._ends = time.monotonic() + seconds
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._abandoned = threading.Event()
        self.gone = asyncio.Event()  # the same for what waits in the event loop
        self.is_alone: Callable[[], bool] = lambda: True  # whether no other request is worked on just now

    @property
    def left(self) -> float:
        """Seconds that are left; infinite if the caller has set no limit."""
        return self._ends - time.monotonic()

    def abandon(self) -> None:
        """Nobody waits for the answer any more; called in the event loop."""
        self._abandoned.set()
        self.gone.set()

    def check(self) -> None:
        """Raise if the work is of no use any more."""
        if self.left <= 0:
            raise self.late()
        if self._abandoned.is_set():
            raise RequestAbandoned("whoever asked has closed the connection")

    def late(self) -> DeadlineExceeded:
        """The error for a request whose time is up."""
        return DeadlineExceeded(
            f"the {self.allowed:g} seconds that X-Request-Timeout allowed are up; allow more, or send less at a time",
            headers={"Retry-After": "1"},
        )

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Add the time of the block to `step`; raises instead if the work is of no use any more."""
        self.check()
        started = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._seconds[step] += time.perf_counter() - started

    def seconds_of(self, step: str) -> float | None:
        """How long a step took; None if there was none."""
        return self._seconds.get(step)

    def header(self, total: float) -> str:
        """`decode;dur=12.3, infer;dur=45.6, total;dur=40.1`, in milliseconds."""
        steps = {**self._seconds, "total": total}
        return ", ".join(f"{step};dur={1000 * seconds:.1f}" for step, seconds in steps.items())
