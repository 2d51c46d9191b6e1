"""The algebra of swizzled layouts: composing and simplifying where a swizzle takes part.

Main definitions: ``simplify``, ``after`` (any layout after any layout), ``swizzle_after_swizzle``,
``layout_after_swizzle``, ``lift``.

Notation: a stack g is ``Sw_k o o_k o ... o Sw_1 o o_1``, a bijection of the integers; a composed layout is g after a
CuTe layout.

Main statements: anything that only rearranges the domain (slicing, dividing, grouping) acts on the layout at the bottom
and leaves g alone. Anything else is decided on the function itself: over F2 by one elimination where the size is a
power of two, by the values of at most 2**20 points elsewhere; ``layoutalg.cute.fit`` then finds the CuTe form or proves
that there is none.

References: ``cute::ComposedLayout`` and ``cute::composition(Layout, Swizzle)`` of NVIDIA CUTLASS, which treat special
cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from layoutalg.cute.algebra import from_flat
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.factor import Broken, GaveUpError, factor_run
from layoutalg.cute.fit import IDENTITY, over_f2, over_table
from layoutalg.cute.inttuple import IntTuple, flatten, unflatten
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import WIDER
from layoutalg.cute.swizzle import Swizzle
from layoutalg.f2 import matrix
from layoutalg.ground.digits import IntArray, merge, span
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS

Cute: TypeAlias = "CuteLayout | ComposedLayout"
Affine: TypeAlias = tuple[tuple[int, ...], int]

POINTS = CUTE_POINTS


def simplify(layout: Cute) -> Cute:
    """Return the same function on the same shape with the fewest swizzles: none, one, or the stack it needs.

    Mathematically: the answer has the layout's shape up to refinement of its leaves. It is ``shape:stride`` or
    ``Sw o offset o shape:stride`` whenever such a form exists and can be decided (sizes that are powers of two, or at
    most 2**20 points); else the stack with neighbours fused.

    Args:
        layout: A CuTe or a composed layout.

    Example:
        >>> twice = ComposedLayout(Swizzle(2, 0, 2), 0, ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 4))))
        >>> print(simplify(twice))
        (4,4):(1,4)
        >>> print(simplify(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 8), (1, 8)))))
        (8,8):(1,8)
        >>> print(simplify(ComposedLayout(Swizzle(1, 0, 1), 2, CuteLayout((2, 2), (1, 4)))))
        Sw<0,0,0> o 3 o (2,2):(-1,4)

    Laws: keeps ``table``.
    """
    if not isinstance(layout, ComposedLayout):
        return layout
    if layout.size == 0:
        return CuteLayout(layout.shape, layout.base.stride)
    form = affine(layout)
    if form is not None:
        found = over_f2(*form, layout.shape)
        if found is not None:
            return found
    elif layout.size <= POINTS:
        found = _tabled(layout.table, layout.shape)
        if found is not None:
            return found
    return _fused(layout)


def _fused(layout: ComposedLayout) -> Cute:
    """Return the stack with identity swizzles folded into offsets and neighbouring swizzles multiplied."""
    stages: list[tuple[Swizzle, int]] = []  # innermost first
    for swizzle, offset in reversed(layout.stages):
        if stages and stages[-1][0].bits == 0:
            offset += stages.pop()[1]
        elif stages and offset == 0:
            product = _product(swizzle, stages[-1][0])
            if product is not None:
                swizzle, offset = product, stages.pop()[1]
        stages.append((swizzle, offset))
    answer: Cute = layout.base
    for swizzle, offset in stages:
        if swizzle.bits or offset:
            answer = ComposedLayout(swizzle, offset, answer)
    return answer


def swizzle_after_swizzle(outer: Swizzle, inner: Swizzle) -> Swizzle:
    """Return the swizzle x -> outer(inner(x)).

    Mathematically: both are ``I + N`` over F2 with N on one diagonal; the product is a swizzle exactly when
    ``N + N' + N N'`` is one run on one diagonal.

    Args:
        outer: Applied last.
        inner: Of the same unit.

    Raises: AdmissibilityError: LA642. RepresentabilityError: LA640.

    Example:
        >>> print(swizzle_after_swizzle(Swizzle(2, 0, 3), Swizzle(1, 2, 3)))
        Sw<3,0,3>
    """
    where = f"composition({outer}, {inner})"
    if outer.unit != inner.unit:
        raise AdmissibilityError(
            Diagnostic(
                code="LA642",
                what="the swizzles act on different units",
                where=(where,),
                because=f"one counts {outer.unit}s, the other {inner.unit}s; see recast_elements and recast_bytes",
            )
        )
    found = _product(outer, inner)
    if found is not None:
        return found
    wide = _reach(outer, inner)
    bit = next(position for position in range(wide - 1, -1, -1) if outer(inner(1 << position)) != 1 << position)
    raise RepresentabilityError(
        Diagnostic(
            code="LA640",
            what="the product of the swizzles is not a swizzle",
            where=(where,),
            because="its off-diagonal part is not one run of bits on one diagonal",
            witness={"x": 1 << bit, "value": outer(inner(1 << bit))},
            source=WIDER,
        )
    )


def _reach(*swizzles: Swizzle) -> int:
    """Return the number of low bits that the swizzles read or write."""
    return max(swizzle.period.bit_length() - 1 for swizzle in swizzles)


def _product(outer: Swizzle, inner: Swizzle) -> Swizzle | None:
    images = [outer(inner(1 << position)) ^ 1 << position for position in range(_reach(outer, inner))]
    cells = [(source, image.bit_length() - 1) for source, image in enumerate(images) if image]
    if not cells:
        return Swizzle(0, 0, 0, inner.unit)
    if any(image & (image - 1) for image in images):
        return None
    shift, bits = cells[0][0] - cells[0][1], len(cells)
    run = [(cells[0][0] + step, cells[0][1] + step) for step in range(bits)]
    return Swizzle(bits, min(cells[0]), shift, inner.unit) if cells == run and abs(shift) >= bits else None


def layout_after_swizzle(outer: Cute, inner: Swizzle) -> Cute:
    """Return the layout x -> outer(inner(x)) on the flat coordinates of ``outer``, with its shape.

    Args:
        outer: A layout whose flat coordinates the swizzle permutes.
        inner: A swizzle of element offsets, read as a permutation of 1-D coordinates.

    Raises: AdmissibilityError: LA641, LA642. RepresentabilityError: LA643. BudgetError: LA644.

    Example:
        >>> print(layout_after_swizzle(CuteLayout((8, 8), (8, 1)), Swizzle(3, 0, 3)))
        Sw<3,0,-3> o 0 o (8,8):(8,1)
        >>> print(layout_after_swizzle(CuteLayout((4, 3), (1, 12)), Swizzle(1, 0, 1)))
        Sw<1,0,1> o 0 o (4,3):(1,12)
    """
    where = f"composition({outer}, {inner})"
    if inner.unit == "byte":
        raise AdmissibilityError(
            Diagnostic(
                code="LA642",
                what="a swizzle of byte addresses does not permute coordinates",
                where=(where,),
                because="coordinates count elements",
            )
        )
    leaving = first_leaving(inner, outer.size, outer.size)
    if leaving is not None:
        raise AdmissibilityError(
            Diagnostic(
                code="LA641",
                what="the swizzle leads out of the domain of the layout",
                where=(where,),
                because=f"{inner} maps coordinate {leaving} to {inner(leaving)}, the layout has {outer.size} points",
                witness={"coordinate": leaving, "value": inner(leaving), "size": outer.size},
            )
        )
    if inner.bits == 0 or outer.size == 0:
        return outer
    try:
        found = after(outer, ComposedLayout(inner, 0, CuteLayout(outer.shape)), where)
        return (
            found
            if isinstance(found, ComposedLayout) or type(outer) is CuteLayout
            else ComposedLayout(IDENTITY, 0, found)
        )
    except (RepresentabilityError, BudgetError):
        if not isinstance(outer, ComposedLayout):
            raise
    return restack(outer, layout_after_swizzle(outer.base, inner))  # a stack, but exact


def first_leaving(swizzle: Swizzle, size: int, bound: int) -> int | None:
    """Return the least x in [0, size) with swizzle(x) >= bound, or None. No enumeration.

    Example:
        >>> first_leaving(Swizzle(1, 0, 1), 3, 3), first_leaving(Swizzle(1, 0, 1), 4, 4)
        (2, None)
    """

    def greatest(low: int, free: int) -> int:
        """Return the greatest image of the numbers low .. low + 2^free - 1, low a multiple of 2^free."""
        value = swizzle(low)
        for pivot in sorted(matrix.image_basis([swizzle(1 << bit) for bit in range(free)]), reverse=True):
            value = max(value, value ^ pivot)
        return value

    low = 0
    for free in range(size.bit_length() - 1, -1, -1):
        if not size >> free & 1:
            continue
        if greatest(low, free) >= bound:
            for bit in range(free - 1, -1, -1):
                if greatest(low, bit) < bound:
                    low += 1 << bit
            return low
        low += 1 << free
    return None


def after(outer: Cute, inner: Cute, where: str | None = None) -> Cute:
    """Return the layout c -> outer(inner(c)) on the shape of ``inner`` in CuTe form, deciding on the function itself.

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
    elif inner.size <= POINTS:
        found = _tabled(lambda: outer.apply(inner.table()), inner.shape)
    else:
        raise BudgetError(
            Diagnostic(
                code="LA644",
                what="whether the composition has a CuTe form was not decided",
                where=(call,),
                because=f"the function is not affine over F2 digit by digit and has {inner.size} points, "
                f"the limit is {POINTS}",
            )
        )
    if found is None:
        raise RepresentabilityError(
            Diagnostic(
                code="LA643",
                what="the composition is not shape:stride behind at most one swizzle",
                where=(call,),
                because="no swizzle leaves a strided layout on the shape of the right operand",
                source=WIDER,
            )
        )
    return found


