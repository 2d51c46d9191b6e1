"""Inverses of swizzled layouts.

Main definitions: ``right_inverse_of``, ``left_inverse_of``, ``undoing``, ``right_affine``, ``left_affine``.

Notation: a composed layout is ``g o L`` with g the stack of swizzles and offsets, a bijection of the integers, and L
the CuTe layout at the bottom. ``|L|`` has the absolute values of the strides; with ``low`` the least value of L and
``flip`` the map that turns the digits of negative modes around, ``L = low + |L| o flip``.

Main statements: ``flip o (inverse of |L|) o (subtract low) o g^-1`` inverts ``g o L``. Where ``g o L`` is affine over
F2, ``x -> M x xor c``, so is ``y -> P (y xor c)`` with M P M = M, for any offsets; its domain is [0, 2^m) with m the
number of low unit vectors in the image of M (right), or every bit of the values (left).

References: CuTe ``right_inverse`` and ``left_inverse``, which refuse swizzles or treat special cases.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.fit import IDENTITY, over_f2, over_table
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzled import POINTS, Affine, Cute, affine, after, first_leaving, simplify
from layoutalg.f2 import matrix
from layoutalg.ground.digits import Flat, IntArray, evaluate_many, merge, span
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError

Turned: TypeAlias = tuple[CuteLayout, int, int, Flat]
"""``|L|`` without nesting, ``low``, and ``flip`` as a constant and a digit list with weights of either sign."""


def right_inverse_of(layout: ComposedLayout) -> Cute:
    """Return R with layout(R(i)) = i for all i < size(R).

    Mathematically: over F2 the greatest such R whose size is a power of two; else ``right_inverse(|L|)`` with the
    swizzles undone, on the longest [0, n) that these map into its domain, or on the greatest power of two below n where
    only that has a CuTe form. The larger of the two. Size 0 says that the layout misses offset 0.

    Args:
        layout: Not empty.

    Raises: AdmissibilityError: LA131. RepresentabilityError: LA643. BudgetError: LA644, LA648.

    Example:
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(right_inverse_of(ComposedLayout(Swizzle(3, 0, 3), 0, CuteLayout((8, 8), (8, 1)))))
        Sw<3,0,-3> o 0 o (8,8):(8,1)
        >>> print(right_inverse_of(ComposedLayout(Swizzle(0, 0, 0), 5, CuteLayout(6, -1))))
        Sw<0,0,0> o 5 o 6:-1
    """
    require_points(layout, "right_inverse")
    best: Cute | None = None
    form = right_affine(layout)
    if form is not None:
        size = 1 << len(form[0])
        best = over_f2(*form, size) if size > 1 or affine_reaches_zero(layout) else CuteLayout(0, 0)
    try:
        other = _right_by_chain(layout)
    except (RepresentabilityError, BudgetError):
        if best is None:
            raise
        return best
    return other if best is None or other.size > best.size else best


def affine_reaches_zero(layout: ComposedLayout) -> bool:
    """Return whether a layout that is affine over F2 takes the value 0."""
    form = affine(layout)
    return form is not None and matrix.solve(form[0], form[1]) is not None


def right_affine(layout: ComposedLayout) -> Affine | None:
    """Return the right inverse of a layout that is affine over F2, on the most bits; None where it is not affine.

    Columns for bits 0 .. m - 1 of the offset; with m = 0 the constant means nothing where offset 0 is missed.
    """
    form = affine(layout)
    if form is None or min(form[1], *form[0], 0) < 0:
        return None
    columns, constant = form
    start = matrix.solve(columns, constant)
    if start is None:
        return (), 0
    found: list[int] = []
    while (unit := matrix.solve(columns, 1 << len(found))) is not None:
        found.append(unit[0])
    return tuple(found), start[0]


def _right_by_chain(layout: ComposedLayout) -> Cute:
    from layoutalg.cute.inverse import right_inverse

    upright, low, constant, weights = _turned(layout.base)
    outer = right_inverse(upright)
    undo = undoing(layout, 1, low)
    bound = _first_outside(undo, outer.size)
    if bound == 0:
        return CuteLayout(0, 0)
    for size in (bound, 1 << (bound.bit_length() - 1)):
        rest = undo.rebase(CuteLayout(size, 1))
        if upright.flat == layout.base.flat or not constant:
            try:
                return after(outer, rest)
            except RepresentabilityError:
                if size == 1 << (bound.bit_length() - 1):
                    raise
        elif size <= POINTS:
            coordinates = evaluate_many(merge(outer.flat), rest.table())
            found = over_table(constant + _extended(weights, coordinates), size)
            if found is not None:
                return found
        else:
            raise _gave_up("right_inverse", layout, f"the inverse has {size} points")
    raise _no_form("right_inverse", layout)


def left_inverse_of(layout: ComposedLayout) -> Cute:
    """Return R with R(layout(c)) = c where the layout is injective, and layout(R(layout(c))) = layout(c) always.

    Mathematically: defined on an interval [0, n) that holds every value of the layout; offsets that the layout leaves
    out get some number.

    Args:
        layout: Values >= 0; unless it is affine over F2, ``|L|`` is one that ``left_inverse`` accepts.

    Raises: AdmissibilityError: LA131 to LA134, LA649. RepresentabilityError: LA643. BudgetError: LA114, LA644.

    Example:
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(left_inverse_of(ComposedLayout(Swizzle(3, 0, 3), 0, CuteLayout((8, 8), (8, 1)))))
        Sw<3,0,-3> o 0 o (8,8):(8,1)
        >>> print(left_inverse_of(ComposedLayout(Swizzle(0, 0, 0), 2, CuteLayout(3, 4))))
        (4,3):(0,1)
    """
    from layoutalg.cute.inverse import left_inverse

    require_points(layout, "left_inverse")
    plain = simplify(layout)
    if isinstance(plain, ComposedLayout):
        layout = plain
    else:
        try:
            return left_inverse(plain)
        except AdmissibilityError as error:
            if error.diagnostic.code != "LA134":
                raise
    low, high = layout.value_range()
    if low < 0:
        raise AdmissibilityError(
            Diagnostic(
                code="LA649",
                what="the layout has a negative value",
                where=(f"left_inverse({layout})",),
                because=f"its least value is {low}, an inverse is defined from 0 on",
            )
        )
    form = left_affine(layout)
    if form is not None:
        found = over_f2(*form, 1 << len(form[0]))
        if found is not None:
            return found
    upright, lowest, constant, weights = _turned(layout.base)
    outer = left_inverse(upright)
    period = max(swizzle.period for swizzle, _ in layout.stages)
    # Where L takes multiples of its least stride, adding less than that changes no digit of the inverse.
    steps = [stride for extent, stride in upright.flat if extent > 1 and stride]
    least = min(steps, default=1)
    slack = 0 if any(stride % least for stride in steps) else (layout.stages[-1][1] + lowest) % least
    inside = outer.size // (merge(outer.flat) or ((1, 0),))[-1][0]
    for size in dict.fromkeys(-(-(high + 1) // unit) * unit for unit in (1, period, inside)):
        if size > POINTS:
            raise _gave_up("left_inverse", layout, f"the inverse has {size} points")
        for low in (lowest - slack, lowest) if slack else (lowest,):
            coordinates = _extended(merge(outer.flat), undoing(layout, size, low).table())
            found = over_table(constant + _extended(weights, coordinates), size)
            if found is not None:
                return found
    raise _no_form("left_inverse", layout)


def left_affine(layout: ComposedLayout) -> Affine | None:
    """Return y -> P (y xor c) with M P M = M for a layout x -> M x xor c over F2; None where it is not affine."""
    form = affine(layout)
    if form is None or min(form[1], *form[0], 0) < 0:
        return None
    columns, constant = form
    reduced = matrix.eliminate(columns)
    width = max(value.bit_length() for value in (constant, *columns, 0))
    answer = [0] * width
    for vector, combination in reduced.pivots:  # no other vector has its highest bit
        answer[vector.bit_length() - 1] = combination
    return tuple(answer), matrix.apply(answer, constant)


def _turned(layout: CuteLayout) -> Turned:
    """Return ``|L|``, its lowest value and the digit flip of its negative modes."""
    flat = merge(layout.flat)
    upright = CuteLayout(tuple([extent for extent, _ in flat]), tuple([abs(stride) for _, stride in flat]))
    constant, weight = 0, 1
    weights: list[tuple[int, int]] = []
    for extent, stride in flat:
        weights.append((extent, weight if stride >= 0 else -weight))
        constant += (extent - 1) * weight if stride < 0 else 0
        weight *= extent
    return upright if flat else CuteLayout(1, 0), span(flat)[0], constant, tuple(weights)


def _extended(flat: Flat, index: IntArray) -> IntArray:
    """Return the values at any integers, the last mode continued in both directions."""
    return evaluate_many(flat, index)


def undoing(layout: ComposedLayout, size: int, low: int = 0) -> ComposedLayout:
    """Return the inverse of the layout's stack on [0, size), less ``low``, as a composed layout.

    Example:
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(undoing(ComposedLayout(Swizzle(1, 0, 1), 4, CuteLayout(4)), 8))
        Sw<0,0,0> o -4 o (Sw<1,0,1> o 0 o 8:1)
    """
    answer: Cute = CuteLayout(size, 1)
    before = 0
    for swizzle, offset in layout.stages:
        answer = ComposedLayout(swizzle, before, answer)
        before = -offset
    if before - low or not isinstance(answer, ComposedLayout):
        answer = ComposedLayout(IDENTITY, before - low, answer)
    return answer


def _first_outside(undo: ComposedLayout, bound: int) -> int:
    """Return the least i >= 0 with undo(i) outside [0, bound)."""
    if len(undo.stages) == 1 and undo.stages[0][1] == 0:
        swizzle, size = undo.stages[0][0], 1
        while size <= bound:
            size *= 2
        found = first_leaving(swizzle, size, bound)
        return size if found is None else found
    period = max(swizzle.period for swizzle, _ in undo.stages)
    reach = 2 * (bound + period) + sum(abs(offset) for _, offset in undo.stages)
    values = undo.rebase(CuteLayout(min(POINTS, reach), 1)).table()
    outside = np.flatnonzero((values < 0) | (values >= bound))
    if outside.size:
        return int(outside[0])
    raise BudgetError(
        Diagnostic(
            code="LA648",
            what="how far the inverse reaches was not decided",
            where=(str(undo),),
            because=f"it stays inside [0, {bound}) on the first {len(values)} offsets, where the search stops",
        )
    )


def require_points(layout: ComposedLayout, name: str) -> None:
    """Refuse an empty layout (LA131)."""
    if layout.size == 0:
        raise AdmissibilityError(
            Diagnostic(
                code="LA131",
                what="the layout is empty",
                where=(f"{name}({layout})",),
                because="an empty layout does not even reach offset 0",
            )
        )


def _no_form(name: str, layout: ComposedLayout) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA643",
            what="the inverse is not shape:stride behind at most one swizzle",
            where=(f"{name}({layout})",),
            because="no swizzle leaves a strided layout",
            source=f"layoutalg.{name}(layout, widen=True), which gives it in a wider family",
        )
    )


def _gave_up(name: str, layout: ComposedLayout, because: str) -> BudgetError:
    return BudgetError(
        Diagnostic(
            code="LA644",
            what="whether the inverse has a CuTe form was not decided",
            where=(f"{name}({layout})",),
            because=f"{because}, the limit is {POINTS}",
        )
    )
