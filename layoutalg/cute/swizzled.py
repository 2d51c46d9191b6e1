"""Stacks of swizzles: their normal form, and products of swizzles.

Notation: a stack g is ``Sw_k o o_k o ... o Sw_1 o o_1``, a bijection of the integers; a composed layout is g after a
CuTe layout.

Main statements: for power-of-two sizes one elimination over F2 decides whether fewer swizzles suffice; otherwise the
values decide, for at most 2**20 points. ``layoutalg.cute.fit`` finds the form or proves that none exists.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutalg.cute.affine import affine
from layoutalg.cute.composed import IDENTITY, ComposedLayout, Cute, Stages, staged
from layoutalg.cute.fit import over_f2, over_table
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle
from layoutalg.f2 import matrix
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS


def simplify(layout: Cute) -> Cute:
    """Return the same function on the same shape with the fewest swizzles: none, one, or the stack it needs.

    Mathematically: the answer has the layout's shape up to refinement of its leaves. It is ``shape:stride`` or
    ``Sw o offset o shape:stride`` if such a form exists and is decidable (power-of-two size, or at most 2**20 points);
    otherwise the stack with adjacent swizzles multiplied.

    Args:
        layout: A CuTe or a composed layout.

    Example:
        >>> twice = ComposedLayout(Swizzle(2, 0, 2), 0, ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 4))))
        >>> print(simplify(twice))
        (4,4):(1,4)
        >>> print(simplify(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 8), (1, 8)))))
        (8,8):(1,8)
        >>> print(simplify(ComposedLayout(Swizzle(1, 0, 1), 2, CuteLayout((2, 2), (1, 4)))))
        3 + (2,2):(-1,4)

    Laws: keeps ``table``.
    """
    if not isinstance(layout, ComposedLayout):
        return layout
    if layout.size == 0:
        return CuteLayout(layout.shape, layout.base.stride)
    if not layout.outer.bits and len(layout.stages) == 1:
        return layout if layout.offset else layout.base
    form = affine(layout)
    if form is not None:
        found = over_f2(*form, layout.shape)
    else:
        found = tabled(layout.table, layout.shape) if layout.size <= CUTE_POINTS else None
    return staged(_multiplied(layout.stages), layout.base) if found is None else found


def strided_form(layout: Cute, operation: str) -> CuteLayout:
    """Return the layout as ``shape:stride``, or raise; for operations defined on nothing else.

    Raises: RepresentabilityError: LA136.

    Example:
        >>> print(strided_form(ComposedLayout(IDENTITY, 0, CuteLayout(4)), "nullspace"))
        4:1
    """
    form = simplify(layout)
    if isinstance(form, CuteLayout):
        return form
    because = f"it starts at {form(0)}" if len(form.stages) == 1 and not form.outer.bits else "its swizzle acts on it"
    because = f"{form} is not shape:stride, {because}; its .base is"
    raise RepresentabilityError(
        Diagnostic("LA136", "the operation is only defined for shape:stride", (f"{operation}({layout})",), because)
    )


def tabled(table: Callable[[], IntArray], shape: IntTuple) -> Cute | None:
    """Return the CuTe form of the values on ``shape``; None if there is none or the values are too large to decide."""
    values = table()
    if int(values.max()) >= 2**61 or int(values.min()) <= -(2**61):
        return None
    return over_table(values, shape)


def _multiplied(stages: Stages) -> Stages:
    """Multiply adjacent swizzles."""
    found: list[tuple[Swizzle, int]] = []  # innermost first
    for swizzle, offset in reversed(stages):
        product = swizzle_product(swizzle, found[-1][0]) if found and offset == 0 else None
        if product is None:
            found.append((swizzle, offset))
        else:
            found[-1] = (product, found[-1][1])
    return tuple([stage for stage in reversed(found) if stage != (IDENTITY, 0)])


def swizzle_product(outer: Swizzle, inner: Swizzle) -> Swizzle | None:
    """Return the swizzle x -> outer(inner(x)), or None if the product is not a swizzle.

    Mathematically: both are ``I + N`` over F2 with N on one diagonal; the product is a swizzle exactly when
    ``N + N' + N N'`` is one run on one diagonal.

    Args:
        outer: Applied last.
        inner: Of the same unit.

    Example:
        >>> print(swizzle_product(Swizzle(2, 0, 3), Swizzle(1, 2, 3)))
        Sw<3,0,3>
    """
    reach = max(outer.period, inner.period).bit_length() - 1  # bits that the swizzles read or write
    images = [outer(inner(1 << position)) ^ 1 << position for position in range(reach)]
    cells = [(source, image.bit_length() - 1) for source, image in enumerate(images) if image]
    if not cells:
        return Swizzle(0, 0, 0, inner.unit)
    if any(image & (image - 1) for image in images):
        return None
    shift, bits = cells[0][0] - cells[0][1], len(cells)
    run = [(cells[0][0] + step, cells[0][1] + step) for step in range(bits)]
    return Swizzle(bits, min(cells[0]), shift, inner.unit) if cells == run and abs(shift) >= bits else None


def first_leaving(swizzle: Swizzle, size: int, bound: int) -> int | None:
    """Return the least x in [0, size) with swizzle(x) >= bound, or None. No enumeration.

    Example:
        >>> first_leaving(Swizzle(1, 0, 1), 3, 3), first_leaving(Swizzle(1, 0, 1), 4, 4)
        (2, None)
    """

    def greatest(low: int, free: int) -> int:
        """Return the greatest image of low .. low + 2^free - 1, with low a multiple of 2^free."""
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
