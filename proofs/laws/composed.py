"""Layouts under swizzles and offsets: their values, their one spelling, compositions and inverses.

Main statements: a composed layout is g o L with g a stack of swizzles and offsets, a bijection of the integers. What
rearranges the domain acts on L alone; what composes after g moves a swizzle, or is decided on the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    coalesce,
    composition,
    group,
    left_inverse,
    logical_divide,
    right_inverse,
    upcast,
    zipped_divide,
)
from layoutalg.cute.fit import simplify, strided_form
from layoutalg.cute.swizzle import IDENTITY, Cute, Stages, fused
from layoutalg.ground.digits import span
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.laws.composition import strided_on
from layoutalg.proofs.laws.engines import bit_vectors, enumerated
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.trial import Trial

_SWIZZLES = (Swizzle(1, 0, 1), Swizzle(2, 0, 2), Swizzle(1, 1, -2), Swizzle(2, 1, 3))
_BASES = (
    CuteLayout((4, 4)), CuteLayout((4, 4), (4, 1)), CuteLayout((3, 4), (4, 1)), CuteLayout((2, (2, 3)), (2, (1, 8))),
    CuteLayout(6, 3), CuteLayout((4, 2), (-1, 4)), CuteLayout((2, 4), (0, 2)), CuteLayout(1, 0),
)  # fmt: skip
_STACKS: tuple[Stages, ...] = (
    *[((swizzle, offset),) for swizzle in _SWIZZLES for offset in (0, 3, 8)],
    ((IDENTITY, 5),),
    ((IDENTITY, 5), (Swizzle(1, 0, 1), 2)),
    ((Swizzle(1, 0, 1), 4), (Swizzle(2, 0, 2), 1)),
    ((Swizzle(2, 0, 2), 0), (Swizzle(2, 0, 2), 0)),
)
_CASES = "16 stacks of at most two swizzles over 8 layouts"
_WHY = (
    "a swizzle of given bits on a layout of given strides is decided over F2 or by its values; the laws of swizzles "
    "alone, and of the layouts, are proved for all values"
)


def _moved(stages: Stages, value: Any) -> Any:
    """Apply a stack by the definition: add, then xor the bits picked."""
    for swizzle, offset in reversed(stages):
        value = value + offset
        picked = value & swizzle.source_mask
        value = value ^ (picked >> swizzle.shift if swizzle.shift >= 0 else picked << -swizzle.shift)
    return value


def _one_spelling(trial: Trial, fuse: Callable[[Stages], Stages] = fused) -> None:
    o, p, q, x = [trial.bits(name, 12) for name in "opqx"]
    outer, inner = _SWIZZLES[3], _SWIZZLES[2]
    for stages in (((outer, o), (IDENTITY, p), (inner, q)), ((IDENTITY, o), (outer, p), (IDENTITY, q))):
        found = fuse(stages)
        trial.claim(_moved(found, x) == _moved(stages, x), "the stack keeps its values")
        trial.claim(all(swizzle.bits for swizzle, _ in found[1:]), "an offset alone only stands outermost")


def _to_the_outside(stages: Stages) -> Stages:
    """Bring offsets that stand alone to the stage applied before."""
    kept: list[tuple[Swizzle, Any]] = []
    for swizzle, offset in reversed(stages):
        if swizzle.bits or not kept:
            kept.append((swizzle, offset))
        else:
            kept[-1] = (kept[-1][0], kept[-1][1] + offset)
    return tuple(kept[::-1])


def _layout(stages: Stages, base: CuteLayout) -> ComposedLayout:
    found: Cute = base
    for swizzle, offset in reversed(stages):
        found = ComposedLayout(swizzle, offset, found)
    return found  # type: ignore[return-value]


def every_stack() -> Iterator[ComposedLayout]:
    """Yield every stack over every layout."""
    return (_layout(stages, base) for stages, base in product(_STACKS, _BASES))


def _evaluated(layout: ComposedLayout, table: Callable[[ComposedLayout], Any] = ComposedLayout.table) -> str | None:
    values = [_moved(layout.stages, int(offset)) for offset in layout.base.table()]
    if [int(value) for value in table(layout)] != values:
        return "the table has other values"
    if [layout(i) for i in range(layout.size)] != values or layout.apply(list(range(layout.size))).tolist() != values:
        return "a call or an array of coordinates gives another value"
    if layout.value_range() != (min(values), max(values)):
        return "the range is not that of the values"
    periodic = all(_moved(layout.stages, v + layout.period) == _moved(layout.stages, v) + layout.period for v in values)
    return None if periodic else "the stack does not commute with its period"


def _large() -> Iterator[ComposedLayout]:
    bases = [CuteLayout((1025, 1024), stride) for stride in ((1, 1025), (1024, 1), (-3, 7))]
    stacks = [_STACKS[1], ((Swizzle(3, 2, -4), 6), (Swizzle(2, 0, 2), 1))]
    return (_layout(stages, base) for stages, base in product(stacks, bases))


def _ranged(
    layout: ComposedLayout, extremes: Callable[[ComposedLayout], tuple[int, int]] = ComposedLayout.value_range
) -> str | None:
    values = layout.table()
    return None if extremes(layout) == (values.min(), values.max()) else "the range is not that of the values"


def _of_the_ends(layout: ComposedLayout) -> tuple[int, int]:
    """Take the values at the least and at the greatest offset."""
    low, high = span(layout.base.flat)
    return _moved(layout.stages, low), _moved(layout.stages, high)


def _offset_after(layout: ComposedLayout) -> Any:
    """Add the offset behind the swizzle."""
    return ComposedLayout(layout.outer, 0, layout.inner).table() + layout.offset


def _same_function(layout: ComposedLayout, operation: Callable[[ComposedLayout], Cute] = simplify) -> str | None:
    found = operation(layout)
    if found.table().tolist() != layout.table().tolist():
        return "the function changed"
    count = [len([0 for swizzle, _ in getattr(each, "stages", ()) if swizzle.bits]) for each in (found, layout)]
    if count[0] > count[1]:
        return "there are more swizzles than before"
    return None if operation is not simplify or simplify(found) == found else "simplifying again changes the form"


def _plain(layout: ComposedLayout, form: Callable[..., CuteLayout] = strided_form) -> str | None:
    values = layout.table().tolist()
    exists = strided_on(values, [extent for extent, _ in layout.base.flat])
    try:
        found = form(layout, "a law")
    except RepresentabilityError:
        return "a strided function is refused" if exists else None
    return None if exists and found.table().tolist() == values else "the layout is another function"


def _under_it(layout: ComposedLayout, _: str) -> CuteLayout:
    """Take the layout under the swizzle."""
    return layout.base


def _one_swizzle(layout: ComposedLayout) -> Cute:
    """Keep the outermost swizzle of a stack and the sum of the offsets."""
    return ComposedLayout(layout.outer, sum([offset for _, offset in layout.stages]), layout.base)


def _lifted(layout: ComposedLayout, lift: Callable[[Any], Cute] | None = None) -> str | None:
    """What acts on the domain acts on the layout under the swizzles."""
    base = layout.base
    for operation in _OPERATIONS if lift is None else [lift]:
        try:
            wanted = _moved_all(layout.stages, operation(base))
        except LayoutError:
            continue
        if operation(layout).table().tolist() != wanted:
            return "the operation does not act on the layout under the swizzles"
    return None


def _moved_all(stages: Stages, base: Cute) -> list[int]:
    return [_moved(stages, int(value)) for value in base.table()]


_OPERATIONS: tuple[Callable[..., Cute], ...] = (
    coalesce,
    lambda layout: group(layout, 0, 2),
    lambda layout: logical_divide(layout, 2),
    lambda layout: zipped_divide(layout, (2, 2)),
    lambda layout: composition(layout, CuteLayout((2, 2), (2, 1))),
)


def _swizzle_first(layout: Any) -> Cute:
    """Divide the values of the swizzled layout instead of its domain."""
    if isinstance(layout, CuteLayout):
        return logical_divide(layout, 2)
    return ComposedLayout(layout.outer, layout.offset, logical_divide(CuteLayout(layout.size), 2))


Pair = tuple[Any, Any]


def _pairs() -> Iterator[Pair]:
    outers = [CuteLayout(16), CuteLayout((4, 8), (8, 1)), CuteLayout((2, 16), (16, 1)), CuteLayout((4, 4), (1, 8))]
    inners = [layout for layout in every_stack() if layout.value_range()[0] >= 0]
    yield from product(outers, inners)
    yield from product(outers, _SWIZZLES)
    stacked = [_layout(stages, base) for stages in _STACKS[:4] for base in _BASES[:2]]
    yield from product(stacked, [CuteLayout(4, 2), CuteLayout((2, 2), (4, 1)), *_SWIZZLES[:2]])


def _composed(pair: Pair, compose: Callable[..., Cute] = composition) -> str | None:
    outer, inner = pair
    size = outer.size if isinstance(inner, Swizzle) else inner.size
    try:
        found = compose(outer, inner)
    except LayoutError:
        return None
    if [found(i) for i in range(size)] != [outer(inner(i)) for i in range(size)]:
        return "the composition has other values"
    return None


def _bare(outer: Any, inner: Any) -> Cute:
    """Leave the swizzle where it is and compose the layouts."""
    if isinstance(inner, ComposedLayout) and isinstance(outer, CuteLayout):
        return inner.rebase(composition(outer, inner.base))
    found: Cute = composition(outer, inner)
    return found


Inverse = Callable[[Cute], Cute]


def _inverted(layout: ComposedLayout, right: Inverse = right_inverse, left: Inverse = left_inverse) -> str | None:
    values = layout.table().tolist()
    try:
        section = right(layout)
    except LayoutError:
        section = CuteLayout(0)
    if [layout(section(i)) for i in range(section.size)] != list(range(section.size)):
        return "L(R(i)) is not i"
    try:
        back = left(layout)
    except LayoutError:
        return None
    if [values[back(value)] for value in values] != values:
        return "L(R(L(c))) is not L(c)"
    unique = len(set(values)) == len(values)
    return "R(L(c)) is not c" if unique and [back(v) for v in values] != list(range(len(values))) else None


def _of_the_base(layout: Any) -> Cute:
    """Invert the layout and put the swizzle on the inverse."""
    return ComposedLayout(layout.outer, 0, right_inverse(layout.base))


def _cast(layout: ComposedLayout, cast: Callable[..., Cute] = upcast) -> str | None:
    values = layout.table().tolist()
    for factor in (2, 4):
        try:
            found = cast(layout, factor)
        except LayoutError:
            continue
        if sorted(factor * int(v) + r for v in found.table() for r in range(factor)) != sorted(values):
            return "the wide elements hold others"
    return None


def _same_base(layout: ComposedLayout, factor: int) -> Cute:
    """Leave the swizzle on the bits of the old elements."""
    return layout.rebase(upcast(layout.base, factor))


LAWS = (
    Law(
        "composed.spelling",
        "A stack of swizzles and offsets in its one spelling has the same values: offsets that stand alone join the "
        "stage applied after them.",
        ("layoutalg.cute.swizzle.fused", "layoutalg.cute.ComposedLayout"),
        bit_vectors(
            _one_spelling,
            partial(_one_spelling, fuse=_to_the_outside),
            "all offsets and numbers of 12 bits in two's complement, stacks of Sw<2,1,3>, Sw<1,1,-2> and offsets",
        ),
    ),
    Law(
        "composed.value",
        "Calls, tables and arrays of coordinates give Sw(offset + L(c)) stage by stage; the range is that of the "
        "values, and the stack commutes with its period.",
        ("layoutalg.cute.ComposedLayout.__call__", "layoutalg.cute.ComposedLayout.table"),
        enumerated(every_stack, _evaluated, partial(_evaluated, table=_offset_after), _CASES, 128),
        _WHY,
    ),
    Law(
        "composed.range",
        "value_range is the range of the values also where there are too many to go through: two windows of a period "
        "hold the extremes.",
        ("layoutalg.cute.ComposedLayout.value_range", "layoutalg.cute.swizzle._values_from"),
        enumerated(_large, _ranged, partial(_ranged, extremes=_of_the_ends), "6 layouts of 2^20 + 2^10 points", 6),
        _WHY,
    ),
    Law(
        "composed.simplified",
        "simplify keeps the function, has no more swizzles, and is idempotent.",
        ("layoutalg.cute.fit.simplify", "layoutalg.cute.fit.tabled", "layoutalg.cute.fit._multiplied"),
        enumerated(every_stack, _same_function, partial(_same_function, operation=_one_swizzle), _CASES, 128),
        _WHY,
    ),
    Law(
        "composed.strided",
        "strided_form is shape:stride with the values of the stack, and is refused exactly where there is none.",
        ("layoutalg.cute.fit.strided_form",),
        enumerated(every_stack, _plain, partial(_plain, form=_under_it), _CASES, 128),
        _WHY,
    ),
    Law(
        "composed.lifted",
        "What rearranges the domain of g o L rearranges that of L: coalesce, group, divide, and composition on the "
        "right.",
        ("layoutalg.cute.algebra.lift", "layoutalg.cute.logical_divide", "layoutalg.cute.composition.composition"),
        enumerated(every_stack, _lifted, partial(_lifted, lift=_swizzle_first), _CASES, 128),
        _WHY,
    ),
    Law(
        "composed.composition",
        "A layout or a swizzled one after swizzles has the values A(B(c)), wherever it is defined.",
        ("layoutalg.cute.composition.composition", "layoutalg.cute.composition.after"),
        enumerated(
            _pairs,
            _composed,
            partial(_composed, compose=_bare),
            "layouts and swizzles after each other, 340 of them defined",
            540,
        ),
        _WHY,
    ),
    Law(
        "composed.inverse",
        "Inverses of swizzled layouts: L(R(i)) = i of the right one, L(R(L(c))) = L(c) of the left one, and R(L(c)) = "
        "c where L is injective.",
        ("layoutalg.cute.right_inverse", "layoutalg.cute.left_inverse"),
        enumerated(every_stack, _inverted, partial(_inverted, right=_of_the_base), _CASES, 128),
        _WHY,
    ),
    Law(
        "composed.recast",
        "upcast of a swizzled layout holds the same narrow elements, the swizzle moved by the bits of the width.",
        ("layoutalg.cute.upcast", "layoutalg.cute.Swizzle.raised"),
        enumerated(every_stack, _cast, partial(_cast, cast=_same_base), _CASES, 128),
        _WHY,
    ),
)
