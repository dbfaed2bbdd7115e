import asyncio

import pytest

from serving.admission import Admission
from serving.errors import Overloaded
from serving.metrics import Metrics


def test_so_many_inside_so_many_waiting_and_no_more():
    async def scenario():
        metrics = Metrics()
        door = Admission(max_running=2, max_waiting=1, metrics=metrics)
        release = asyncio.Event()
        inside = 0
        most = 0

        async def visit():
            nonlocal inside, most
            async with door.enter():
                inside += 1
                most = max(most, inside)
                await release.wait()
                inside -= 1

        visitors = [asyncio.create_task(visit()) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await visit()
        assert refused.value.headers == {"Retry-After": "1"}
        assert metrics.registry.get_sample_value("readleaf_waiting_requests") == 1
        assert metrics.registry.get_sample_value("readleaf_running_requests") == 2
        release.set()
        await asyncio.gather(*visitors)
        assert most == 2
        await visit()  # there is room again
        assert metrics.registry.get_sample_value("readleaf_rejected_requests_total") == 1
        assert metrics.registry.get_sample_value("readleaf_running_requests") == 0

    asyncio.run(scenario())


def test_a_visitor_who_leaves_while_waiting_gives_its_place_back():
    async def scenario():
        door = Admission(max_running=1, max_waiting=1, metrics=Metrics())
        async with door.enter():
            waiting = asyncio.create_task(door.enter().__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            second = asyncio.create_task(door.enter().__aenter__())
            await asyncio.sleep(0)
            assert not second.done()
        await asyncio.wait_for(second, timeout=5)

    asyncio.run(scenario())
