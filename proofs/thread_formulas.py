"""Formulas of numbers that threads have: affine over F2, or strides of the digits of the thread's number.

Main statements: both are found where there is one, so that ``None`` says that the numbers have to be listed.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.recognize import Departure, Modes, strided

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def affine(values: IntArray, live: BoolArray) -> tuple[int, tuple[int, ...]] | None:
    """Return (constant, columns) of an affine map of the thread's bits that has these values at the live threads."""
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
    """Return (constant, modes) of a sum of strided digits, fastest first, that has these values at the live threads.

    Live threads must be the first ones.

    Example:
        >>> strides(np.array([5, 6, 7, 15, 16, 17]), np.ones(6, dtype=bool))
        (5, ((3, 1), (2, 10)))
    """
    count = int(np.count_nonzero(live))
    if not count or not live[:count].all():
        return None
    found = strided(values[:count])
    return None if isinstance(found, Departure) else (int(values[0]), found)
