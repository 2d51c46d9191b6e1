"""Swizzled layouts in wider and narrower elements.

Main definitions: ``upcast_composed``, ``downcast_composed``.

Main statements: with elements 2^k times as wide, ``Sw<b,m,s>`` of old offsets is ``Sw<b,m-k,s>`` of new ones where
m >= k, and tears elements apart where m < k, unless it does nothing on this layout.

References: CuTe ``upcast``, ``downcast``.
"""

from __future__ import annotations

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle
from layoutalg.cute.swizzled import Cute, simplify
from layoutalg.errors import AdmissibilityError, Diagnostic
from layoutalg.inttuple import integer, malformed, unflatten


def upcast_composed(layout: ComposedLayout, count: int) -> Cute:
    """Return the layout in elements ``count`` times as wide: offsets count groups of ``count`` old elements.

    Mathematically: R such that the groups R visits, written out element by element (``downcast_composed``), are the
    layout again, run by run of ``count`` consecutive offsets along its unit-stride mode.

    Args:
        layout: Every offset and stride above the unit run is a multiple of ``count``.
        count: A power of two where a swizzle remains, >= 1.

    Raises:
        MalformedError: LA646, the count.
        AdmissibilityError: LA647, a stride, an extent or an offset does not divide, or a swizzle would tear an element
            apart.

    Example:
        >>> print(upcast_composed(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 64), (64, 1))), 2))
        Sw<3,3,3> o 0 o (8,32):(32,1)

    Source: CuTe ``upcast``, which rounds extents up instead of refusing.
    """
    number = _count(count)
    where = f"upcast({layout}, {number})"
    try:
        return _upcast_stack(layout, number, where)
    except AdmissibilityError:
        fewer = simplify(layout)  # a swizzle that does nothing here does not tear elements either
        if fewer == layout:
            raise
        return _upcast_stack(fewer, number, where)


def _upcast_stack(layout: Cute, number: int, where: str) -> Cute:
    if not isinstance(layout, ComposedLayout):
        return _upcast(layout, number, where)
    if number & (number - 1) and any(swizzle.bits for swizzle, _ in layout.stages):
        raise _torn(where, f"{number} is not a power of two, so elements do not fill whole address bits")
    low = number.bit_length() - 1
    answer: Cute = _upcast(layout.base, number, where)
    for swizzle, offset in reversed(layout.stages):
        if offset % number:
            raise _torn(where, f"the offset {offset} is not a multiple of {number}")
        if swizzle.bits and swizzle.base < low:
            raise _torn(where, f"{swizzle} moves bit {swizzle.base}, which lies inside an element of {number}")
        narrow = Swizzle(swizzle.bits, swizzle.base - low, swizzle.shift) if swizzle.bits else swizzle
        answer = ComposedLayout(narrow, offset // number, answer)
    return answer


def _upcast(layout: CuteLayout, count: int, where: str) -> CuteLayout:
    shapes: list[int] = []
    strides: list[int] = []
    for extent, stride in layout.flat:
        if stride % count == 0:
            shapes.append(extent)
            strides.append(stride // count)
        elif extent <= 1:
            shapes.append(extent)
            strides.append(0)
        elif count % abs(stride) == 0 and extent % (count // abs(stride)) == 0 and stride > 0:
            shapes.append(extent // (count // stride))
            strides.append(1)
        else:
            raise _torn(where, f"mode {extent}:{stride} holds no whole elements of {count}")
    return CuteLayout(unflatten(tuple(shapes), layout.shape), unflatten(tuple(strides), layout.shape))


def downcast_composed(layout: ComposedLayout, count: int) -> Cute:
    """Return the layout in elements ``count`` times as narrow: each old element becomes a run of ``count`` offsets.

    Mathematically: the unit-stride mode grows by ``count``; with its digit ``count q + r`` the value is
    ``count * layout(.., q, ..) + r``.

    Args:
        layout: Exactly one leaf of stride 1 and extent above 1.
        count: A power of two, >= 1.

    Raises:
        MalformedError: LA646, the count; LA102 or LA110, a number leaves its range.
        AdmissibilityError: LA647, no single unit-stride leaf, or the count is no power of two.

    Example:
        >>> print(downcast_composed(ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((8, 32), (32, 1))), 2))
        Sw<3,4,3> o 0 o (8,64):(64,1)

    Source: CuTe ``downcast``.
    """
    number = _count(count)
    where = f"downcast({layout}, {number})"
    if number & (number - 1):
        raise _torn(where, f"{number} is not a power of two, so elements do not fill whole address bits")
    unit = [position for position, (extent, stride) in enumerate(layout.base.flat) if stride == 1 and extent > 1]
    if len(unit) != 1 and number > 1:
        raise _torn(where, f"the layout has {len(unit)} leaves of stride 1, the new elements need exactly one")
    base = layout.base
    flat = [
        (extent * number, 1) if position in unit else (extent, stride * number)
        for position, (extent, stride) in enumerate(base.flat)
    ]
    answer: Cute = CuteLayout(
        unflatten(tuple([extent for extent, _ in flat]), base.shape),
        unflatten(tuple([stride for _, stride in flat]), base.shape),
    )
    low = number.bit_length() - 1
    for swizzle, offset in reversed(layout.stages):
        wide = Swizzle(swizzle.bits, swizzle.base + low, swizzle.shift) if swizzle.bits else swizzle
        answer = ComposedLayout(wide, offset * number, answer)
    return answer


def _count(count: object) -> int:
    number = integer(count, "count", "LA646")
    if number < 1:
        raise malformed("count", "must be at least 1", number, "LA646")
    return number


def _torn(where: str, because: str) -> AdmissibilityError:
    return AdmissibilityError(
        Diagnostic(
            code="LA647", what="the layout has no exact form in elements of that width", where=(where,), because=because
        )
    )
