"""Inverse of a form that is a bijection onto 0, 1, ..., size - 1.

A form over Z is a bijection onto an interval exactly when its strides, sorted by size, are 1, s_1, s_1 s_2, ...: the
least value that the smaller strides cannot reach must itself be a stride. So the coordinates are the digits of the
value along the strides, read backwards for a negative stride.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.integer.forms import sorted_axes, span


@dataclass(frozen=True, slots=True)
class Index:
    """The index of value v: ``start`` plus the sum of digit times stride over the mixed-radix digits of v.

    Args:
        modes: (extent, stride) of each digit, fastest first.
        start: Index of the value 0.
        modulus: Indices are residues modulo this; 0 for plain integers.
    """

    modes: tuple[tuple[int, int], ...]
    start: int
    modulus: int = 0


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
