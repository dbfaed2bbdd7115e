"""How long each step of a request took, for the `Server-Timing` header."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Timings:
    """Seconds by step, added up over the threads that worked on one request."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Add the time of the block to `step`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._seconds[step] += time.perf_counter() - started

    def header(self, total: float) -> str:
        """`decode;dur=12.3, infer;dur=45.6, total;dur=40.1`, in milliseconds."""
        steps = {**self._seconds, "total": total}
        return ", ".join(f"{step};dur={1000 * seconds:.1f}" for step, seconds in steps.items())
