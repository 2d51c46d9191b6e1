"""Strategies for nested tuples, CuTe layouts, swizzles, and coordinate and symbolic layouts.

Implementation notes: an extent and its stride are drawn together, so that shrinking drops a whole mode; nesting is
drawn last, as groups of neighbours, and shrinks to flat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, E, Swizzle
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.testing.strategies.arguments import checked, refused

_STRIDES = st.integers(-12, 40)
_OFFSETS = st.integers(0, 40)
RANKS = st.integers(0, 7)
"""Sort keys for the order of modes; unlike a permutation, they do not depend on the number of modes."""
_GROUPS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=3)
Nest = Callable[[Sequence[Any]], Any]


def _nesting(draw: st.DrawFn, count: int) -> Nest:
    """Return a function that nests ``count`` leaves by grouping neighbours a few times; one leaf stays bare."""
    items: list[Any] = list(range(count))
    for start, length in draw(_GROUPS):
        start %= len(items)
        items[start : start + length] = [tuple(items[start : start + length])]

    def nested(leaves: Sequence[Any]) -> Any:
        def filled(item: Any) -> Any:
            return tuple(map(filled, item)) if isinstance(item, tuple) else leaves[item]

        return filled(items[0]) if len(items) == 1 else tuple(map(filled, items))

    return nested


@checked()
@st.composite
def int_tuples(
    draw: st.DrawFn, leaves: st.SearchStrategy[int] | None = None, *, max_leaves: int = 6, tuples_only: bool = False
) -> IntTuple:
    """Nested tuples of integers, like shapes.

    Args:
        leaves: Strategy for the integers; None for 1 to 6.
        max_leaves: Most integers.
        tuples_only: Exclude bare integers.
    """
    drawn = draw(st.lists(st.integers(1, 6) if leaves is None else leaves, min_size=1, max_size=max_leaves))
    found: IntTuple = _nesting(draw, len(drawn))(drawn)
    return (found,) if tuples_only and isinstance(found, int) else found


@checked()
def cute_layouts(
    *,
    max_leaves: int = 4,
    max_extent: int = 6,
    max_size: int | None = None,
    strides: st.SearchStrategy[int] | None = None,
    injective: bool = False,
    bijective: bool = False,
    power_of_two: bool = False,
) -> st.SearchStrategy[CuteLayout]:
    """CuTe layouts, nested or flat, compact or with any strides: broadcast, overlapping and negative ones included.

    Args:
        max_leaves: Most leaf modes.
        max_extent: Largest extent.
        max_size: Largest number of coordinates; None for no further bound.
        strides: Strategy for the strides; None for -12 to 40.
        injective: Only injective layouts, with non-negative strides.
        bijective: Only layouts whose values are 0, 1, ..., size - 1, each once.
        power_of_two: Only extents that are powers of two.
    """
    if strides is not None and (injective or bijective):
        raise refused("strides cannot be combined with injective or bijective")
    gap = 0 if bijective else 2 if injective else None
    return _cute_layouts(max_leaves, max_extent, max_size, _STRIDES if strides is None else strides, gap, power_of_two)


def clipped(extents: Sequence[int], max_size: int | None, power_of_two: bool) -> list[int]:
    """Return the extents, reduced so that their product is at most ``max_size``."""
    kept, size = [], 1
    for extent in extents:
        most = extent if max_size is None else min(extent, max_size // size)
        kept.append(1 << most.bit_length() - 1 if power_of_two else most)
        size *= kept[-1]
    return kept


def pitches(extents: Sequence[int], ranks: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """Return injective strides: modes of lower rank are faster, and each mode skips ``gap`` values.

    Example:
        >>> pitches([2, 3], [1, 0], [0, 0]), pitches([2, 3], [0, 0], [1, 0])
        ([3, 1], [2, 3])
    """
    strides, reach = [0] * len(extents), 0
    for place in sorted(range(len(extents)), key=ranks.__getitem__):
        strides[place] = reach + 1 + gaps[place]
        reach += (extents[place] - 1) * strides[place]
    return strides


@st.composite
def _cute_layouts(
    draw: st.DrawFn,
    max_leaves: int,
    max_extent: int,
    max_size: int | None,
    strides: st.SearchStrategy[int],
    gap: int | None,
    power_of_two: bool,
) -> CuteLayout:
    extents = st.integers(1, max_extent)
    if gap is not None:
        drawn = draw(st.lists(st.tuples(extents, RANKS, st.integers(0, gap)), min_size=1, max_size=max_leaves))
        shape = clipped([extent for extent, _, _ in drawn], max_size, power_of_two)
        stride = pitches(shape, [rank for _, rank, _ in drawn], [skipped for _, _, skipped in drawn])
        nested = _nesting(draw, len(shape))
        return CuteLayout(nested(shape), nested(stride))
    modes = draw(st.lists(st.tuples(extents, strides), min_size=1, max_size=max_leaves))
    shape = clipped([extent for extent, _ in modes], max_size, power_of_two)
    nested = _nesting(draw, len(modes))
    if draw(st.booleans()):  # drawn last, so that the earlier draws are the same either way
        return CuteLayout(nested(shape), nested([stride for _, stride in modes]))
    return CuteLayout(nested(shape))


@checked(unit=("element", "byte"), max_bits=(0, 20), max_base=(0, 20), max_gap=(0, 20))
def swizzles(
    unit: Literal["element", "byte"] = "element", *, max_bits: int = 3, max_base: int = 4, max_gap: int = 3
) -> st.SearchStrategy[Swizzle]:
    """Swizzles with shifts of either sign.

    Args:
        unit: ``"element"`` or ``"byte"``.
        max_bits: Most changed bits.
        max_base: Most unchanged low bits.
        max_gap: Most bits between the source and the target bits.
    """

    def build(bits: int, base: int, gap: int, down: bool) -> Swizzle:
        return Swizzle(bits, base, (bits + gap) * (-1 if down else 1), unit)

    return st.builds(build, st.integers(0, max_bits), st.integers(0, max_base), st.integers(0, max_gap), st.booleans())


@checked()
@st.composite
def composed_layouts(draw: st.DrawFn, *, max_stages: int = 1, bijective: bool = False) -> ComposedLayout:
    """Swizzles of a layout with non-negative strides, each at a small offset.

    Args:
        max_stages: Most swizzles.
        bijective: Only layouts whose values are 0, 1, ..., size - 1, each once; the offsets are then 0.
    """
    base = draw(cute_layouts(bijective=True, power_of_two=True) if bijective else cute_layouts(strides=_OFFSETS))
    room = base.size.bit_length() - 1
    layout: CuteLayout | ComposedLayout = base
    for _ in range(draw(st.integers(1, max_stages))):
        if bijective:  # source and target bits must be within the size
            bits = draw(st.integers(0, min(3, room // 2)))
            shift = draw(st.integers(bits, room - bits))
            base_bits = draw(st.integers(0, room - bits - shift))
            layout = ComposedLayout(Swizzle(bits, base_bits, shift * draw(st.sampled_from((1, -1)))), 0, layout)
        else:
            layout = ComposedLayout(draw(swizzles()), draw(_OFFSETS), layout)
    if not isinstance(layout, ComposedLayout):
        raise TypeError("a swizzle makes a composed layout")
    return layout


@checked()
def coordinate_layouts(*, max_modes: int = 3, max_extent: int = 5) -> st.SearchStrategy[CoordinateLayout]:
    """CuTe layouts whose values are coordinates of two leaves.

    Args:
        max_modes: Most modes.
        max_extent: Largest extent.
    """
    mode = st.tuples(st.integers(1, max_extent), st.integers(0, 1), st.integers(1, 3))

    def build(modes: list[tuple[int, int, int]]) -> CoordinateLayout:
        shape = tuple([extent for extent, _, _ in modes])
        return CoordinateLayout(shape, tuple([E(path) * scale for _, path, scale in modes]), (0, 0))

    return st.lists(mode, min_size=1, max_size=max_modes).map(build)


@checked()
def symbolic_layouts(*, names: Sequence[str] = ("M", "N"), max_modes: int = 3) -> st.SearchStrategy[SymbolicLayout]:
    """CuTe layouts with symbolic extents and strides, compact or not; valid for all sizes that are multiples of 4.

    Args:
        names: Names of the sizes.
        max_modes: Most modes.
    """
    known = tuple(names) if isinstance(names, (tuple, list)) else ()
    if not known or not all(isinstance(name, str) and name.isidentifier() for name in known):
        raise refused(f"names={names!r} must be a list of identifiers")
    return _symbolic_layouts(known, max_modes)


@st.composite
def _symbolic_layouts(draw: st.DrawFn, names: tuple[str, ...], max_modes: int) -> SymbolicLayout:
    sizes = (*names, "1", "2", "3", *[f"2*{name}" for name in names], *[f"{name}/4" for name in names])
    steps = ("0", "1", *names, "2", "-1", *[f"3*{name}" for name in names], "*".join(names[:2]))
    modes = draw(st.lists(st.tuples(st.sampled_from(sizes), st.sampled_from(steps)), min_size=1, max_size=max_modes))
    extents = [extent for extent, _ in modes]
    nested = _nesting(draw, len(modes))
    divided = [f"{name} % 4 == 0" for name in names if f"{name}/4" in extents]
    if draw(st.booleans()):
        return SymbolicLayout(nested(extents), nested([stride for _, stride in modes]), divided)
    return SymbolicLayout(nested(extents), assumptions=divided)
