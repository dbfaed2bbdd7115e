import asyncio
import math
import re
import threading
import time

import pytest

from serving.errors import DeadlineExceeded, RequestAbandoned
from serving.timing import Timings


def test_steps_add_up_over_threads():
    timings = Timings()

    def work():
        for _ in range(200):
            with timings.measure("decode"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert re.fullmatch(r"decode;dur=\d+\.\d, total;dur=1500\.0", timings.header(total=1.5))


def test_a_failing_step_counts_too():
    timings = Timings()
    try:
        with timings.measure("infer"):
            raise ValueError
    except ValueError:
        pass
    assert "infer;dur=" in timings.header(total=0)


def test_how_long_a_step_took():
    timings = Timings()
    assert timings.seconds_of("queue") is None
    with timings.measure("queue"):
        time.sleep(0.01)
    assert timings.seconds_of("queue") >= 0.01
    assert timings.seconds_of("infer") is None


def test_without_a_limit_there_is_time_for_ever():
    timings = Timings()
    assert timings.left == timings.allowed == math.inf
    timings.check()


def test_time_runs_out():
    timings = Timings(0.05)
    assert 0 < timings.left <= 0.05
    timings.check()
    with timings.measure("decode"):
        time.sleep(0.06)  # what has begun is finished
    assert timings.left < 0
    with pytest.raises(DeadlineExceeded, match=r"the 0\.05 seconds that X-Request-Timeout allowed are up") as late:
        timings.check()
    assert late.value.headers == {"Retry-After": "1"}
    with pytest.raises(DeadlineExceeded), timings.measure("infer"):
        pytest.fail("the next step must not begin")
    assert timings.seconds_of("infer") is None


def test_nothing_is_done_for_who_has_gone():
    timings = Timings(60)
    timings.abandon()
    with pytest.raises(RequestAbandoned, match="closed the connection"):
        timings.check()
    with pytest.raises(RequestAbandoned), timings.measure("infer"):
        pytest.fail("the next step must not begin")


def test_who_is_late_and_gone_is_late():
    """The service itself abandons a request whose time is up."""
    timings = Timings(0)
    timings.abandon()
    with pytest.raises(DeadlineExceeded):
        timings.check()


def test_the_event_loop_and_all_threads_hear_of_it():
    async def scenario():
        timings = Timings()
        waiting = asyncio.create_task(timings.gone.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        timings.abandon()
        await asyncio.wait_for(waiting, timeout=5)
        with pytest.raises(RequestAbandoned):
            await asyncio.to_thread(timings.check)

    asyncio.run(scenario())
