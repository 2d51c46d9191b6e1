"""The least point of every value of a small integer layout, as ISL text: arithmetic runs of values in few pieces.

Main definitions: ``listed``, ``listed_map``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Vector


def listed(layout: IntegerLayout, names: tuple[str, ...]) -> str:
    """Return the map from each value to its least point, the first axis compared first, as ISL text.

    Args:
        layout: At least one point; the time grows with the square of their number.
        names: Names of the outputs in the text.

    Example:
        >>> listed(IntegerLayout.from_strides({"i": 3}, (4,), 1), ("y",))
        '{ [y] -> [0 + 1*floor((y - 1)/4)] : 0 <= y - 1 <= 8 and (y - 1) mod 4 = 0 }'
    """
    least: dict[Vector, Vector] = {}
    rows = layout.table().reshape(layout.size, -1).tolist()
    for point, row in zip(itertools.product(*[range(extent) for extent in layout.extents[::-1]]), rows, strict=True):
        value, turned = tuple(row), point[::-1]
        least[value] = min(turned, least.get(value, turned))
    return listed_map(least, names)


def listed_map(table: Mapping[Vector, Vector], names: tuple[str, ...]) -> str:
    """Return a finite map between points as ISL text.

    Args:
        table: Points with their values, at least one; the time grows with the square of their number.
        names: Names of the coordinates of a point in the text.

    Example:
        >>> listed_map({(0,): (5,), (2,): (6,), (4,): (7,)}, ("y",))
        '{ [y] -> [5 + 1*floor((y - 0)/2)] : 0 <= y - 0 <= 4 and (y - 0) mod 2 = 0 }'
    """
    from layoutalg.piecewise.runs import runs_text

    return runs_text(table, names)
