"""Named axes: a box of integer points, its flat index, and coordinates given by name.

Notation: axes are (name, extent) pairs, fastest first; flat indices are colexicographic (first axis fastest).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker

Axes: TypeAlias = tuple[tuple[str, int], ...]
Coordinate: TypeAlias = int | npt.NDArray[Any]
"""One coordinate or an array of them."""


def checked_axes(value: object, argument: str, check: Checker, low: int = 0) -> Axes:
    """Return a mapping or (name, extent) pairs as axes: distinct identifiers, extents of at least ``low``.

    Example:
        >>> checked_axes({"row": 3, "col": np.int64(5)}, "axes", Checker("LA750"))
        (('row', 3), ('col', 5))
    """
    pairs = check.pairs(value, argument)
    for place, (name, extent) in enumerate(pairs):
        if type(extent) is not int or extent < low:
            pairs[place] = name, check.integer(extent, f"{argument}[{name!r}]", low)
    return tuple(pairs)


def size(axes: Axes) -> int:
    """Return the number of points."""
    return math.prod([extent for _, extent in axes])


def flat_index(axes: Axes, point: object, check: Checker, argument: str = "point") -> int:
    """Return the flat index of a point given by name, all axes present."""
    index, weight = 0, 1
    for (name, extent), value in zip(axes, by_name(axes, point, check, argument), strict=True):
        inside = type(value) is int and 0 <= value < extent
        index += weight * (value if inside else check.integer(value, name, 0, extent))
        weight *= extent
    return index


def point_at(axes: Axes, index: int) -> dict[str, int]:
    """Return the coordinates of a flat index inside the box."""
    point = {}
    for name, extent in axes:
        index, point[name] = divmod(index, extent)
    return point


def digits_of(axes: Axes, index: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return one coordinate array per axis for flat indices inside the box."""
    digits = []
    for _, extent in axes:
        index, digit = np.divmod(index, extent) if extent else (index, index)
        digits.append(digit)
    return digits


def by_name(axes: Axes, coords: object, check: Checker, argument: str = "coords") -> list[Any]:
    """Return the values of a mapping whose keys are exactly the axes, in axis order."""
    if isinstance(coords, Mapping) and len(coords) == len(axes) and all(name in coords for name, _ in axes):
        return [coords[name] for name, _ in axes]
    names = [name for name, _ in axes]
    if not isinstance(coords, Mapping):
        raise check.malformed(argument, f"must map each of {names} to integers", coords)
    raise check.malformed(argument, f"must name the axes {names}", list(coords))


def coordinates(axes: Axes, coords: object, check: Checker) -> tuple[list[Coordinate], tuple[int, ...] | None]:
    """Return checked coordinates, one entry per axis, and their broadcast shape (None if all are ints).

    Args:
        axes: The box.
        coords: Axis name -> integer or array of integers.
        check: Reports the first coordinate outside its axis.

    Example:
        >>> coordinates((("row", 3), ("col", 5)), {"row": np.arange(3), "col": 1}, Checker("LA204"))
        ([array([0, 1, 2]), 1], (3,))
    """
    given = by_name(axes, coords, check)
    values = [check.coordinate(value, name, extent) for (name, extent), value in zip(axes, given, strict=True)]
    if all(type(value) is int for value in values):
        return values, None
    shapes = [np.shape(value) for value in values]
    try:
        return values, np.broadcast_shapes(*shapes)
    except ValueError:
        raise check.malformed("coords", "must be arrays that broadcast together", shapes) from None
