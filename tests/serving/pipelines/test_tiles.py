"""Every pixel is looked at, and every word that fits into the overlap is whole in the tile that has it."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from serving.pipelines.tiles import COARSER, FIRST, OVERLAP, SMALL, TILE, shrinks, tiles

LONGEST = int(1.25 * TILE)  # that is not cut
sides = st.one_of(st.integers(1, 12_000), st.integers(LONGEST - 2, LONGEST + 2), st.integers(1, 40))
shares = st.floats(0, 1)


@settings(deadline=None)
@given(sides, sides)
def test_tiles_cover_the_picture_and_lie_inside(width, height):
    found = list(tiles(width, height))
    for tile in found:
        assert 0 <= tile.left < tile.right <= width
        assert 0 <= tile.top < tile.bottom <= height
        assert max(tile.width, tile.height) <= LONGEST
        assert tile.whole == (width, height)
    columns = sorted({(tile.left, tile.right) for tile in found})
    rows = sorted({(tile.top, tile.bottom) for tile in found})
    assert len(found) == len(columns) * len(rows)
    for parts, length in ((columns, width), (rows, height)):
        assert parts[0][0] == 0
        assert parts[-1][1] == length
        assert all(following[0] <= part[1] - OVERLAP for part, following in pairwise(parts))


@settings(deadline=None)
@given(sides)
def test_no_more_tiles_than_needed(length):
    """Tiles of the full size that overlap as little as they may would be as many."""
    count = len(list(tiles(length, 50)))
    fewest = 1
    while length > LONGEST and fewest * (TILE - OVERLAP) + OVERLAP < length:
        fewest += 1
    assert count == fewest


@settings(deadline=None)
@given(sides, sides, shares, shares, st.floats(1, OVERLAP), st.floats(1, OVERLAP))
@example(2000, 100, 0.5, 0.5, OVERLAP, 10)  # on the border of two tiles
def test_a_word_as_long_as_the_overlap_is_whole_where_it_is_held(width, height, x, y, wide, tall):
    """Whole but for what is outside of the picture itself."""
    x, y = x * width, y * height
    left, right = max(0, x - wide / 2), min(width, x + wide / 2)
    top, bottom = max(0, y - tall / 2), min(height, y + tall / 2)
    assert any(
        tile.left <= left + 1e-6
        and right <= tile.right + 1e-6
        and tile.top <= top + 1e-6
        and bottom <= tile.bottom + 1e-6
        for tile in tiles(width, height)
        if tile.holds(x - tile.left, y - tile.top)
    )


@settings(deadline=None)
@given(sides, sides, shares, shares)
def test_few_tiles_hold_the_same(width, height, x, y):
    """Neighbours share a border, or the little by which equal tiles overlap more than they must."""
    holding = [t for t in tiles(width, height) if t.holds(x * width - t.left, y * height - t.top)]
    assert 1 <= len(holding) <= 4


@pytest.mark.parametrize("off", [0.5, 2, 6])
def test_a_word_is_held_when_each_tile_sees_it_a_little_elsewhere(off):
    first, second = list(tiles(2400, 500))[:2]
    border = (second.left + first.right) / 2
    assert first.holds(border + off, 100) or second.holds(border - off - second.left, 100)


def test_what_lies_outside_is_held_by_none():
    [tile] = tiles(300, 200)
    assert tile.holds(0, 0)
    assert tile.holds(300, 200)
    assert not any(tile.holds(x, y) for x, y in ((-1, 100), (301, 100), (100, -1), (100, 201)))


@settings(deadline=None)
@given(sides, sides)
def test_looks_get_coarser_until_the_picture_is_small(width, height):
    found = shrinks(width, height)
    assert found[0] == (1 if max(width, height) <= SMALL else FIRST)
    assert all(following == COARSER * shrink for shrink, following in pairwise(found))
    assert max(width, height) / found[-1] <= SMALL <= LONGEST  # one tile
    assert all(max(width, height) / shrink > SMALL for shrink in found[:-1])


def test_shrinks_of_known_pictures():
    assert shrinks(1, 1) == shrinks(SMALL, SMALL) == [1]
    assert shrinks(100, SMALL + 1) == [FIRST]
    assert shrinks(1280, 720) == [FIRST, 4 * FIRST]
    assert shrinks(8000, 5000) == [FIRST, 4 * FIRST, 16 * FIRST]
