"""Copies of an index. Here is no GPU: a second index on the CPU stands in for the one that would be there."""

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.index import on_gpu, vectors
from serving.index.vectors import VectorIndex

DIM = 8
ROWS = np.random.default_rng(0).normal(size=(400, DIM)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)


@pytest.fixture
def small_copies(monkeypatch):
    monkeypatch.setattr(vectors, "WORTH_COPYING", 20)
    monkeypatch.setattr(vectors, "MOST_CHANGED", 5)


class Copies:
    """Makes copies, and counts them."""

    def __init__(self):
        self.count = 0

    def __call__(self, index):
        self.count += 1
        return faiss.clone_index(index)


STEPS = st.lists(st.tuples(st.sampled_from(["put", "remove"]), st.integers(0, 39), st.integers(0, 399)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, query=st.integers(0, 399), most=st.integers(1, 50))
def test_a_copy_finds_what_the_index_finds(steps, query, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "WORTH_COPYING", 20)
        patch.setattr(vectors, "MOST_CHANGED", 5)
        plain, copied = VectorIndex(DIM), VectorIndex(DIM, Copies())
        for index in (plain, copied):
            index.put(range(30), ROWS[:30])
            index.search(ROWS[0], 1)
        for what, number, row in steps:
            for index in (plain, copied):
                if what == "put":
                    index.put([number], ROWS[row : row + 1])
                else:
                    index.remove([number])
        expected, found = (index.search(ROWS[query], most) for index in (plain, copied))
        assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-6)
        assert len({number for number, _ in found}) == len(found)


def test_copies_are_made_now_and_then(small_copies):
    copies = Copies()
    index = VectorIndex(DIM, copies)
    index.put(range(19), ROWS[:19])
    index.search(ROWS[0], 3)
    assert copies.count == 0  # too few
    index.put(range(19, 30), ROWS[19:30])
    for _ in range(3):
        index.search(ROWS[0], 3)
    assert copies.count == 1
    for number in range(5):
        index.put([100 + number], ROWS[100 + number : 101 + number])
        assert index.search(ROWS[100 + number], 1)[0][0] == 100 + number  # at once, from what changed
    assert copies.count == 1
    index.remove([3])
    assert index.search(ROWS[3], 1)[0][0] != 3
    assert copies.count == 2


def test_a_card_that_fails(small_copies):
    """As when its memory is full: searching goes on without it."""

    def fail(_index):
        raise RuntimeError("CUDA error: out of memory\nand where")

    index = VectorIndex(DIM, fail)
    index.put(range(30), ROWS[:30])
    for number in (4, 5):
        assert index.search(ROWS[number], 1)[0][0] == number


@pytest.mark.parametrize(
    ("device", "gpus", "resources", "copied"),
    [
        ("cpu", 1, True, False),
        ("auto", 0, True, False),
        ("auto", 1, True, True),
        ("cuda", 1, True, True),
        ("cuda", 1, False, False),
    ],
)
def test_the_choice(monkeypatch, device, gpus, resources, copied):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: gpus)
    if resources:
        monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    assert (on_gpu.choose_copy(device) is not None) == copied


def test_the_choice_on_this_machine():
    assert on_gpu.choose_copy("auto") is None or faiss.get_num_gpus() > 0
