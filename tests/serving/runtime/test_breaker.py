import threading
import time

from serving.runtime.breaker import FAILURES, Breaker


def wait_until(condition):
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_it_opens_after_failures_in_a_row_and_closes_when_all_is_well():
    well = threading.Event()
    breaker = Breaker("a server", well.is_set)
    for _ in range(FAILURES - 1):
        breaker.failed("slow")
    breaker.succeeded()
    for _ in range(FAILURES - 1):
        breaker.failed("slow")
    assert breaker.reason is None
    breaker.failed("slower")
    assert breaker.reason == "slower"
    breaker.failed("the slowest")
    assert breaker.reason == "slower"
    well.set()
    wait_until(lambda: breaker.reason is None)
    breaker.failed("slow")
    assert breaker.reason is None  # it counts from the beginning
    breaker.close()


def test_it_opens_at_once_if_the_next_call_would_fare_no_better():
    breaker = Breaker("a server", lambda: False)
    breaker.failed("gone", surely=True)
    assert breaker.reason == "gone"
    breaker.close()
    assert "breaker" not in {thread.name for thread in threading.enumerate()}


def test_it_looks_again_each_time_it_was_opened():
    looks = []
    breaker = Breaker("a server", lambda: not looks.append(1))
    for count in (1, 2, 3):
        breaker.failed("gone", surely=True)
        wait_until(lambda: breaker.reason is None)
        assert len(looks) == count
    breaker.close()
