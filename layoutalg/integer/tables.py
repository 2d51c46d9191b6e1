"""Decide small integer layouts by their tables: collisions, missed values, common values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector

TABLE_POINTS = 2**20


def fit(*layouts: IntegerLayout) -> bool:
    """Return whether these layouts are small enough to tabulate: at most 2^20 points each."""
    return all(layout.size <= min(TABLE_POINTS, layout.table_limit) for layout in layouts)


def repeat_in_table(layout: IntegerLayout) -> tuple[Vector, Vector] | None:
    """Return the first point whose value is a repeat, preceded by the earlier point; None if all values are distinct.

    Example:
        >>> repeat_in_table(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)))
        ((3, 0), (0, 2))
    """
    (keys,) = _keys(layout)
    _, first = np.unique(keys, return_index=True)
    if len(first) == layout.size:
        return None
    seen = np.zeros(layout.size, dtype=bool)
    seen[first] = True
    second = int(np.argmin(seen))
    return layout.coordinate(int(np.argmax(keys == keys[second]))), layout.coordinate(second)


def gap_in_table(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the first point of a box of outputs (low, high) that is not a value, first output fastest; or None.

    Example:
        >>> gap_in_table(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 3)), [(0, 5)])
        [2]
    """
    table = layout.table().reshape(layout.size, -1)
    volume = math.prod(high - low for low, high in sides)
    inside = np.ones(layout.size, dtype=bool)
    for column, (low, high) in zip(table.T, sides, strict=True):
        inside &= np.asarray((column >= low) & (column < high), dtype=bool)
    # pigeonhole: the first missing point is among the first size + 1 points of the box
    limit = min(volume, layout.size + 1)
    kind = np.int64 if table.dtype != object and volume < 2**62 else object
    keys = np.zeros(int(inside.sum()), dtype=kind)
    weight = 1
    for column, (low, high) in zip(table[inside].T, sides, strict=True):
        keys = keys + (column.astype(kind) - low) * weight
        weight *= high - low
    reached = np.zeros(limit, dtype=bool)
    reached[keys[np.asarray(keys < limit, dtype=bool)].astype(np.int64)] = True
    place = int(np.argmin(reached))
    if reached[place]:
        return None
    point = []
    for low, high in sides:
        place, digit = divmod(place, high - low)
        point.append(low + digit)
    return point


def shared_in_table(first: IntegerLayout, second: IntegerLayout) -> tuple[int, Vector, Vector]:
    """Return how many values two layouts share, and a point of each with the least common value, if any.

    Example:
        >>> f = IntegerLayout.from_strides({"i": 4}, (2,))
        >>> shared_in_table(f, IntegerLayout.from_strides({"i": 4}, (3,)))
        (2, (0,), (0,))
    """
    one, two = _keys(first, second)
    both = np.intersect1d(one, two)
    if not both.size:
        return 0, (), ()
    x, y = (int(np.argmax(keys == both[0])) for keys in (one, two))
    return len(both), first.coordinate(x), second.coordinate(y)


def _keys(*layouts: IntegerLayout) -> list[npt.NDArray[np.int64]]:
    """Return, per flat index of each layout, the rank of its value, first output compared first."""
    sizes = [layout.size for layout in layouts]
    memory.reserve("the values of layouts", sum(sizes), 48 + 16 * len(layouts[0].outputs))
    tables = [layout.table().reshape(layout.size, -1) for layout in layouts]
    keys = np.zeros(sum(sizes), dtype=np.int64)
    for place in range(len(layouts[0].outputs)):
        clock.check("comparing the values of layouts")
        values, places = np.unique(np.concatenate([table[:, place] for table in tables]), return_inverse=True)
        _, keys = np.unique(keys * len(values) + places.reshape(-1), return_inverse=True)
        keys = keys.reshape(-1).astype(np.int64)
    return np.split(keys, np.cumsum(sizes)[:-1])
