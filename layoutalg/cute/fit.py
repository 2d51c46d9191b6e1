"""Fit ``[Sw o offset o] shape:stride`` to a function on a shape, or prove that none exists.

Main statements: a function f on a shape is ``Sw o (offset + L)`` for a layout L whose shape refines the given one
exactly when Sw f is strided along the flat coordinate and along every leaf of the shape. Over F2 one elimination
decides all Sw at once (``layoutalg.f2.carry``). Otherwise all relevant swizzles are tried: with n values below 2^w,
bits written above w + log2 n + 1 only repeat lower ones, and bits read above w are 0 (or the sign).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.factor import Broken, GaveUpError, factor_run, first_interaction
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.cute.layout import CuteLayout, from_runs
from layoutalg.cute.swizzle import Swizzle
from layoutalg.f2.carry import one_swizzle
from layoutalg.ground import clock, recognize
from layoutalg.ground.digits import Flat, IntArray, merge
from layoutalg.ground.errors import MalformedError

Fit: TypeAlias = "CuteLayout | ComposedLayout"

WIDEST = 62


def over_f2(columns: Sequence[int], constant: int, shape: IntTuple) -> Fit | None:
    """Return ``[Sw o offset o] shape:stride`` equal to ``x -> M x xor constant``, or None.

    Args:
        columns: Image of each bit of the flat coordinate, two's complement integers.
        constant: Value at 0.
        shape: Extents are powers of two and multiply to ``2 ** len(columns)``.

    Complexity: O(width^2).

    Example:
        >>> print(over_f2((1, 2, 5), 0, (2, 4)), over_f2((3, 1, 1), 0, 8))
        Sw<1,0,2> o 0 o (2,4):(1,2) None
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


def over_table(values: IntArray, shape: IntTuple) -> Fit | None:
    """Return ``[Sw o offset o] shape:stride`` with the given table, or None.

    Args:
        values: One per point of ``shape``, at least one; magnitudes below 2**61.
        shape: The domain; every leaf keeps its place and may be refined.

    Complexity: O(width^3) probes of the start of the table; the whole table only if the start fits.

    Example:
        >>> import numpy as np
        >>> print(over_table(np.array([0, 5, 2]), 3))
        Sw<1,0,-2> o 0 o 3:1
        >>> over_table(np.array([0, 1, 5]), 3) is None
        True
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
    """Return the digits of each leaf of ``shape``, or None if a leaf is not strided or the leaves do not add up.

    This composes the modes with the shape's compact layout.
    """
    leaves: list[Flat] = []
    digits: list[tuple[int, int]] = []
    weight = 1
    for extent in flatten(shape):
        if extent == 1:
            leaves.append(())
            continue
        try:
            run = factor_run(modes, weight, extent)
        except GaveUpError:
            return None
        if isinstance(run, Broken):
            return None
        leaves.append(run)
        inside = weight
        for count, _ in run:
            digits.append((count, inside))
            inside *= count
        weight *= extent
    try:
        additive = len(digits) < 2 or first_interaction(modes, tuple(digits)) is None
    except GaveUpError:
        return None
    return leaves if additive else None


def _assembled(swizzle: Swizzle, offset: int, shape: IntTuple, leaves: Sequence[Flat]) -> Fit:
    strided = from_runs(leaves, shape)
    return strided if swizzle.bits == 0 and offset == 0 else ComposedLayout(swizzle, offset, strided)
