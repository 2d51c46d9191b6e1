"""Mixed-radix digit lists: the flat form every CuTe operation computes with.

Main definitions: ``Flat``, ``merge``, ``span``, ``evaluate``, ``evaluate_many``, ``table``, ``first_outside``.

Notation: a digit list is a tuple of (extent, stride) pairs, fastest first. It stands for the function that splits a 1-D
coordinate i into digits, i = c_0 + s_0 (c_1 + s_1 (c_2 + ...)) with 0 <= c_k < s_k, and returns the sum of c_k d_k.

Main statements: ``merge`` is a complete normal form. Two digit lists of equal size are the same function if and only if
their merged forms are equal: the table fixes the first stride as its entry at 1 and the first extent as the first k
where the entry at k is not k times that stride; the rest follows by induction.

References: J. Cecka, CuTe Layout Representation and Algebra, arXiv:2603.02298.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Flat: TypeAlias = tuple[tuple[int, int], ...]
IntArray: TypeAlias = npt.NDArray[np.int64]


def merge(flat: Flat) -> Flat:
    """Return the normal form: no extent 1, neighbours fused where the next stride continues the run.

    An empty function (some extent 0) has the normal form ``((0, 0),)``; the constant 0 of one point has ``()``.

    Example:
        >>> merge(((2, 1), (1, 7), (4, 2), (3, 100)))
        ((8, 1), (3, 100))
    """
    answer: list[tuple[int, int]] = []
    for extent, stride in flat:
        if extent == 1:
            continue
        if extent == 0:
            return ((0, 0),)
        if answer and answer[-1][0] * answer[-1][1] == stride:
            answer[-1] = (answer[-1][0] * extent, answer[-1][1])
        else:
            answer.append((extent, stride))
    return tuple(answer)


def span(flat: Flat) -> tuple[int, int]:
    """Return the least and the greatest value; (0, 0) for an empty function.

    Example:
        >>> span(((4, 8), (3, -1)))
        (-2, 24)
    """
    low = high = 0
    for extent, stride in flat:
        if extent == 0:
            return 0, 0
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high


def evaluate(flat: Flat, index: int) -> int:
    """Return the value at a 1-D coordinate that lies inside the domain.

    Example:
        >>> evaluate(((4, 8), (8, 1)), 21)
        13
    """
    total = 0
    for extent, stride in flat:
        index, digit = divmod(index, extent)
        total += digit * stride
    return total


def evaluate_many(flat: Flat, index: IntArray) -> IntArray:
    """Return the values at 1-D coordinates that lie inside the domain, one vectorised step per digit."""
    total = np.zeros_like(index)
    last = len(flat) - 1
    for position, (extent, stride) in enumerate(flat):
        if position == last:
            total += index * stride
        else:
            index, digit = np.divmod(index, extent)
            total += digit * stride
    return total


def table(flat: Flat) -> IntArray:
    """Return the values at 0, 1, ..., size - 1 as an outer sum, slowest digit outermost.

    Example:
        >>> table(((2, 1), (3, 10))).tolist()
        [0, 1, 10, 11, 20, 21]
    """
    values = np.zeros(1, dtype=np.int64)
    for extent, stride in flat:
        steps = np.arange(extent, dtype=np.int64) * stride if extent > 1 else np.zeros(extent, dtype=np.int64)
        values = np.add.outer(steps, values).reshape(-1)
    return values


def first_outside(flat: Flat, bound: int) -> int | None:
    """Return the least 1-D coordinate whose value is negative or at least ``bound``; None where there is none.

    The search fixes digits from the slowest: each takes the least value from which the faster digits can still reach
    the bound. No enumeration.

    Example:
        >>> first_outside(((4, 1), (8, 5)), 12)
        10
    """
    if any(extent == 0 for extent, _ in flat):
        return None
    above = _first_reaching(flat, bound)
    below = _first_reaching(tuple([(extent, -stride) for extent, stride in flat]), 1)
    if above is None or below is None:
        return below if above is None else above
    return min(above, below)


def _first_reaching(flat: Flat, bound: int) -> int | None:
    """Return the least 1-D coordinate with a value >= ``bound``."""
    reach = [0]
    for extent, stride in flat:
        reach.append(reach[-1] + max(0, (extent - 1) * stride))
    if reach[-1] < bound:
        return None
    index = 0
    need = bound
    for position in range(len(flat) - 1, -1, -1):
        extent, stride = flat[position]
        missing = need - reach[position]
        digit = 0 if missing <= 0 else -(-missing // stride)
        need -= digit * stride
        index = index * extent + digit
    return index
