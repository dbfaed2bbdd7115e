import math

import pytest
import torch

from training.models.detector import Truth
from training.models.word_cells import SMALLEST, assign

STRIDE = 4


def truth_of(*rows, ignored=()):
    """Rows (cx, cy, w, h, degrees); `ignored` are numbers of rows."""
    boxes = [[*row[:4], math.cos(math.radians(row[4])), math.sin(math.radians(row[4]))] for row in rows]
    marks = [number in ignored for number in range(len(rows))]
    return Truth(torch.tensor(boxes, dtype=torch.float32).reshape(-1, 6), torch.tensor(marks, dtype=torch.bool))


def slow_assign(truth, size, cut):
    """Kind and word of each cell by the description, one cell and one word after another."""
    height, width = size
    words = [[float(value) for value in row] for row in truth.boxes]
    asked = [
        not bool(mark) and min(word[2], word[3]) >= SMALLEST for word, mark in zip(words, truth.ignored, strict=True)
    ]
    centres = {(y, x): ((x + 0.5) * STRIDE, (y + 0.5) * STRIDE) for y in range(height) for x in range(width)}

    def inside(word, place, rim):
        x, y = place[0] - word[0], place[1] - word[1]
        along, over = abs(x * word[4] + y * word[5]), abs(y * word[4] - x * word[5])
        return along <= word[2] / 2 - rim and over <= word[3] / 2 - rim

    kinds, owners = {}, {}
    for cell, place in centres.items():
        kinds[cell] = -1 if any(inside(w, place, 0) for w, own in zip(words, asked, strict=True) if not own) else 0
    for number in sorted(range(len(words)), key=lambda number: -words[number][2] * words[number][3]):
        if asked[number]:
            word = words[number]
            cells = [cell for cell, place in centres.items() if inside(word, place, cut * min(word[2], word[3]))]
            nearest = min(centres, key=lambda cell: math.dist(centres[cell], word[:2]))
            if all(abs(a - b) <= STRIDE for a, b in zip(centres[nearest], word[:2], strict=True)):
                cells.append(nearest)
            owners |= dict.fromkeys(cells, number)
    return {cell: 1 if cell in owners else kind for cell, kind in kinds.items()}, owners


@pytest.mark.parametrize("seed", range(6))
def test_the_slow_twin(seed):
    random = torch.Generator().manual_seed(seed)
    size = (12, 16)
    rows = torch.rand(9, 5, generator=random) * torch.tensor([70.0, 54, 50, 22, 360]) + torch.tensor([-3, -3, 1, 1, 0])
    truth = truth_of(*rows.tolist(), ignored=(1, 5))
    cells = assign(truth, size, STRIDE, 0.3)
    kinds, owners = slow_assign(truth, size, 0.3)
    assert cells.kinds.tolist() == [[kinds[y, x] for x in range(size[1])] for y in range(size[0])]
    row_by_row = sorted(owners)
    assert cells.hearts.nonzero().tolist() == [list(cell) for cell in row_by_row]
    assert cells.places.tolist() == [[(x + 0.5) * STRIDE, (y + 0.5) * STRIDE] for y, x in row_by_row]
    torch.testing.assert_close(cells.boxes, truth.boxes[[owners[cell] for cell in row_by_row]])
    counts = [list(owners.values()).count(owners[cell]) for cell in row_by_row]
    torch.testing.assert_close(cells.weights, 1 / torch.tensor(counts, dtype=torch.float32))


def test_each_word_weighs_the_same():
    truth = truth_of((40, 20, 60, 20, 0), (40, 50, 20, 8, 30), (100, 30, 30, 12, 90))
    cells = assign(truth, (16, 32), STRIDE, 0.3)
    words = {tuple(row) for row in cells.boxes.tolist()}
    assert len(words) == 3
    for word in words:
        own = (cells.boxes == torch.tensor(word)).all(dim=1)
        assert float(cells.weights[own].sum()) == pytest.approx(1)


def test_where_two_meet_the_smaller_word_has_the_cell():
    truth = truth_of((32, 32, 60, 40, 0), (32, 32, 12, 12, 0))
    for order in ([0, 1], [1, 0]):
        cells = assign(Truth(truth.boxes[order], truth.ignored), (16, 16), STRIDE, 0.3)
        middle = (cells.places - 32).abs().amax(dim=1) < 3
        assert middle.any()
        assert (cells.boxes[middle, 2] == 12).all()
        assert (cells.boxes[~middle, 2] == 60).any()


def test_a_small_word_has_the_cell_nearest_to_its_middle():
    cells = assign(truth_of((31, 17, 9, 4.5, 0)), (8, 16), STRIDE, 0.45)
    assert cells.places.tolist() == [[30, 18]]
    assert cells.weights.tolist() == [1]


def test_words_too_low_to_be_seen_are_not_asked_for():
    cells = assign(truth_of((32, 18, 40, SMALLEST - 0.1, 0)), (8, 16), STRIDE, 0.3)
    assert not cells.hearts.any()
    assert cells.kinds.unique().tolist() == [-1, 0]


def test_a_word_on_what_nobody_cares_for_is_asked_for():
    cells = assign(truth_of((32, 16, 50, 20, 0), (32, 16, 24, 12, 0), ignored=(0,)), (8, 16), STRIDE, 0.2)
    assert cells.kinds[0, 0] == 0
    assert cells.kinds[1, 2] == -1
    assert cells.kinds[3, 7] == 1


def test_a_word_whose_middle_is_elsewhere_has_no_cell():
    cells = assign(truth_of((-20, -20, 30, 10, 0), (100, 10, 30, 10, 0)), (8, 16), STRIDE, 0.3)
    assert not cells.hearts.any()
    assert cells.boxes.shape == (0, 6)


def test_no_words():
    cells = assign(truth_of(), (3, 5), STRIDE, 0.3)
    assert cells.kinds.tolist() == [[0] * 5] * 3
    assert cells.places.shape == (0, 2)
    assert cells.boxes.shape == (0, 6)
    assert cells.weights.shape == (0,)
