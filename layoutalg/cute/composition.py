"""Composition of every pair of CuTe layouts, swizzles, tilers and coordinate layouts: exact, or an error.

Main statements: R = composition(A, B) has R(c) = A(B(c)) on the whole domain of B, and each mode of B keeps its place
(possibly refined into a nested mode). An operand that only rearranges the domain of a swizzled layout is composed with
the layout at the bottom. Everything else with a swizzle is decided on the function itself: by one elimination over F2
if the size is a power of two, otherwise from the values, for at most 2**20 points.

References: J. Cecka, arXiv:2603.02298; CuTe ``composition``.
"""

from __future__ import annotations

from typing import Any, overload

from layoutalg.cute.affine import affine_after
from layoutalg.cute.compose_coordinates import at_coordinates, coordinates_after
from layoutalg.cute.compose_strided import (
    after_narrow,
    after_tiler,
    after_wide,
    gave_up,
    joined,
    where_of,
)
from layoutalg.cute.composed import ComposedLayout, Cute, Stages, shift, staged
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.factor import Broken, GaveUpError, factor_run
from layoutalg.cute.fit import over_f2
from layoutalg.cute.inttuple import flatten, unflatten
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import FAMILIES, NARROW, WIDER, Tiler, composed, operand_refusal, read_tiler, tiler_text
from layoutalg.cute.swizzle import Swizzle
from layoutalg.cute.swizzled import first_leaving, swizzle_product, tabled
from layoutalg.ground.digits import merge, span
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.layout import composes
from layoutalg.ground.limits import CUTE_POINTS

NO_FORM = "the composition is not shape:stride under at most one swizzle"


@overload
def composition(outer: CuteLayout, inner: Tiler, *, convention: Convention = "strict") -> CuteLayout: ...
@overload
def composition(
    outer: CuteLayout, inner: ComposedLayout | CoordinateLayout | Swizzle, *, convention: Convention = "strict"
) -> Cute: ...
@overload
def composition(
    outer: ComposedLayout, inner: Tiler | ComposedLayout | CoordinateLayout | Swizzle, *, convention: Convention = ...
) -> ComposedLayout: ...
@overload
def composition(outer: CoordinateLayout, inner: Cute, *, convention: Convention = ...) -> CoordinateLayout: ...
@overload
def composition(outer: Swizzle, inner: Cute, *, convention: Convention = "strict") -> ComposedLayout: ...
@overload
def composition(outer: Swizzle, inner: Swizzle, *, convention: Convention = "strict") -> Swizzle: ...
def composition(outer: Any, inner: Any, *, convention: Convention = STRICT) -> Any:
    """Return ``outer`` after ``inner``: the layout c -> outer(inner(c)).

    Mathematically: R with R(c) = outer(inner(c)) for every coordinate c of ``inner``; the shape of R refines the shape
    of ``inner`` mode by mode.

    Args:
        outer: A layout, a composed or a coordinate layout, or a swizzle.
        inner: A layout; an int n, meaning ``n:1``; a tuple with one such entry per mode of ``outer``, applied mode
            by mode, where None keeps the mode; a swizzle, which permutes the 1-D coordinates of ``outer``; or a
            coordinate layout, at whose values ``outer`` is read. Offsets of ``inner`` are 1-D coordinates.
        convention: ``"cute_cpp"`` and ``"pycute"`` factor each mode of ``inner`` on its own, continue the last mode of
            ``outer`` past its end and never check the function; given a tuple with too few entries, C++ drops the
            remaining modes and pycute keeps them.

    Returns:
        The composition, each mode with the fewest digits. A layout after a swizzled one, or after a swizzle, has at
        most one swizzle over ``shape:stride``. A swizzle after a swizzle is a swizzle.

    Raises:
        MalformedError: LA141, LA144, LA171, LA192. AdmissibilityError: LA120, LA641, LA642. RepresentabilityError:
        LA121, LA122, LA124, LA172, LA643, LA640. BudgetError: LA125, LA173, LA644.

    Complexity: O(k^2 log) for k modes, independent of the sizes unless carries may cancel.

    Example:
        >>> print(composition(CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)))
        2:4
        >>> print(composition(CuteLayout((8, 4, 2)), (4, None, 2)))
        (4,4,2):(1,8,32)
        >>> print(composition(CuteLayout((6, 4), (1, 10)), CuteLayout(8, 6), convention="cute_cpp"))
        8:10

    Laws: associative where both sides exist; the identity layout of A's domain is neutral.
    Source: CuTe ``composition``; arXiv:2603.02298.
    """
    if convention is not STRICT:
        return by_convention(convention, composition, outer, inner)
    if type(outer) is CuteLayout and type(inner) is CuteLayout:
        if len(outer._flat) <= NARROW and len(inner._flat) <= NARROW:
            return after_narrow(outer, inner)
        return after_wide(outer, inner)
    if not isinstance(outer, CuteLayout | ComposedLayout | CoordinateLayout | Swizzle):
        raise operand_refusal(outer, "composition", "outer", f"{FAMILIES} or a Swizzle")
    if isinstance(outer, CoordinateLayout):
        return coordinates_after(outer, composed(inner, "composition", "inner"))
    if isinstance(inner, Swizzle):
        return _after_swizzle(outer, inner) if not isinstance(outer, Swizzle) else _product(outer, inner)
    if isinstance(outer, Swizzle):
        return ComposedLayout(outer, 0, composed(inner, "composition", "inner"))
    if isinstance(inner, CoordinateLayout):
        return at_coordinates(outer, inner)
    if not isinstance(inner, ComposedLayout):
        inner = read_tiler(inner, lambda: f"composition({outer}, {tiler_text(inner)})")
    if isinstance(outer, ComposedLayout):
        return _under_stages(outer, inner)
    return _after_composed(outer, inner) if isinstance(inner, ComposedLayout) else after_tiler(outer, inner)


