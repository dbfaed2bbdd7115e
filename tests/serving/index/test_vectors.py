import threading

import numpy as np
import pytest

from serving.index.vectors import VectorIndex


def unit_rows(count, dim=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def index():
    found = VectorIndex(8)
    found.put(range(10, 60), unit_rows(50))
    return found


def test_the_nearest_by_brute_force(index):
    rows = unit_rows(50)
    query = unit_rows(1, seed=9)[0]
    expected = np.argsort(-(rows @ query))[:7] + 10
    found = index.search(query, 7)
    assert [number for number, _ in found] == expected.tolist()
    np.testing.assert_allclose([value for _, value in found], np.sort(rows @ query)[::-1][:7], atol=1e-6)


def test_more_than_there_is(index):
    assert len(index.search(unit_rows(1)[0], 1000)) == 50
    assert VectorIndex(8).search(unit_rows(1)[0], 5) == []


def test_among(index):
    query = unit_rows(50)[20]
    assert index.search(query, 3, among=[11, 30, 12])[0][0] == 30
    assert {number for number, _ in index.search(query, 9, among=[11, 12])} == {11, 12}
    assert index.search(query, 3, among=[]) == []
    assert index.search(query, 3, among=[9999]) == []


def test_an_id_is_replaced_not_added_twice(index):
    new = unit_rows(1, seed=5)
    index.put([30], new)
    assert len(index) == 50
    assert index.search(new[0], 1) == [(30, pytest.approx(1))]
    assert [number for number, _ in index.search(unit_rows(50)[20], 50)].count(30) == 1


def test_removed_is_gone(index):
    index.remove([30, 31, 777])
    assert len(index) == 48
    assert 30 not in index
    assert not {30, 31} & {number for number, _ in index.search(unit_rows(50)[20], 50)}
    index.put([30], unit_rows(50)[20:21])
    assert index.search(unit_rows(50)[20], 1)[0][0] == 30


def test_vectors_given_back(index):
    rows = unit_rows(50)
    index.put([30], unit_rows(1, seed=5))
    np.testing.assert_array_equal(
        index.vectors_of([59, 10, 30]), np.stack([rows[49], rows[0], unit_rows(1, seed=5)[0]])
    )
    assert index.vectors_of([10, 777]) is None
    assert index.vectors_of([]).shape == (0, 8)


def test_written_and_read(index, tmp_path):
    index.remove([15])
    index.write(tmp_path / "saved")
    again = VectorIndex.read(tmp_path / "saved", 8)
    query = unit_rows(1, seed=4)[0]
    assert again.search(query, 50) == index.search(query, 50)
    assert len(again) == 49
    with pytest.raises(ValueError, match="another kind"):
        VectorIndex.read(tmp_path / "saved", 16)
    (tmp_path / "saved").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="no index"):
        VectorIndex.read(tmp_path / "saved", 8)


@pytest.mark.parametrize("ids", [[1], [1, 1]])
def test_wrong_shapes(index, ids):
    with pytest.raises(ValueError, match="different ids of dimension 8"):
        index.put(ids, unit_rows(2, dim=8 if len(ids) == 2 else 4))


def test_searches_while_others_write(index):
    """Every search sees whole vectors: what it finds at similarity 1 is the item that was asked for."""
    rows, wrong, stop = unit_rows(50), [], threading.Event()

    def look():
        while not stop.is_set():
            found = index.search(rows[3], 1)
            if not found or found[0][0] != 13:
                wrong.append(found)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(300):
        index.put([1000 + turn], unit_rows(1, seed=turn + 100))
        index.remove([1000 + turn])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(index) == 50
