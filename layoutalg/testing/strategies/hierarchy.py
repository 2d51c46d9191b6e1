"""Strategies for bijections and for tiles over named levels."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from layoutalg.testing.strategies.arguments import checked
from layoutalg.testing.strategies.maps import sheared
from layoutalg.testing.strategies.strided import RANKS, pitches

Kinds = tuple[str, ...]
_PLACES = st.integers(0, 2**16)


def _factors(draw: st.DrawFn, size: int) -> list[int]:
    """Extents with this product; shrinks to a single one."""
    extents = []
    while size > 1:
        divisors = [n for n in range(size, 1, -1) if size % n == 0]
        extents.append(draw(st.sampled_from(divisors * 2)))  # never a single choice, which would shrink to primes
        size //= extents[-1]
    return extents or [1]


def _size(draw: st.DrawFn) -> int:
    return math.prod(draw(st.lists(st.integers(1, 6), min_size=1, max_size=2)))


def swapped(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A permutation of [0, size) as a list of swaps; shrinks to no swaps."""
    values = list(range(size))
    for one, other in draw(st.lists(st.tuples(_PLACES, _PLACES), max_size=64)):
        one, other = one % size, other % size
        values[one], values[other] = values[other], values[one]
    return tuple(values)


@checked()
def bijections(size: int | None = None) -> st.SearchStrategy[DigitMap | TableMap]:
    """Bijections of [0, size): permuted and reversed digits, mixed bits for a power of two, or a table.

    Args:
        size: Number of points; None for up to 36.
    """
    return _bijections(size, ("digits", "bits", "table"))


@checked()
def digit_maps(size: int | None = None) -> st.SearchStrategy[DigitMap]:
    """Bijections that permute digits or mix bits; ``size`` as for ``bijections``."""
    found: st.SearchStrategy[DigitMap] = _bijections(size, ("digits", "bits"))  # type: ignore[assignment]
    return found


@st.composite
def _bijections(draw: st.DrawFn, size: int | None, kinds: Kinds) -> DigitMap | TableMap:
    size = _size(draw) if size is None else size
    kind = draw(st.sampled_from([kind for kind in kinds if kind != "bits" or size.bit_count() == 1] * 2))
    if kind == "bits":
        return DigitMap.from_bits(tuple(sheared(draw, size.bit_length() - 1)), draw(st.integers(0, size - 1)))
    if kind == "table":
        return TableMap(swapped(draw, size))
    extents = _factors(draw, size)
    strides = pitches(extents, [draw(RANKS) for _ in extents], [0] * len(extents))
    strides = [-stride if draw(st.booleans()) else stride for stride in strides]
    return DigitMap(tuple(zip(extents, strides, strict=True)))


@checked()
@st.composite
def boxes(draw: st.DrawFn, size: int | None = None, *, name: str = "a") -> Box:
    """Boxes of named axes.

    Args:
        size: Number of points; None for up to 36.
        name: Prefix of the axis names.
    """
    extents = _factors(draw, _size(draw) if size is None else size)
    return Box(tuple([(f"{name}{place}", extent) for place, extent in enumerate(extents)]))


@checked()
@st.composite
def guards(draw: st.DrawFn, size: int | None = None) -> Guard:
    """Predicates on boxes; ``size`` as for ``bijections``."""
    box = draw(boxes(size, name="g"))
    bounds = tuple([extent - draw(st.integers(0, extent)) for _, extent in box.axes])
    return Guard(draw(bijections(box.size)), box, bounds)


@checked()
@st.composite
def hierarchical_layouts(draw: st.DrawFn, *, size: int | None = None, partial: bool = False) -> HierarchicalLayout:
    """Bijections between two named boxes.

    Args:
        size: Number of points; None for up to 36.
        partial: Whether a guard may exclude points.
    """
    size = _size(draw) if size is None else size
    found = (draw(guards(size)),) if partial else ()
    return HierarchicalLayout(draw(boxes(size, name="s")), draw(boxes(size, name="t")), draw(bijections(size)), found)
