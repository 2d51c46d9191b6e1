"""What the tests of CuTe operations share: random layouts, and a judge of strided functions that knows only tables.

Implementation notes: the judge tries every ordered factorisation; it shares no code with the library's decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.cute.inttuple import IntTuple, flatten, unflatten

Flat = Sequence[tuple[int, int]]


def shapes(least: int = 1, greatest: int = 4) -> st.SearchStrategy[IntTuple]:
    """Nested shapes of at most five extents."""
    leaf: st.SearchStrategy[IntTuple] = st.integers(least, greatest)
    return st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5)


@st.composite
def layouts(draw: st.DrawFn, least: int = 1, low: int = -9, high: int = 20) -> CuteLayout:
    """Layouts of such shapes with any strides."""
    shape = draw(shapes(least))
    count = len(flatten(shape))
    strides = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    return CuteLayout(shape, unflatten(tuple(strides), shape))


def enumerate_layout(flat: Flat) -> list[int]:
    """The table of (extent, stride) modes, first mode fastest."""
    values = [0]
    for extent, stride in flat:
        values = [value + stride * digit for digit in range(extent) for value in values]
    return values


@cache
def factorisations(number: int) -> tuple[tuple[int, ...], ...]:
    """Every ordered way to write a number as a product of factors of at least 2."""
    if number == 1:
        return ((),)
    return tuple(
        (first, *rest)
        for first in range(2, number + 1)
        if number % first == 0
        for rest in factorisations(number // first)
    )


def is_strided(values: Sequence[int]) -> bool:
    """Whether some shape and strides have this table (which starts at 0)."""
    table = [int(value) for value in values]
    for extents in factorisations(len(table)):
        weight, flat = 1, []
        for extent in extents:
            flat.append((extent, table[weight]))
            weight *= extent
        if enumerate_layout(flat) == table:
            return True
    return False
