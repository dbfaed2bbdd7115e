import re
import threading

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
