"""Formulas for per-thread values: affine over F2, or strided in the digits of the thread number.

Both searches are complete: ``None`` means that no such formula exists.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.recognize import Departure, Modes, strided

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def affine(values: IntArray, live: BoolArray) -> tuple[int, tuple[int, ...]] | None:
    """Return (constant, columns) of a map, affine in the thread bits, with these values at the live threads."""
    width = (len(values) - 1).bit_length()
    rows: dict[int, tuple[int, int]] = {}
    for thread in np.flatnonzero(live).tolist():
        point, value = thread << 1 | 1, int(values[thread])
        while point and point.bit_length() in rows:
            other, theirs = rows[point.bit_length()]
            point, value = point ^ other, value ^ theirs
        if point:
            rows[point.bit_length()] = (point, value)
        elif value:
            return None
    solved = [0] * (width + 1)
    for length in sorted(rows):
        point, value = rows[length]
        for bit in range(length - 1):
            if point >> bit & 1:
                value ^= solved[bit]
        solved[length - 1] = value
    return solved[0], tuple(solved[1:])


def strides(values: IntArray, live: BoolArray) -> tuple[int, Modes] | None:
    """Return (constant, modes) of a sum of strided digits, fastest first, with these values at the live threads.

    None unless the live threads are the first ones.

    Example:
        >>> strides(np.array([5, 6, 7, 15, 16, 17]), np.ones(6, dtype=bool))
        (5, ((3, 1), (2, 10)))
    """
    count = int(np.count_nonzero(live))
    if not count or not live[:count].all():
        return None
    found = strided(values[:count])
    return None if isinstance(found, Departure) else (int(values[0]), found)
