"""A bounded door: so many requests inside, so many waiting, and a clear 503 for the next one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from serving.errors import Overloaded
from serving.metrics import Metrics

RETRY_AFTER_SECONDS = 1


class Admission:
    """Limits how many requests are worked on at once and how many may wait for their turn."""

    def __init__(self, max_running: int, max_waiting: int, metrics: Metrics) -> None:
        self._places = asyncio.Semaphore(max_running)
        self._max_waiting = max_waiting
        self._waiting = 0
        self._metrics = metrics

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Hold one place, waiting for it if need be; raises Overloaded when the queue is full."""
        if self._places.locked() and self._waiting >= self._max_waiting:
            self._metrics.rejected.inc()
            raise Overloaded(
                f"{self._max_waiting} requests are waiting already; try again in a second",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        self._waiting += 1
        self._metrics.waiting.set(self._waiting)
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
            self._metrics.waiting.set(self._waiting)
        with self._metrics.running.track_inprogress():
            try:
                yield
            finally:
                self._places.release()
