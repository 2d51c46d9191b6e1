"""Swizzled layouts in wider and narrower elements.

Main definitions: ``upcast_composed``, ``downcast_composed``.

Main statements: with elements 2^k times as wide, ``Sw<b,m,s>`` of old offsets is ``Sw<b,m-k,s>`` of new ones where
m >= k, and tears elements apart where m < k, unless it does nothing on this layout. The layout at the bottom follows
``upcast`` and ``downcast``: g(N y + r) = N g'(y) + r turns their laws into the same laws for the whole.

References: CuTe ``upcast``, ``downcast``.
"""

from __future__ import annotations

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.inttuple import integer, malformed
from layoutalg.cute.recast import downcast, upcast
from layoutalg.cute.swizzle import Swizzle
from layoutalg.cute.swizzled import Cute, simplify
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, RepresentabilityError


def upcast_composed(layout: ComposedLayout, count: int) -> Cute:
    """Return the layout in elements ``count`` times as wide: offsets count groups of ``count`` old elements.

    Mathematically: R with N R(c) + r, 0 <= r < N = ``count``, running over exactly the values of the layout, each as
    often as the layout takes it.

    Args:
        layout: Its bottom has an exact ``upcast``; every offset is a multiple of ``count``.
        count: A power of two where a swizzle remains, >= 1.

    Raises: MalformedError: LA646. AdmissibilityError: LA647. RepresentabilityError: LA161.

    Example:
        >>> from layoutalg.cute.layout import CuteLayout
        >>> print(upcast_composed(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 64), (64, 1))), 2))
        Sw<3,3,3> o 0 o (8,32):(32,1)

    Source: CuTe ``upcast``, which rounds extents up instead of refusing.
    """
    number = _count(count)
    where = f"upcast({layout}, {number})"
    try:
        return _upcast_stack(layout, number, where)
    except (AdmissibilityError, RepresentabilityError):
        fewer = simplify(layout)  # a swizzle that does nothing here does not tear elements either
        if fewer == layout:
            raise
        return _upcast_stack(fewer, number, where)


def _upcast_stack(layout: Cute, number: int, where: str) -> Cute:
    if not isinstance(layout, ComposedLayout):
        return upcast(layout, number)
    if number & (number - 1) and any(swizzle.bits for swizzle, _ in layout.stages):
        raise _torn(where, f"{number} is not a power of two, so elements do not fill whole address bits")
    low = number.bit_length() - 1
    answer: Cute = upcast(layout.base, number)
    for swizzle, offset in reversed(layout.stages):
        if offset % number:
            raise _torn(where, f"the offset {offset} is not a multiple of {number}")
        if swizzle.bits and swizzle.base < low:
            raise _torn(where, f"{swizzle} moves bit {swizzle.base}, which lies inside an element of {number}")
        narrow = Swizzle(swizzle.bits, swizzle.base - low, swizzle.shift) if swizzle.bits else swizzle
        answer = ComposedLayout(narrow, offset // number, answer)
    return answer


def downcast_composed(layout: ComposedLayout, count: int) -> Cute:
    """Return the layout in elements ``count`` times as narrow: each old element becomes a run of ``count`` offsets.

    Mathematically: one mode grows by ``count``, the one ``downcast`` takes; with its digit ``count q + r`` the value is
    ``count * layout(.., q, ..) + r``.

    Args:
        layout: Some leaf has stride 1 or extent 1.
        count: A power of two, >= 1.

    Raises: MalformedError: LA646, LA102, LA110. AdmissibilityError: LA647. RepresentabilityError: LA162.

    Example:
        >>> from layoutalg.cute.layout import CuteLayout
        >>> print(downcast_composed(ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((8, 32), (32, 1))), 2))
        Sw<3,4,3> o 0 o (8,64):(64,1)

    Source: CuTe ``downcast``.
    """
    number = _count(count)
    where = f"downcast({layout}, {number})"
    if number & (number - 1) and any(swizzle.bits for swizzle, _ in layout.stages):
        raise _torn(where, f"{number} is not a power of two, so elements do not fill whole address bits")
    answer: Cute = downcast(layout.base, number)
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
