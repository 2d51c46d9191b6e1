"""Sizes and offsets of groups: exact sums, and the first wrong entry named, judged by plain integers."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.groups import MOST_ROWS, checked_offsets, group_offsets, tile_bound

SIZES = st.integers(-2, 40) | st.sampled_from((0, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**70, -(2**70)))
ENTRIES = st.lists(SIZES | st.sampled_from((True, 1.0, None, "1", [1])), max_size=8)
ROWS = st.none() | st.integers(0, 100)


def whole(entry: object) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)


@given(ENTRIES, ROWS)
def test_sizes_are_summed_or_the_first_wrong_one_is_named(sizes: list[object], rows: int | None) -> None:
    most = MOST_ROWS if rows is None else rows
    wrong = [place for place, size in enumerate(sizes) if not whole(size)]
    if not wrong:
        sums = list(itertools.accumulate(sizes, initial=0))
        wrong = [place for place, size in enumerate(sizes) if size < 0 or sums[place + 1] > most]
    if wrong:
        with pytest.raises(MalformedError, match=rf"sizes\[{wrong[0]}\]"):
            group_offsets(sizes, rows)
    else:
        assert group_offsets(sizes, rows).tolist() == sums


@given(ENTRIES.filter(len), ROWS)
def test_offsets_never_fall_or_the_first_that_does_is_named(offsets: list[object], rows: int | None) -> None:
    most = MOST_ROWS if rows is None else rows
    wrong = [place for place, value in enumerate(offsets) if not whole(value)]
    wrong = wrong or [
        place for place, value in enumerate(offsets) if not 0 <= value <= most or (place and value < offsets[place - 1])
    ]
    if wrong:
        with pytest.raises(MalformedError, match=rf"offsets\[{wrong[0]}\]"):
            checked_offsets(offsets, rows)
    else:
        assert checked_offsets(offsets, rows).tolist() == offsets


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint64"])
def test_arrays_of_every_width_are_summed_without_wrapping(kind: str) -> None:
    sizes = np.full(1000, 127, dtype=kind)
    assert int(group_offsets(sizes)[-1]) == 127_000


@pytest.mark.parametrize("values", [None, 5, "12", b"12", {1: 2}, np.ones((2, 2), dtype=int), np.ones(2), [[1]]])
def test_what_is_not_a_list_of_integers_is_refused(values: object) -> None:
    for read in (group_offsets, checked_offsets):
        with pytest.raises(MalformedError, match="LA869"):
            read(values)
    with pytest.raises(MalformedError, match="one entry more"):
        checked_offsets([])


def test_the_bound_of_tiles_is_tight() -> None:
    @functools.cache
    def most(rows: int, groups: int, tile: int) -> int:
        if groups == 1:
            return -(-rows // tile)
        return max(-(-size // tile) + most(rows - size, groups - 1, tile) for size in range(rows + 1))

    for tile in (1, 2, 3, 8):
        for groups in range(1, 6):
            assert [tile_bound(n, groups, tile) for n in range(26)] == [most(n, groups, tile) for n in range(26)]