for _outer in (CuteLayout, ComposedLayout):
    for _inner in (CuteLayout, ComposedLayout, CoordinateLayout, Swizzle):
        composes(_outer, _inner)(composition)
for _inner in (CuteLayout, ComposedLayout):
    composes(CoordinateLayout, _inner)(composition)
for _inner in (CuteLayout, ComposedLayout, Swizzle):
    composes(Swizzle, _inner)(composition)


def _under_stages(outer: ComposedLayout, inner: Tiler | ComposedLayout) -> ComposedLayout:
    """Return a composed layout after a layout: compose at the bottom, or failing that find the whole function."""
    try:
        if isinstance(inner, ComposedLayout):
            below: Cute = _after_composed(outer.base, inner)
        else:
            below = after_tiler(outer.base, inner)
    except (RepresentabilityError, BudgetError) as refusal:
        # The bottom alone has no form; the whole function may have one.
        whole = inner if isinstance(inner, ComposedLayout) else after_tiler(CuteLayout(outer.shape), inner)
        try:
            return _composed((), after(outer, whole))
        except (RepresentabilityError, BudgetError):
            raise refusal from None
    return _composed(outer.stages, below)


def _composed(stages: Stages, inner: Cute) -> ComposedLayout:
    found = staged(stages, inner)
    return found if isinstance(found, ComposedLayout) else shift(found, 0)


def _after_composed(outer: CuteLayout, inner: ComposedLayout) -> Cute:
    """Return ``outer`` after a swizzled layout: move the stages outside, or failing that find the whole function."""
    try:
        return _scaled(outer, inner)
    except (RepresentabilityError, BudgetError) as refusal:
        try:
            return after(outer, inner)
        except BudgetError:
            if isinstance(refusal, BudgetError):
                raise refusal from None
            raise
        except RepresentabilityError:
            raise refusal from None


def _scaled(outer: CuteLayout, inner: ComposedLayout) -> ComposedLayout:
    """Return ``outer`` after a composed layout if ``outer`` multiplies (under a swizzle: by a power of two)."""
    require_inside(outer, inner, where_of(outer, inner)[0])
    high = inner.value_range()[1]
    merged = merge(outer.flat)
    try:
        run = factor_run(merged, 1, high + 1)  # only the values taken matter
    except GaveUpError as error:
        raise gave_up(outer, inner, f"the values run up to {high}") from error
    factor = 0
    if not isinstance(run, Broken) and len(run) < 2:
        factor = run[0][1] if run else 1  # an empty run: 0 is the only value
    if factor <= 0 or (factor & (factor - 1) and inner.period > 1):
        because = (
            f"the left operand, {joined(merged)} in normal form, is not multiplication by a power of two "
            f"on the values 0 to {high} of the right operand, and no other swizzle fits"
        )
        raise RepresentabilityError(Diagnostic("LA124", NO_FORM, where_of(outer, inner), because, source=WIDER))
    low = factor.bit_length() - 1
    scaled = unflatten(tuple([stride * factor for _, stride in inner.base.flat]), inner.shape)
    stages = [(swizzle.raised(low), offset * factor) for swizzle, offset in inner.stages]
    return _composed(tuple(stages), CuteLayout(inner.shape, scaled))


