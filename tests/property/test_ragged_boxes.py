"""Boxes of segments: covers judged by searching all of them, and by rows counted one by one."""

from __future__ import annotations

import functools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.synth.ragged import boxes
from layoutalg.synth.ragged.segments import BOX_STRATEGIES

POWERS = (1, 2, 4, 8, 16)


@functools.cache
def fewest_cover(length: int, tile: int) -> int:
    """The fewest boxes of powers of two up to the tile that cover rows 0 to length - 1 and no other.

    The box over the first row that is left may begin at any row up to it; a later end is never worse.
    """
    if length == 0:
        return 0
    reached, steps = 0, 0
    while reached < length:  # all covers in steps: the ends that so many boxes can reach
        ends = [start + height for height in POWERS if height <= tile
                for start in range(reached + 1) if start + height <= length]  # fmt: skip
        reached, steps = max(ends), steps + 1
    return steps


@functools.cache
def fewest_parts(length: int, tile: int) -> int:
    """The fewest powers of two up to the tile with this sum."""
    if length == 0:
        return 0
    return 1 + min(fewest_parts(length - height, tile) for height in POWERS if height <= min(tile, length))


@pytest.mark.parametrize("tile", POWERS)
def test_boxes_of_every_length_are_the_fewest_of_their_strategy(tile: int) -> None:
    for length in range(5 * tile + 3):
        found = {strategy: boxes(length, tile, strategy) for strategy in BOX_STRATEGIES}
        whole, rest = divmod(length, tile)
        least = -(-length // tile)
        assert len(found["exact_pool"]) == fewest_parts(length, tile)
        assert len(found["overlap_pool"]) == whole + fewest_cover(rest, tile)
        assert len(found["shift_back"]) == fewest_cover(length, tile)
        assert len(found["clip"]) == least
        if length >= tile:
            assert len(found["shift_back"]) == least
            assert {height for height, _ in found["shift_back"]} == {tile}


@given(st.integers(0, 3000), st.sampled_from([1, 8, 64, 128, 24, 100]), st.sampled_from(BOX_STRATEGIES))
def test_boxes_cover_the_rows_inside(length: int, tile: int, strategy: str) -> None:
    found = boxes(length, tile, strategy)
    counts = [0] * (length + tile)
    for height, first in found:
        assert height == tile or (height < tile and height & (height - 1) == 0)
        assert first >= 0
        for row in range(first, first + height):
            counts[row] += 1
    assert min(counts[:length], default=1) >= 1
    if strategy == "clip":
        assert all(height == tile for height, _ in found)
    else:
        assert not any(counts[length:])
    if strategy in ("exact_pool", "clip"):
        assert max(counts, default=1) <= 1
    assert all(first <= second for (_, first), (_, second) in pairwise(found))


@given(st.lists(st.integers(0, 300), max_size=6), st.sampled_from(BOX_STRATEGIES))
def test_several_segments_are_those_of_each(lengths: list[int], strategy: str) -> None:
    assert boxes(lengths, 64, strategy) == [boxes(length, 64, strategy) for length in lengths]
    assert boxes(tuple(lengths), 64, strategy) == boxes(lengths, 64, strategy)


def test_bad_segments_are_refused() -> None:
    for wrong in (-1, 1.0, True, None, "7"):
        with pytest.raises(MalformedError, match="segment_rows"):
            boxes(wrong, 64, "clip")  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match=r"segment_rows\[1\]"):
        boxes([3, -1], 64, "clip")
    for tile in (0, -8, 2.0):
        with pytest.raises(MalformedError, match="tile_rows"):
            boxes(3, tile, "clip")  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="strategy"):
        boxes(3, 64, "boxes")
    with pytest.raises(BudgetError):
        boxes(2**60, 1, "exact_pool")
