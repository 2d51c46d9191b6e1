"""Evaluate a layout of any family at flat coordinates, without solvers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import OFFSET_BITS, AnyFamily, Given, check, checked, one_output
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

SPREAD = 61
RANDOM = 1000


def value_at(layout: Given, index: int) -> int:
    """Return the value of a layout at a flat coordinate, as its ``at`` does.

    Args:
        layout: A layout with one output.
        index: In [0, size).

    Raises: MalformedError: LA234.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> value_at(CuteLayout((2, 2), (1, 8)), 3)
        9
    """
    found = checked(layout, "value_at")
    one_output(found, "value_at")
    value: int = found.at(check.integer(index, "index", 0, found.size))  # type: ignore[assignment]
    return value


def values_at(layout: AnyFamily, index: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the outputs at flat coordinates, one row each; -1 at points that a guard of a partial tile excludes.

    Args:
        layout: A layout.
        index: Flat coordinates in [0, size), one-dimensional.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> values_at(CuteLayout((2, 2), (1, 8)), np.arange(4)).tolist()
        [[0], [1], [8], [9]]
    """
    if layout.size <= 2**OFFSET_BITS:
        values = np.asarray(layout.apply(index))
        return values if values.ndim == 2 else values.reshape(len(index), 1)
    if isinstance(layout, IntegerLayout | PiecewiseLayout):
        coords, rest = {}, index
        for name, extent in layout.inputs:
            coords[name], rest = rest % extent, rest // extent
        answers = [np.broadcast_to(np.asarray(a), (len(index),)) for a in layout.apply(coords).values()]
        return np.stack(answers, axis=-1) if answers else np.empty((len(index), 0), dtype=np.int64)
    holes = isinstance(layout, HierarchicalLayout) and not layout.is_total
    found = [-1 if holes and not layout.holds(int(i)) else layout.at(int(i)) for i in index]  # type: ignore[union-attr]
    return np.array(found, dtype=object).reshape(len(index), 1)


def sampled_coordinates(size: int) -> npt.NDArray[Any]:
    """Return sample flat coordinates, ascending: the ends, powers of two, even spacing, and random ones.

    Example:
        >>> sampled_coordinates(6).tolist(), len(sampled_coordinates(2**40)) > 1000
        ([0, 1, 2, 3, 4, 5], True)
    """
    if size <= RANDOM:
        return np.arange(size, dtype=np.int64)
    powers = [1 << bit for bit in range(size.bit_length() - 1)]
    rng = random.Random(0)  # deterministic
    found = {0, size - 1, *powers, *(size * k // SPREAD for k in range(SPREAD)), *((size - 1) // p for p in powers)}
    found |= {rng.randrange(size) for _ in range(RANDOM)}
    return np.array(sorted(found), dtype=np.int64 if size <= 2**OFFSET_BITS else object)
