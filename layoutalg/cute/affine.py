"""CuTe layouts and swizzle stacks as affine maps over F2 of the flat coordinate.

Main statements: with extents that are powers of two, offset o and strides d, a layout is affine exactly when the
integers ``(o + d 2^j) xor o`` have pairwise disjoint bits (lemma in ``layoutalg.f2.carry``). Swizzles are
invertible and linear, so they change nothing here; only a later offset could cancel a carry.
"""

from __future__ import annotations

from typing import TypeAlias

from layoutalg.cute.composed import ComposedLayout, Cute, bottom
from layoutalg.cute.factor import Broken, GaveUpError, factor_run
from layoutalg.cute.layout import from_flat
from layoutalg.f2 import matrix
from layoutalg.f2.carry import shifted, sum_of_bits
from layoutalg.ground import recognize
from layoutalg.ground.digits import merge
from layoutalg.ground.limits import CUTE_POINTS

Affine: TypeAlias = tuple[tuple[int, ...], int]
"""Columns, one per bit of the flat coordinate, and constant of ``x -> M x xor c``; two's complement integers."""


def carry_free(layout: Cute) -> tuple[Affine | None, bool]:
    """Return the affine map (None if an addition carries) and whether a later offset could cancel that carry.

    Args:
        layout: Of power-of-two size.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> carry_free(CuteLayout((2, 2), (4, 1))), carry_free(CuteLayout((2, 2), (1, 3)))
        ((((4, 1), 0), False), (None, False))
    """
    addends = [stride << bit for extent, stride in bottom(layout).flat for bit in range(extent.bit_length() - 1)]
    stages = layout.stages[::-1] if isinstance(layout, ComposedLayout) else ()
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
    """Return the layout as an affine map over F2, or None if it is not affine or that is undecided.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> affine(CuteLayout((2, 2), (4, 1))), affine(CuteLayout(6))
        (((4, 1), 0), None)
    """
    if layout.size < 1 or layout.size & (layout.size - 1):
        return None
    form, open_end = carry_free(layout)
    if form is not None or not open_end or layout.size > CUTE_POINTS:
        return form
    found = recognize.linear(layout.table())
    return found if isinstance(found, tuple) else None


def affine_after(outer: Cute, inner: Cute) -> Affine | None:
    """Return ``outer`` after ``inner`` as an affine map over F2 if both are affine, otherwise None.

    Example:
        >>> from layoutalg.cute import CuteLayout
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
    """Return the layout on its first 2**bits coordinates, or unchanged if the restriction is not a layout."""
    if layout.size <= 1 << bits:
        return layout
    try:
        run = factor_run(merge(bottom(layout).flat), 1, 1 << bits)
    except GaveUpError:
        return layout
    if isinstance(run, Broken):
        return layout
    return layout.rebase(from_flat(run)) if isinstance(layout, ComposedLayout) else from_flat(run)
