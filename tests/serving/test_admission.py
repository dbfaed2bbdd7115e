import asyncio

import pytest

from serving.admission import Admission
from serving.errors import DeadlineExceeded, Overloaded, RequestAbandoned
from serving.metrics import Metrics
from serving.timing import Timings


async def inside(door, timings=None):
    async with door.enter(timings or Timings()):
        return True


async def let_others_run():
    for _ in range(5):
        await asyncio.sleep(0)


def test_so_many_inside_so_many_waiting_and_no_more():
    async def scenario():
        metrics = Metrics()
        door = Admission(max_running=2, max_waiting=1, metrics=metrics)
        release = asyncio.Event()
        inside = 0
        most = 0

        async def visit():
            nonlocal inside, most
            async with door.enter(Timings()):
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
        async with door.enter(Timings()):
            waiting = asyncio.create_task(door.enter(Timings()).__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            second = asyncio.create_task(door.enter(Timings()).__aenter__())
            await asyncio.sleep(0)
            assert not second.done()
        await asyncio.wait_for(second, timeout=5)

    asyncio.run(scenario())


@pytest.mark.parametrize(("timings", "error"), [(Timings, RequestAbandoned), (lambda: Timings(0.03), DeadlineExceeded)])
def test_who_has_gone_or_is_late_waits_no_longer(timings, error):
    async def scenario():
        metrics = Metrics()
        door = Admission(max_running=1, max_waiting=1, metrics=metrics)
        waits = timings()
        async with door.enter(Timings()):
            waiting = asyncio.create_task(inside(door, waits))
            await asyncio.sleep(0.04)
            assert not waiting.done()
            assert metrics.registry.get_sample_value("readleaf_waiting_requests") == 1
            waits.abandon()
            with pytest.raises(error):
                await asyncio.wait_for(waiting, timeout=5)  # though nobody has left
            assert metrics.registry.get_sample_value("readleaf_waiting_requests") == 0
            assert waits.seconds_of("queue") >= 0.03
            another = asyncio.create_task(inside(door))  # its place in the queue is free again
            await let_others_run()
            assert not another.done()
        assert await asyncio.wait_for(another, timeout=5)
        assert metrics.registry.get_sample_value("readleaf_running_requests") == 0

    asyncio.run(scenario())


def test_who_comes_too_late_does_not_enter():
    async def scenario():
        metrics = Metrics()
        door = Admission(max_running=1, max_waiting=1, metrics=metrics)
        gone = Timings()
        gone.abandon()
        for timings, error in ((gone, RequestAbandoned), (Timings(0), DeadlineExceeded)):
            with pytest.raises(error):
                await inside(door, timings)
        assert metrics.registry.get_sample_value("readleaf_waiting_requests") == 0
        assert await asyncio.wait_for(inside(door), timeout=5)

    asyncio.run(scenario())


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_place_that_is_free_in_the_same_moment_is_not_lost(leaves_first):
    """The visitor inside leaves just when the one who waits has gone."""

    async def scenario():
        metrics = Metrics()
        door = Admission(max_running=1, max_waiting=2, metrics=metrics)
        first, release, gone = Timings(), asyncio.Event(), Timings()

        async def stay():
            async with door.enter(first):
                await release.wait()

        staying = asyncio.create_task(stay())
        await let_others_run()
        waiting, third = asyncio.create_task(inside(door, gone)), asyncio.create_task(inside(door))
        await let_others_run()
        if leaves_first:
            release.set()
            await asyncio.sleep(0)
            gone.abandon()
        else:
            gone.abandon()
            release.set()
        with pytest.raises(RequestAbandoned):
            await asyncio.wait_for(waiting, timeout=5)
        assert await asyncio.wait_for(third, timeout=5)
        await staying
        assert await asyncio.wait_for(inside(door), timeout=5)
        assert metrics.registry.get_sample_value("readleaf_running_requests") == 0
        assert metrics.registry.get_sample_value("readleaf_waiting_requests") == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("yields", range(6))
def test_a_visitor_cancelled_at_any_moment_takes_no_place_along(yields):
    async def scenario():
        door = Admission(max_running=1, max_waiting=1, metrics=Metrics())
        release = asyncio.Event()

        async def stay():
            async with door.enter(Timings()):
                await release.wait()

        staying = asyncio.create_task(stay())
        await let_others_run()
        waiting = asyncio.create_task(inside(door))
        await let_others_run()
        release.set()
        for _ in range(yields):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, staying, return_exceptions=True)
        assert await asyncio.wait_for(inside(door), timeout=5)

    asyncio.run(scenario())


def test_how_long_a_request_waited():
    async def scenario():
        door = Admission(max_running=1, max_waiting=1, metrics=Metrics())
        first, second = Timings(), Timings()
        async with door.enter(first):
            waiting = asyncio.create_task(inside(door, second))
            await asyncio.sleep(0.03)
        await waiting
        assert first.seconds_of("queue") < 0.03 <= second.seconds_of("queue")

    asyncio.run(scenario())
