"""One affine form ``a x + b`` on a box: its range, residues, sorted strides, and the inverse of a bijection.

A residue ``(a x + b) mod m`` is affine on a box exactly when the affine function through its values at the origin and
the unit points stays in [0, m) on the box. A form takes every value of an arithmetic progression with step
gcd(strides) as long as no sorted stride exceeds the reach of the smaller ones by more than that step. It is a bijection
onto 0, 1, ..., size - 1 exactly when its strides, sorted by size, are 1, s_1, s_1 s_2, ...; then the coordinates are
the digits of the value along the strides, read backwards for a negative stride.

Notation: a form is a row of coefficients and a constant; a box is its extents, fastest first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.integer.matrix import Vector

SPREAD = 61
RANDOM = 1000


def sampled_coordinates(size: int, most: int = RANDOM) -> npt.NDArray[Any]:
    """Return sample flat coordinates, ascending: all up to ``most``; else the ends, powers of two, and random ones.

    Example:
        >>> sampled_coordinates(6).tolist(), len(sampled_coordinates(2**40)) > 1000
        ([0, 1, 2, 3, 4, 5], True)
    """
    if size <= most:
        return np.arange(size, dtype=np.int64)
    powers = [1 << bit for bit in range(size.bit_length() - 1)]
    rng = random.Random(0)  # deterministic
    found = {0, size - 1, *powers, *(size * k // SPREAD for k in range(SPREAD)), *((size - 1) // p for p in powers)}
    found |= {rng.randrange(size) for _ in range(RANDOM)}
    return np.array(sorted(found), dtype=np.int64 if size <= 2**62 else object)


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


@dataclass(frozen=True, slots=True)
class Index:
    """The index of value v: ``start`` plus the sum of digit times stride over the mixed-radix digits of v."""

    modes: tuple[tuple[int, int], ...]  # (extent, stride) of each digit, fastest first
    start: int  # index of the value 0
    modulus: int = 0  # indices are residues modulo this; 0 for plain integers


Flaw: TypeAlias = tuple[int, int] | int
"""Two indices with the same value; or a value of 0, ..., size - 1 that is missed; or a negative value."""


def index_by_strides(row: Sequence[int], constant: int, extents: Sequence[int]) -> Index | Flaw:
    """Return the index of each value of a form over Z, or why the form is not a bijection onto 0, ..., size - 1.

    Example:
        >>> index_by_strides((-3, 1), 3, (2, 3))
        Index(modes=((3, 2), (2, -1)), start=1, modulus=0)
        >>> [index_by_strides((2, a), b, (3, 3)) for a, b in ((1, 0), (7, 0), (7, -4))]
        [(1, 6), 1, -4]
    """
    if not math.prod(extents):
        return Index(((0, 0),), 0)
    weights = [math.prod(extents[:place]) for place in range(len(extents))]
    low, reach, modes, start = span(row, constant, extents)[0], 1, list[tuple[int, int]](), 0
    axes = sorted_axes(row, extents)
    for count, (stride, extent, place) in enumerate(axes):
        if stride > reach:
            return reach if low == 0 else min(low, 0)
        if stride < reach:
            # writing the stride in the smaller ones gives a second point with the same value
            steps = [[0] * len(extents), [0] * len(extents)]
            steps[1][place], rest = 1, stride
            for smaller, _, faster in axes[:count][::-1]:
                steps[0][faster], rest = divmod(rest, smaller)
            one, other = (
                sum([w * (e - 1 - x if a < 0 else x) for w, x, a, e in zip(weights, step, row, extents, strict=True)])
                for step in steps
            )
            return min(one, other), max(one, other)
        down = row[place] < 0
        start += weights[place] * (extent - 1) if down else 0
        modes.append((extent, -weights[place] if down else weights[place]))
        reach *= extent
    return Index(tuple(modes), start) if low == 0 else min(low, 0)


def index_by_table(table: npt.NDArray[Any], modulus: int) -> Index | Flaw | None:
    """Return the index of each value of a table of residues, or why there is none; None if the index is not strided.

    Args:
        table: At least two entries.
        modulus: The modulus of the values. Indices are tried as integers, modulo the size and modulo this.

    Example:
        >>> index_by_table(np.array([0, 3, 2, 5, 4, 7, 6, 1]), 8)
        Index(modes=((2, 7), (4, 2)), start=0, modulus=8)
        >>> index_by_table(np.array([0, 3, 6, 0]), 9), index_by_table(np.array([0, 3, 6]), 7)
        ((0, 3), 1)
    """
    size = len(table)
    order = np.argsort(table, kind="stable")
    wrong = np.flatnonzero(table[order] != np.arange(size))
    if wrong.size:
        place = int(wrong[0])
        if place and table[order[place]] == table[order[place - 1]]:
            return int(order[place - 1]), int(order[place])
        return place
    for m in (0, size, modulus):
        modes = _modes(order, m)
        found = order[:1]
        for extent, stride in modes:
            found = (found + stride * np.arange(extent)[:, None]).reshape(-1)
        if len(found) == size and not ((found - order) % m if m else found - order).any():
            return Index(modes, int(order[0]), m)
    return None


def _modes(table: npt.NDArray[np.int64], modulus: int) -> tuple[tuple[int, int], ...]:
    """Return the only digits, fastest first, that can generate a table minus its first entry; too few if none can."""
    done, modes = 1, []
    while done < len(table):
        line = table[::done] - table[0]
        gaps = line - line[1] * np.arange(len(line))
        wrong = np.flatnonzero(gaps % modulus if modulus else gaps)
        extent = int(wrong[0]) if wrong.size else len(line)
        if len(table) % (done * extent):
            break
        modes.append((extent, int(line[1]) % modulus if modulus else int(line[1])))
        done *= extent
    return tuple(modes)
