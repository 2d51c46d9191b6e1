"""One affine form ``a x + b`` on a box: its range, its residues, and its sorted strides.

A residue ``(a x + b) mod m`` is affine on a box exactly when the affine function through its values at the origin and
the unit points stays in [0, m) on the box. A form takes every value of an arithmetic progression with step
gcd(strides) as long as no sorted stride exceeds the reach of the smaller ones by more than that step.

Notation: a form is a row of coefficients and a constant; a box is its extents, fastest first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.integer.matrix import Vector


def span(row: Sequence[int], constant: int, extents: Sequence[int]) -> tuple[int, int]:
    """Return the least and greatest value of an affine form on a nonempty box."""
    low = high = constant
    for a, extent in zip(row, extents, strict=True):
        if a > 0:
            high += a * (extent - 1)
        else:
            low += a * (extent - 1)
    return low, high


def residue_form(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int]) -> tuple[Vector, int] | None:
    """Return the affine form over Z that equals a residue on a box; None if the residue is not affine there.

    Args:
        row: Coefficients.
        constant: The constant.
        modulus: The modulus; 0 if the form is already over Z.
        extents: The box.

    Example:
        >>> residue_form((7,), 3, 8, (4,)), residue_form((7,), 3, 8, (5,))
        (((-1,), 3), None)
    """
    if not modulus:
        return tuple(row), constant
    base = constant % modulus
    lifted = tuple(
        [(constant + a) % modulus - base if extent > 1 else 0 for a, extent in zip(row, extents, strict=True)]
    )
    if not math.prod(extents):
        return lifted, base
    low, high = span(lifted, base, extents)
    return (lifted, base) if low >= 0 and high < modulus else None


def first_at_least(row: Sequence[int], constant: int, extents: Sequence[int], bound: int) -> Vector | None:
    """Return the first point of a box, in flat index order, where an affine form reaches ``bound``; or None.

    Example:
        >>> first_at_least((1, 4), 0, (4, 3), 6)
        (2, 1)
    """
    if not math.prod(extents) or span(row, constant, extents)[1] < bound:
        return None
    # from the slowest axis down: the least digit for which the faster axes can still reach the bound
    point = [0] * len(extents)
    for place in range(len(extents) - 1, -1, -1):
        reach = span(row[:place], constant, extents[:place])[1]
        missing = bound - reach
        step = row[place]
        if missing > 0:
            point[place] = -(-missing // step)
            constant += step * point[place]
    return tuple(point)


def growing(row: Sequence[int], extents: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
    """Return (stride, extent) by size if each stride exceeds the reach of the smaller ones, so the form is injective.

    Example:
        >>> growing((5, -1), (2, 4)), growing((3, 1), (2, 4)) is None
        (((1, 4), (5, 2)), True)
    """
    modes = sorted_axes(row, extents)
    reach = 0
    for stride, extent, _ in modes:
        if stride <= reach:
            return None
        reach += stride * (extent - 1)
    return tuple([(stride, extent) for stride, extent, _ in modes])


def filled(row: Sequence[int], extents: Sequence[int]) -> tuple[int, int, bool]:
    """Return (step, reach, whole): a form takes its least value plus 0, step, 2 step, ..., reach.

    If ``whole``, these are all values; else the value reach + step above the least is missed, and so is its mirror
    image below the greatest.

    Example:
        >>> filled((2, -4), (2, 3)), filled((2, 10), (3, 2)), filled((0,), (4,))
        ((2, 10, True), (2, 4, False), (1, 0, True))
    """
    modes = [mode for mode in sorted_axes(row, extents) if mode[0]]
    step = math.gcd(*[stride for stride, _, _ in modes]) or 1
    reach = 0
    for stride, extent, _ in modes:
        if stride > reach + step:
            return step, reach, False
        reach += stride * (extent - 1)
    return step, reach, True


def point_in_run(row: Sequence[int], constant: int, extents: Sequence[int], value: int) -> Vector:
    """Return a point where a form takes one of its values; the form must be ``filled`` whole.

    Example:
        >>> point_in_run((2, -4), 8, (2, 3), 6)
        (1, 1)
    """
    rest = value - span(row, constant, extents)[0]
    modes = sorted_axes(row, extents)
    below = sum([stride * (extent - 1) for stride, extent, _ in modes])
    point = [0] * len(row)
    for stride, extent, place in reversed(modes):
        below -= stride * (extent - 1)
        # the least digit for which the smaller strides can reach the rest
        digit = max(0, -((below - rest) // stride)) if stride else 0
        rest -= digit * stride
        point[place] = digit if row[place] >= 0 else extent - 1 - digit
    return tuple(point)


def sorted_axes(row: Sequence[int], extents: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (abs(stride), extent, place) of the axes of extent above 1, least stride first."""
    return sorted([(abs(a), e, place) for place, (a, e) in enumerate(zip(row, extents, strict=True)) if e > 1])


def grid(extents: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Return one coordinate array per axis that broadcast to the box with the fastest axis last."""
    count = len(extents)
    return [
        np.arange(extent, dtype=np.int64).reshape([-1 if k == count - 1 - place else 1 for k in range(count)])
        for place, extent in enumerate(extents)
    ]
