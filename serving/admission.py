"""A bounded door: so many requests inside, so many waiting, and a clear 503 for the next one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from serving.errors import Overloaded
from serving.metrics import Metrics
from serving.timing import Timings

RETRY_AFTER_SECONDS = 1


class Admission:
    """Limits how many requests are worked on at once and how many may wait for their turn."""

    def __init__(self, max_running: int, max_waiting: int, metrics: Metrics) -> None:
        self._places = asyncio.Semaphore(max_running)
        self._max_waiting = max_waiting
        self._waiting = 0
        self._inside = 0
        self._metrics = metrics

    @asynccontextmanager
    async def enter(self, timings: Timings) -> AsyncIterator[None]:
        """Hold one place, waiting for it if need be; raises Overloaded when the queue is full.

        Who has gone, or has no time left, waits no longer.
        """
        if self._places.locked() and self._waiting >= self._max_waiting:
            self._metrics.rejected.inc()
            raise Overloaded(
                f"{self._max_waiting} requests are waiting already; try again in a second",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        self._waiting += 1
        self._metrics.waiting.set(self._waiting)
        try:
            with timings.measure("queue"):
                await self._acquire(timings)
        finally:
            self._waiting -= 1
            self._metrics.waiting.set(self._waiting)
        self._inside += 1
        with self._metrics.running.track_inprogress():
            try:
                timings.check()
                timings.is_alone = self._is_one
                yield
            finally:
                self._inside -= 1
                self._places.release()

    def _is_one(self) -> bool:
        return self._inside == 1

    async def _acquire(self, timings: Timings) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        place, gone = asyncio.ensure_future(self._places.acquire()), asyncio.ensure_future(timings.gone.wait())
        try:
            await asyncio.wait({place, gone}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if place.done():
                self._places.release()
            raise
        finally:
            gone.cancel()
            place.cancel()  # nothing, if it was got
        if not place.done():
            timings.check()