def require_inside(outer: Cute, inner: Cute, where: str) -> None:
    """Refuse an inner layout with a value outside the domain of the outer one (LA120)."""
    if inner.size == 0:
        return
    low, high = inner.value_range() if isinstance(inner, ComposedLayout) else span(inner.flat)
    if low < 0 or high >= outer.size:
        raise AdmissibilityError(
            Diagnostic(
                code="LA120",
                what="the right operand leaves the domain of the left operand",
                where=(where,),
                because=f"the right operand takes values from {low} to {high}, "
                f"the left operand is defined on [0, {outer.size})",
            )
        )


def _tabled(table: Callable[[], IntArray], shape: IntTuple) -> Cute | None:
    values = table()
    if int(values.max()) >= 2**61 or int(values.min()) <= -(2**61):
        return None
    return over_table(values, shape)


def affine(layout: Cute) -> Affine | None:
    """Return the layout as an affine map over F2, or None where it is none or was not decided.

    Example:
        >>> affine(CuteLayout((2, 2), (4, 1))), affine(CuteLayout(6))
        (((4, 1), 0), None)
    """
    from layoutalg.convert import linear_form

    if layout.size < 1 or layout.size & (layout.size - 1):
        return None
    try:
        form = linear_form(layout)
    except BudgetError:
        return None
    return form if isinstance(form, tuple) else None


