"""Fit ``[Sw o offset o] shape:stride`` to a function on a shape, or prove that none exists.

Main statements: with extents that are powers of two, offset o and strides d, a layout is affine over F2 exactly when
the integers ``(o + d 2^j) xor o`` have pairwise disjoint bits (lemma in ``layoutalg.f2.carry``). Swizzles are
invertible and linear, so they change nothing here; only a later offset could cancel a carry.

A function f on a shape is ``Sw o (offset + L)`` for a layout L whose shape refines the given one exactly when Sw f is
strided along the flat coordinate and along every leaf of the shape. Over F2 one elimination decides all Sw at once
(``layoutalg.f2.carry``). Otherwise all relevant swizzles are tried, for at most 2**20 points: with n values below 2^w,
bits written above w + log2 n + 1 only repeat lower ones, and bits read above w are 0 (or the sign).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from layoutalg.cute.factor import Broken, GaveUpError, factor_run, first_carry
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.cute.layout import CuteLayout, from_flat, from_runs
from layoutalg.cute.swizzle import IDENTITY, ComposedLayout, Cute, Stages, Swizzle, staged
from layoutalg.f2 import matrix
from layoutalg.f2.carry import one_swizzle, shifted, sum_of_bits
from layoutalg.ground import clock, recognize
from layoutalg.ground.digits import Flat, IntArray, merge
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS

WIDEST = 62

Affine: TypeAlias = tuple[tuple[int, ...], int]
"""Columns, one per bit of the flat coordinate, and constant of ``x -> M x xor c``; two's complement integers."""


def carry_free(layout: Cute) -> tuple[Affine | None, bool]:
    """Return the affine map (None if an addition carries) and whether a later offset could cancel that carry."""
    addends = [stride << bit for extent, stride in layout.base.flat for bit in range(extent.bit_length() - 1)]
    stages = layout.stages[::-1]
    constant = stages[0][1] if stages else 0
    columns = sum_of_bits(constant, addends)
    for position, (swizzle, offset) in enumerate(stages):
        if position and columns is not None:
            answer = shifted(columns, constant, offset)
            columns, constant = (None, 0) if answer is None else answer
        if columns is None:
            return None, any(later for _, later in stages[position + 1 :])
        columns = tuple([swizzle(column) for column in columns])
        constant = swizzle(constant)
    return (None if columns is None else (columns, constant)), False


def affine(layout: Cute) -> Affine | None:
    """Return the layout as an affine map over F2, or None if it is not affine or that is undecided."""
    if layout.size < 1 or layout.size & (layout.size - 1):
        return None
    form, open_end = carry_free(layout)
    if form is not None or not open_end or layout.size > CUTE_POINTS:
        return form
    found = recognize.linear(layout.table())
    return found if isinstance(found, tuple) else None


def affine_after(outer: Cute, inner: Cute) -> Affine | None:
    """Return ``outer`` after ``inner`` as an affine map over F2 if both are affine, otherwise None."""
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
    """Return the layout on its first 2**bits coordinates, or unchanged if the restriction is not a layout."""
    if layout.size <= 1 << bits:
        return layout
    try:
        run = factor_run(merge(layout.base.flat), 1, 1 << bits)
    except GaveUpError:
        return layout
    if isinstance(run, Broken):
        return layout
    return layout.rebase(from_flat(run)) if isinstance(layout, ComposedLayout) else from_flat(run)


def over_f2(columns: Sequence[int], constant: int, shape: IntTuple) -> Cute | None:
    """Return ``[Sw o offset o] shape:stride`` equal to ``x -> M x xor constant``, or None.

    Args:
        columns: Image of each bit of the flat coordinate, two's complement integers.
        constant: Value at 0.
        shape: Extents are powers of two and multiply to ``2 ** len(columns)``.

    Complexity: O(width^2).
    """
    width = max(value.bit_length() for value in (constant, *columns, 0))
    if width > WIDEST:
        return None
    if min((constant, *columns, 0)) < 0:
        width = min(WIDEST, 2 * width + 2)  # room for every copy of the sign that a swizzle may read
    mask = (1 << width) - 1
    fields = one_swizzle([column & mask for column in columns])
    if fields is None:
        return None
    swizzle = Swizzle(*fields)
    offset = swizzle(constant)
    seen = 0
    digits: list[tuple[int, int]] = []
    for column in [swizzle(value) for value in columns]:
        if seen & column:
            return None
        seen |= column
        digits.append((2, (offset ^ column) - offset))
    leaves: list[Flat] = []
    position = 0
    for extent in flatten(shape):
        bits = extent.bit_length() - 1
        leaves.append(merge(tuple(digits[position : position + bits])))
        position += bits
    return _assembled(swizzle, offset, shape, leaves)


def over_table(values: IntArray, shape: IntTuple) -> Cute | None:
    """Return ``[Sw o offset o] shape:stride`` with the given table, or None.

    Args:
        values: One per point of ``shape``, at least one; magnitudes below 2**61.
        shape: The domain; every leaf keeps its place and may be refined.

    Complexity: O(width^3) probes of the start of the table; the whole table only if the start fits.
    """
    if not len(values) & (len(values) - 1):
        form = recognize.linear(values)
        if not isinstance(form, recognize.Departure):
            return over_f2(*form, shape)
    for fields, modes in _strided_forms(values):
        clock.check("a search for a swizzle")
        leaves = _leaves(modes, shape)
        if leaves is not None:
            swizzle = Swizzle(*fields)
            try:
                return _assembled(swizzle, swizzle(int(values[0])), shape, leaves)
            except MalformedError:  # the swizzled numbers leave 64 bits
                continue
    return None


def _strided_forms(values: IntArray) -> Iterator[tuple[tuple[int, int, int], Flat]]:
    modes = recognize.strided(values)
    if not isinstance(modes, recognize.Departure):
        yield (0, 0, 0), modes
    yield from recognize.swizzled_forms(values)


def _leaves(modes: Flat, shape: IntTuple) -> list[Flat] | None:
    """Return the digits of each leaf of ``shape``, or None: the modes composed with the shape's compact layout."""
    inner = CuteLayout(shape).flat
    try:
        runs = [factor_run(modes, weight, extent) for extent, weight in inner]
        digits = [run for run in runs if not isinstance(run, Broken)]
        if len(digits) < len(runs) or first_carry(modes, inner, digits) is not None:
            return None
    except GaveUpError:
        return None
    return digits


def _assembled(swizzle: Swizzle, offset: int, shape: IntTuple, leaves: Sequence[Flat]) -> Cute:
    strided = from_runs(leaves, shape)
    return strided if swizzle.bits == 0 and offset == 0 else ComposedLayout(swizzle, offset, strided)


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
    """Return the layout as ``shape:stride``, or raise; for operations defined on nothing else."""
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
    """Return the least x in [0, size) with swizzle(x) >= bound, or None. No enumeration."""

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
