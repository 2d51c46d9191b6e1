"""Bijections of [0, N): digit maps, and tables for the rest, with exact composition and inverse.

``canonical`` returns a digit map if the function is one, otherwise the table; a digit map is a complete normal form. So
two canonical bijections are the same function exactly when they compare equal.

Digit maps compose by splitting at each other's boundaries. If the boundaries do not divide each other (extents 2, 3
against 3, 2), the composition is a table of up to 2**20 points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import refuse
from layoutalg.ground.digits import IntArray, Stride
from layoutalg.ground.errors import LayoutError
from layoutalg.hierarchy.digitmap import (
    DigitMap,
    assemble,
    check_points,
    compose_digits,
    from_table,
    indices,
    inverse_digits,
)
from layoutalg.hierarchy.levels import integer, malformed


@dataclass(frozen=True, slots=True)
class TableMap:
    """A bijection of [0, N) as the tuple of its values, at most 2**20; checked.

    Example:
        >>> TableMap((1, 2, 0)).at(1)
        2
    """

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple):
            raise malformed("values", "must be a tuple of integers", self.values)
        if not self.values:
            raise malformed("values", "must not be empty", self.values)
        count = len(self.values)
        check_points(count)
        values = self.values
        if set(map(type, values)) != {int}:
            values = tuple(integer(value, f"values[{k}]", -(2**62), 2**62) for k, value in enumerate(values))
        if min(values) < 0 or max(values) >= count or len(set(values)) != count:
            raise _first_clash(values)
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.values)

    def at(self, index: int) -> int:
        """Return the image of one index."""
        return self.values[integer(index, "index", 0, self.size)]

    def apply(self, index: npt.ArrayLike) -> IntArray:
        """Return the images of an array of indices."""
        return self.table()[indices(index, self.size)]

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        return np.array(self.values, dtype=np.int64)


def _first_clash(values: tuple[int, ...]) -> LayoutError:
    """Return the error for the first value that is out of range or a duplicate."""
    first: dict[int, int] = {}
    for index, value in enumerate(values):
        integer(value, f"values[{index}]", -(2**62), 2**62)
        inside = 0 <= value < len(values)
        if not inside or value in first:
            break
        first[value] = index
    witness = {"first": first[value], "second": index, "value": value} if inside else {"index": index, "value": value}
    because = f"value {value} occurs twice" if inside else f"value {value} is not in [0, {len(values)})"
    return refuse("LA752", "this table is not a bijection", because, witness, f"{len(values)} values")


Bijection: TypeAlias = DigitMap | TableMap


def canonical(bijection: Bijection) -> Bijection:
    """Return the same function as a digit map if it is one, otherwise as a table.

    Example:
        >>> canonical(TableMap((0, 2, 4, 1, 3, 5))), canonical(TableMap((0, 1, 3, 2)))
        (DigitMap(modes=((3, 2), (2, 1))), DigitMap(modes=((2, 1), (2, (1, 2)))))
    """
    return bijection if isinstance(bijection, DigitMap) else from_table(bijection.table()) or bijection


def identity(size: int) -> DigitMap:
    """Return the identity of [0, size)."""
    return DigitMap(((size, 1),))


def tabulated(values: IntArray) -> Bijection:
    """Return the canonical bijection with these values, which are checked."""
    return canonical(TableMap(tuple(values.tolist())))


def compose(outer: Bijection, inner: Bijection) -> Bijection:
    """Return ``outer`` after ``inner``, canonical.

    Raises: AdmissibilityError: LA751, LA754.

    Example:
        >>> compose(DigitMap(((2, 3), (3, 1))), DigitMap(((3, 2), (2, 1)))).modes
        ((6, 1),)
    """
    if outer.size != inner.size:
        because = f"the inner bijection has {inner.size} points, the outer one {outer.size}"
        raise refuse("LA751", "the bijections do not compose", because, {"inner": inner.size, "outer": outer.size})
    if isinstance(outer, DigitMap) and isinstance(inner, DigitMap):
        found = compose_digits(outer, inner)
        if found is not None:
            return found
    check_points(inner.size, "composition without common digits")
    return tabulated(outer.table()[inner.table()])


def inverse(bijection: Bijection) -> Bijection:
    """Return the inverse, canonical; always exact.

    Example:
        >>> inverse(DigitMap(((3, 2), (2, -1)))).modes
        ((2, -3), (3, 1))
    """
    form = canonical(bijection)
    if isinstance(form, DigitMap):
        return inverse_digits(form)
    return TableMap(tuple(np.argsort(form.table()).tolist()))


def local(bijection: Bijection, low: int, high: int) -> Bijection:
    """Return the bijection applied to ``mid`` in the flat index lo + A (mid + M hi), A = ``low``, M = its size.

    Example:
        >>> local(DigitMap(((3, -1),)), 2, 5).modes
        ((2, 1), (3, -2), (5, 6))
    """
    form, middle = canonical(bijection), bijection.size
    if isinstance(form, DigitMap):
        moved: list[tuple[int, Stride]] = [
            (extent, tuple(weight * low for weight in stride) if isinstance(stride, tuple) else stride * low)
            for extent, stride in form.pieces()
        ]
        return assemble([(low, 1), *moved, (high, low * middle)], form.offset * low)
    check_points(low * middle * high, "a table acting inside a larger box")
    inner = (np.arange(low)[None, :] + low * form.table()[:, None]).reshape(-1)
    return tabulated((inner[None, :] + low * middle * np.arange(high)[:, None]).reshape(-1))