def affine_after(outer: Cute, inner: Cute) -> Affine | None:
    """Return ``outer`` after ``inner`` as an affine map over F2 where both are, else None.

    Example:
        >>> affine_after(CuteLayout((2, 4), (8, 1)), CuteLayout(4, 2))
        ((1, 2), 0)
    """
    below = affine(inner)
    if below is None:
        return None
    bits = max(value.bit_length() for value in (below[1], *below[0], 0))
    above = affine(_start(outer, bits))
    if above is None:
        return None
    columns, constant = above
    return matrix.multiply(columns, below[0]), constant ^ matrix.apply(columns, below[1])


def _start(layout: Cute, bits: int) -> Cute:
    """Return the layout on its first 2**bits coordinates, or unchanged where that is no layout."""
    if layout.size <= 1 << bits:
        return layout
    base = layout.base if isinstance(layout, ComposedLayout) else layout
    try:
        run = factor_run(merge(base.flat), 1, 1 << bits)
    except GaveUpError:
        return layout
    if isinstance(run, Broken):
        return layout
    short = from_flat(run)
    return layout.rebase(short) if isinstance(layout, ComposedLayout) else short


def restack(layout: ComposedLayout, bottom: Cute) -> ComposedLayout:
    """Return the swizzles and offsets of ``layout`` over another layout, composed or not.

    Example:
        >>> print(restack(ComposedLayout(Swizzle(1, 0, 1), 8, CuteLayout(4)), CuteLayout(2, 2)))
        Sw<1,0,1> o 8 o 2:2
    """
    answer = bottom
    for swizzle, offset in reversed(layout.stages):
        answer = ComposedLayout(swizzle, offset, answer)
    if not isinstance(answer, ComposedLayout):  # a composed layout has at least one stage
        return ComposedLayout(IDENTITY, 0, answer)
    return answer


def lift(operation: Callable[..., CuteLayout], layout: ComposedLayout, *operands: object) -> ComposedLayout:
    """Return an operation that only rearranges the domain, applied under the swizzles.

    Mathematically: if ``operation(L)(c) = L(h(c))`` for a map h that does not depend on the strides' values, then the
    answer is ``c -> layout(h(c))``: divides, grouping, flattening, coalescing and composition with a layout.

    Args:
        operation: Takes a CuTe layout first.
        layout: The swizzled layout.
        operands: The other operands.

    Example:
        >>> from layoutalg.cute.algebra import flatten
        >>> print(lift(flatten, ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(((2, 2), 2)))))
        Sw<1,0,1> o 0 o (2,2,2):(1,2,4)
    """
    return layout.rebase(operation(layout.base, *operands))