def after(outer: Cute, inner: Cute, where: str | None = None) -> Cute:
    """Return c -> outer(inner(c)) on the shape of ``inner`` in CuTe form, decided on the function itself.

    Args:
        outer: Defined on every value of ``inner``.
        inner: At least one point.
        where: The call, for messages.

    Raises: AdmissibilityError: LA120. RepresentabilityError: LA643. BudgetError: LA644.

    Example:
        >>> print(after(CuteLayout((4, 8), (8, 1)), ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 8)))))
        Sw<2,0,-3> o 0 o (4,8):(8,1)
    """
    call = where or f"composition({outer}, {inner})"
    if inner.size == 0:
        return CuteLayout(inner.shape, unflatten((0,) * len(flatten(inner.shape)), inner.shape))
    require_inside(outer, inner, call)
    form = affine_after(outer, inner)
    if form is not None:
        found = over_f2(*form, inner.shape)
    elif inner.size <= CUTE_POINTS:
        found = tabled(lambda: outer.apply(inner.table()), inner.shape)
    else:
        because = f"the function is not affine over F2 digit by digit and has {inner.size} points; the limit is"
        what = "whether the composition has a CuTe form was not decided"
        raise BudgetError(Diagnostic("LA644", what, (call,), f"{because} {CUTE_POINTS}"))
    if found is None:
        because = "undoing a swizzle never gives a strided layout on the shape of the right operand"
        raise RepresentabilityError(Diagnostic("LA643", NO_FORM, (call,), because, source=WIDER))
    return found


def require_inside(outer: Cute, inner: Cute, where: str) -> None:
    """Raise if the inner layout has a value outside the domain of the outer one."""
    if inner.size == 0:
        return
    low, high = inner.value_range() if isinstance(inner, ComposedLayout) else span(inner.flat)
    if low < 0 or high >= outer.size:
        because = (
            f"the right operand takes values from {low} to {high}, the left operand is defined on [0, {outer.size})"
        )
        raise AdmissibilityError(
            Diagnostic("LA120", "the right operand leaves the domain of the left operand", (where,), because)
        )


def _product(outer: Swizzle, inner: Swizzle) -> Swizzle:
    where = f"composition({outer}, {inner})"
    if outer.unit != inner.unit:
        because = f"one counts {outer.unit}s, the other {inner.unit}s; see recast_elements and recast_bytes"
        raise AdmissibilityError(Diagnostic("LA642", "the swizzles act on different units", (where,), because))
    found = swizzle_product(outer, inner)
    if found is not None:
        return found
    reach = max(outer.period, inner.period).bit_length() - 1
    bit = next(position for position in range(reach - 1, -1, -1) if outer(inner(1 << position)) != 1 << position)
    because = "its off-diagonal part is not one run of bits on one diagonal"
    witness = {"x": 1 << bit, "value": outer(inner(1 << bit))}
    raise RepresentabilityError(
        Diagnostic("LA640", "the product of the swizzles is not a swizzle", (where,), because, witness, source=WIDER)
    )


def _after_swizzle(outer: Cute, inner: Swizzle) -> Cute:
    """Return the layout x -> outer(inner(x)) on the flat coordinates of ``outer``, with its shape."""
    where = f"composition({outer}, {inner})"
    if inner.unit == "byte":
        what = "a swizzle of byte addresses does not permute coordinates"
        raise AdmissibilityError(Diagnostic("LA642", what, (where,), "coordinates count elements"))
    leaving = first_leaving(inner, outer.size, outer.size)
    if leaving is not None:
        because = f"{inner} maps coordinate {leaving} to {inner(leaving)}, the layout has {outer.size} points"
        witness = {"coordinate": leaving, "value": inner(leaving), "size": outer.size}
        raise AdmissibilityError(
            Diagnostic("LA641", "the swizzle maps out of the domain of the layout", (where,), because, witness)
        )
    if inner.bits == 0 or outer.size == 0:
        return outer
    try:
        found = after(outer, ComposedLayout(inner, 0, CuteLayout(outer.shape)), where)
        return found if isinstance(outer, CuteLayout) else _composed((), found)
    except (RepresentabilityError, BudgetError):
        if isinstance(outer, CuteLayout):
            raise
    return _composed(outer.stages, _after_swizzle(outer.base, inner))  # a stack, but exact
