"""Divides and products against a judge that only looks at tables.

The judge tiles an interval greedily: the least number a tile has not covered must start its next copy. It then decides
by trying every ordered factorisation whether the reordered table is strided along every mode. It shares no code with
the library's decision.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strided_judge import enumerate_layout, is_strided

from layoutalg.cute import (
    CuteLayout,
    blocked_product,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutalg.ground.errors import LayoutError

Table = npt.NDArray[np.int64]
Flat = tuple[tuple[int, int], ...]


def copies(offsets: list[int], count: int) -> list[int] | None:
    """Starts of the first ``count`` disjoint copies of a set with least element 0 that leave no gap, or None."""
    distinct = set(offsets)
    if min(distinct) < 0:
        return None
    covered: set[int] = set()
    starts: list[int] = []
    while len(starts) < count:
        start = next(number for number in range(len(covered) + 1) if number not in covered)
        fresh = {start + offset for offset in distinct}
        if fresh & covered:
            return None
        covered |= fresh
        starts.append(start)
    return starts


def judge_divide(layout: CuteLayout, tile: CuteLayout) -> list[int] | None:
    """The table of A o (T, C), or None where there is no such layout."""
    values, offsets = enumerate_layout(layout.flat), enumerate_layout(tile.flat)
    distinct = len(set(offsets))
    kernel = 1
    for extent, stride in tile.flat:
        kernel *= extent if stride == 0 else 1
    if distinct * kernel != len(offsets) or len(values) % distinct:
        return None
    starts = copies(offsets, len(values) // distinct)
    if starts is None or {s + o for s in starts for o in offsets} != set(range(len(values))):
        return None
    table = [values[start + offset] for start in starts for offset in offsets]
    weight = 1
    total = [0]
    for extent in [*[extent for extent, _ in tile.flat], len(starts)]:
        run = table[::weight][:extent] if extent > 1 else [0]
        if not is_strided([value - table[0] for value in run]):
            return None
        total = [a + b for b in run for a in total]
        weight *= extent
    return table if total == table else None


@st.composite
def any_layouts(draw: st.DrawFn, top: int = 6, high: int = 29, low: int = 0, most: int = 3) -> CuteLayout:
    extents = draw(st.lists(st.integers(1, top), min_size=1, max_size=most))
    strides = draw(st.lists(st.integers(low, high), min_size=len(extents), max_size=len(extents)))
    return CuteLayout(tuple(extents), draw(st.sampled_from([None, tuple(strides), tuple(strides)])))


@st.composite
def chains(draw: st.DrawFn, top: int = 4) -> CuteLayout:
    """Layouts with whole gaps between their modes, a few of stride 0."""
    modes = []
    current = 1
    for _ in range(draw(st.integers(1, 3))):
        current *= draw(st.sampled_from([1, 1, 1, 2, 3]))
        extent = draw(st.integers(1, top))
        modes.append((extent, draw(st.sampled_from([current] * 11 + [0]))))
        current *= extent
    modes = draw(st.permutations(modes))
    return CuteLayout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes]))


@st.composite
def divide_cases(draw: st.DrawFn) -> tuple[CuteLayout, CuteLayout]:
    layout = draw(any_layouts())
    tile = draw(chains(3) | any_layouts(4, 7, -1, 2))
    if layout.size % max(1, tile.size) and draw(st.integers(0, 9)) < 7:
        grown = (*[extent for extent, _ in layout.flat], tile.cosize)
        layout = CuteLayout(grown, (*[stride for _, stride in layout.flat], draw(st.integers(1, 59))))
    return layout, tile


@given(divide_cases())
@settings(max_examples=800, deadline=None)
def test_divide_is_exact_or_rightly_refused(case: tuple[CuteLayout, CuteLayout]) -> None:
    layout, tile = case
    assume(layout.size <= 600)
    truth = judge_divide(layout, tile)
    try:
        result = logical_divide(layout, tile)
    except LayoutError:
        assert truth is None
        return
    assert result.table().tolist() == truth
    assert result[0].size == tile.size
    assert result.rank == 2


def judge_product(block: CuteLayout, tiler: CuteLayout) -> list[int] | None:
    offsets, order = enumerate_layout(block.flat), enumerate_layout(tiler.flat)
    kernel = 1
    for extent, stride in block.flat:
        kernel *= extent if stride == 0 else 1
    if len(set(offsets)) * kernel != len(offsets):
        return None
    starts = copies(offsets, max(order) + 1)
    if starts is None:
        return None
    places = [starts[number] for number in order]
    weight = 1
    total = [0]
    for extent, _ in tiler.flat:
        run = places[::weight][:extent]
        if not is_strided(run):
            return None
        total = [a + b for b in run for a in total]
        weight *= extent
    return [place + offset for place in places for offset in offsets] if total == places else None


def tiles(block: CuteLayout) -> bool:
    """Whether some number of copies covers an interval."""
    offsets = set(enumerate_layout(block.flat))
    for count in range(1, 4 * max(offsets) + 2):
        starts = copies(sorted(offsets), count)
        if starts is None:
            return False
        if {s + o for s in starts for o in offsets} == set(range(count * len(offsets))):
            return True
    return False


def check_zipped(block: CuteLayout, tiler: CuteLayout, result: CuteLayout) -> None:
    offsets = sorted(enumerate_layout(result.flat))
    if len(set(enumerate_layout(tiler.flat))) == tiler.size and len(set(enumerate_layout(block.flat))) == block.size:
        assert len(set(offsets)) == len(offsets)  # the copies are disjoint
    assert zipped_product(block, tiler) == result
    assert list(tiled_product(block, tiler)) == [result[0], *result[1]]
    assert list(flat_product(block, tiler)) == [*result[0], *result[1]]
    blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    assert sorted(enumerate_layout(blocked.flat)) == sorted(enumerate_layout(raked.flat)) == offsets
    assert blocked.rank == raked.rank == max(block.rank, tiler.rank)
    first = [*block, *[CuteLayout(1, 0)] * (blocked.rank - block.rank)]
    for mode, other, part in zip(blocked, raked, first, strict=True):
        assert mode[0] == other[1] == part
        assert mode[1] == other[0]


@given(chains() | any_layouts(4, 9), any_layouts(3, 6))
@settings(max_examples=700, deadline=None)
def test_product_is_exact_or_rightly_refused(block: CuteLayout, tiler: CuteLayout) -> None:
    truth = judge_product(block, tiler)
    try:
        result = logical_product(block, tiler)
    except LayoutError as error:
        assert truth is None or error.diagnostic.code == "LA134"
        if truth is not None:  # a single copy of a block that tiles nothing
            assert tiler.cosize == 1 or not tiles(block)
        return
    assert result.table().tolist() == truth
    check_zipped(block, tiler, result)


@pytest.mark.parametrize("size", [20, 30, 40])
def test_large_domains(size: int) -> None:
    generator = np.random.default_rng(size)
    half = 2 ** (size // 2)
    layout = CuteLayout((half, 2 ** (size - size // 2)), (2 ** (size - size // 2), 1))
    result = zipped_divide(layout, (half // 4, 64))
    multiplied = logical_product(CuteLayout((half, 16), (16, 1)), CuteLayout((2**10, 2**8), (2**8, 1)))
    for _ in range(50):
        tile, rest = int(generator.integers(result[0].size)), int(generator.integers(result[1].size))
        (a, b), (c, d) = divmod(tile, half // 4)[::-1], divmod(rest, 4)[::-1]
        assert result(tile, rest) == layout(a + c * (half // 4), b + d * 64)
        inside, copy = int(generator.integers(half * 16)), int(generator.integers(2**18))
        start = (copy % 2**10 * 2**8 + copy // 2**10) * half * 16
        assert multiplied(inside, copy) == multiplied[0](inside) + start
