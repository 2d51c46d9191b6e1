"""Hierarchical layouts: exact bijections between named boxes, optionally guarded; see ``notation`` for their text.

The map is canonical (a digit map if possible, otherwise a table), so on equal boxes two layouts without guards are the
same function exactly when they compare equal.

A partial tile is a bijection of the padded boxes with guards. A guard requires the image of the source under a
bijection to be within bounds, so composition and inversion of guarded layouts are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, Stride, coordinates, digits_of, merge, point_at, split_at
from layoutalg.ground.layout import Layout, composes
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, DigitMap, TableMap, check_points, indices
from layoutalg.hierarchy.levels import Box, check, integer, malformed


@dataclass(frozen=True, slots=True)
class Guard:
    """A predicate on the points of a box: their images under ``map`` are within ``bounds`` of another box.

    Args:
        map: Bijection from the flat index of the guarded box to that of ``box``.
        box: The box of the images.
        bounds: Per axis of ``box``, the number of allowed coordinates, from 0 to the extent.
    """

    map: Bijection
    box: Box
    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.map, DigitMap | TableMap) or not isinstance(self.box, Box):
            raise malformed("guard", "must be a bijection and a box", (self.map, self.box))
        if self.map.size != self.box.size:
            raise malformed("guard.map", f"must have the {self.box.size} points of its box", self.map.size)
        if not isinstance(self.bounds, tuple) or len(self.bounds) != len(self.box.axes):
            raise malformed("guard.bounds", f"must be a tuple of {len(self.box.axes)} integers", self.bounds)
        bounds = tuple(
            integer(bound, f"bounds[{name!r}]", 0, extent + 1)
            for bound, (name, extent) in zip(self.bounds, self.box.axes, strict=True)
        )
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "map", maps.canonical(self.map))

    @property
    def count(self) -> int:
        """Number of points that satisfy the predicate."""
        return math.prod(self.bounds)

    def holds(self, index: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the predicate at an array of flat indices, each inside the guarded box."""
        rest = self.map.apply(index)
        inside = np.ones(rest.shape, dtype=bool)
        for bound, (_, extent) in zip(self.bounds, self.box.axes, strict=True):
            rest, coordinate = np.divmod(rest, extent)
            inside &= coordinate < bound
        return inside

    def holds_at(self, index: int) -> bool:
        """Return the predicate at one flat index inside the guarded box."""
        coordinates = self.box.point(self.map.at(index)).values()
        return all(value < bound for value, bound in zip(coordinates, self.bounds, strict=True))


TABLE_TEXT = 64
"""Longest table that is written out in full."""


def _map_text(mapping: Bijection) -> str:
    if isinstance(mapping, DigitMap):
        return _digits_text(mapping.modes) + _flips_text(mapping)
    values = mapping.table()
    shown = values if len(values) <= TABLE_TEXT else values[:16]
    return f"table {','.join(map(str, shown.tolist()))}{',...' if len(values) > TABLE_TEXT else ''}"


def _digits_text(modes: Digits) -> str:
    def join(values: list[str]) -> str:
        return values[0] if len(values) == 1 else f"({','.join(values)})"

    def stride_text(stride: Stride) -> str:
        # highest first: for a swizzle, the bit itself before the bit it is xored into
        return str(stride) if isinstance(stride, int) else "^".join(map(str, reversed(stride)))

    if not modes:
        return "1:0"
    return f"{join([str(extent) for extent, _ in modes])}:{join([stride_text(stride) for _, stride in modes])}"


def _flips_text(mapping: DigitMap) -> str:
    return f" ^ ({','.join(map(str, mapping.flips))})" if mapping.flips else ""


def _guard_text(guard: Guard, layout: HierarchicalLayout) -> str:
    bounds = {
        name: bound for bound, (name, extent) in zip(guard.bounds, guard.box.axes, strict=True) if bound != extent
    }
    text = " and ".join(f"{name}<{bound}" for name, bound in bounds.items())
    if (guard.map, guard.box) == bounded_side(bounds.keys(), layout.source, layout.target, layout.map):
        return text
    return f"{text} where {_map_text(guard.map)} -> {guard.box}"


def bounded_side(names: Set[str], source: Box, target: Box, mapping: Bijection) -> tuple[Bijection, Box] | None:
    """Return the map and box that bounds without ``where`` refer to; None if neither side has all the axes."""
    if names <= source.dims.keys():
        return maps.identity(source.size), source
    return (mapping, target) if names <= target.dims.keys() else None


@dataclass(frozen=True, slots=True)
class HierarchicalLayout(Layout):
    """A bijection between two named boxes in normal form (digits or a table), partial if guarded.

    Mathematically: a bijection ``map`` of [0, N) read through the colexicographic flat indices of both boxes,
    restricted to the points that satisfy every guard.

    Args:
        source: Box of the coordinates.
        target: Box of the values, of the same size.
        map: The bijection of flat indices; kept canonical.
        guards: Predicates on the source; kept sorted, merged by map, without those that always hold.

    Example:
        >>> threads = HierarchicalLayout(Box.of(register=2, lane=8), Box.of(row=4, col=4), DigitMap(((2, 1), (8, 2))))
        >>> threads(register=1, lane=3), str(threads)
        ({'row': 3, 'col': 1}, 'register 2:1, lane 8:2 -> row:4, col:4')
        >>> (threads @ threads.inverse()).map
        DigitMap(modes=((16, 1),))

    Source: LEGO, arXiv 2505.08091 (group, order, tile, user bijections).
    """

    source: Box
    target: Box
    map: Bijection
    guards: tuple[Guard, ...] = ()
    title = "levels of a hierarchy"

    def __post_init__(self) -> None:
        for argument, box in (("source", self.source), ("target", self.target)):
            if not isinstance(box, Box):
                raise malformed(argument, "must be a Box", box)
        if not isinstance(self.map, DigitMap | TableMap):
            raise malformed("map", "must be a DigitMap or a TableMap", self.map)
        if self.source.size != self.target.size:
            rule = f"must have the {self.source.size} points of the source"
            raise malformed("target", rule, f"{self.target} with {self.target.size}")
        if self.map.size != self.source.size:
            raise malformed("map", f"must have the {self.source.size} points of the source", self.map.size)
        if not isinstance(self.guards, tuple) or not all(isinstance(guard, Guard) for guard in self.guards):
            raise malformed("guards", "must be a tuple of Guard", self.guards)
        bounds: dict[tuple[Bijection, Box], tuple[int, ...]] = {}
        for guard in self.guards:
            if guard.map.size != self.source.size:
                raise malformed("guards", f"must have the {self.source.size} points of the source", guard.map.size)
            key = (guard.map, guard.box)
            known = bounds.get(key, guard.bounds)
            bounds[key] = tuple(min(pair) for pair in zip(known, guard.bounds, strict=True))
        kept = [Guard(*key, limit) for key, limit in bounds.items() if limit != tuple(e for _, e in key[1].axes)]
        object.__setattr__(self, "map", maps.canonical(self.map))
        object.__setattr__(self, "guards", tuple(sorted(kept, key=repr)))

    @property
    def in_dims(self) -> dict[str, int]:
        """The axes of the source: name -> extent, fastest first."""
        return self.source.dims

    @property
    def out_dims(self) -> dict[str, int]:
        """The axes of the target: name -> extent, fastest first."""
        return self.target.dims

    @property
    def size(self) -> int:
        """Number of points of either box, ignoring guards."""
        return self.source.size

    @property
    def is_total(self) -> bool:
        """Whether the layout has no guards."""
        return not self.guards

    @property
    def is_identity(self) -> bool:
        """Whether the layout is total and maps every flat index to itself."""
        return self.is_total and self.map == maps.identity(self.size)

    def __call__(self, /, **point: int) -> dict[str, int]:
        """Evaluate at one point, axes by name."""
        return point_at(self.target.axes, self.at(self.source.flat(point)))

    def at(self, index: int) -> int:
        """Return the flat value at a flat index."""
        index = integer(index, "index", 0, self.size)
        for guard in self.guards:
            if not guard.holds_at(index):
                bounds = dict(zip(guard.box.names, guard.bounds, strict=True))
                because = f"it maps to {guard.box.point(guard.map.at(index))}, the bounds are {bounds}"
                what = "the point is outside the partial tile"
                raise refuse("LA753", what, because, self.source.point(index), self)
        return self.map.at(index)

    def holds(self, index: int) -> bool:
        """Return whether a flat index satisfies every guard."""
        index = integer(index, "index", 0, self.size)
        return all(guard.holds_at(index) for guard in self.guards)

    def apply(self, coords: Any) -> Any:
        """Return the values at many points, -1 where a guard excludes the point.

        Args:
            coords: An array of flat indices gives an array of flat values; coordinates by axis name (integers or arrays
                that broadcast together) give target coordinates. A single excluded point by name raises.

        Example:
            >>> swap = HierarchicalLayout(Box.of(x=2, y=2), Box.of(y=2, x=2), DigitMap(((2, 2), (2, 1))))
            >>> swap.apply([1, 2]).tolist(), swap.apply({"x": [0, 1], "y": 1})["x"].tolist()
            ([2, 1], [0, 1])
        """
        if not isinstance(coords, Mapping):
            return self._values(indices(coords, self.size))
        given, shape = coordinates(self.source.axes, coords, check)
        if shape is None:
            return self.target.point(self.at(self.source.flat(coords)))
        index = np.zeros(shape, dtype=np.int64)
        for values, (_, extent) in zip(reversed(given), reversed(self.source.axes), strict=True):
            index = index * extent + values
        flat = self._values(indices(index, self.size))
        digits = digits_of(self.target.axes, np.maximum(flat, 0))
        return {name: np.where(flat < 0, -1, digit) for name, digit in zip(self.target.names, digits, strict=True)}

    def _values(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        values = self.map.apply(index)
        for guard in self.guards:
            values = np.where(guard.holds(index), values, -1)
        return values

    def table(self) -> npt.NDArray[np.int64]:
        """Return the flat values at 0, 1, ..., size - 1, -1 where a guard excludes the point."""
        check_points(self.size, "the table of a hierarchical layout")
        return self._values(np.arange(self.size, dtype=np.int64))

    def active(self) -> int:
        """Return the number of points that satisfy every guard."""
        if len(self.guards) <= 1:
            return self.guards[0].count if self.guards else self.size
        return int((self.table() >= 0).sum())

    def inverse(self) -> HierarchicalLayout:
        """Return the inverse, guarded to the image of the active points; always exact."""
        back = maps.inverse(self.map)
        guards = tuple(Guard(maps.compose(g.map, back), g.box, g.bounds) for g in self.guards)
        return HierarchicalLayout(self.target, self.source, back, guards)

    def __invert__(self) -> HierarchicalLayout:
        """Return ``inverse()``."""
        return self.inverse()

    def digits(self) -> dict[str, Digits] | None:
        """Return the normal form by axis: source axis -> digits as (extent, stride into the flat target).

        A tuple instead of a stride lists the target bits that the digit flips; ``map.flips`` lists those that start as
        1. None if the map is a table or a digit straddles two axes without dividing.

        Example:
            >>> HierarchicalLayout(Box.of(lane=4, warp=2), Box.of(x=8), DigitMap(((2, 1), (4, 2)))).digits()
            {'lane': ((4, 1),), 'warp': ((2, 4),)}
        """
        if not isinstance(self.map, DigitMap):
            return None
        rest = split_at(self.map.modes, [self.source.stride(name) for name in self.source.names], ())
        if rest is None:
            return None
        answer: dict[str, Digits] = {}
        for name, extent in self.source.axes:
            covered, count = 1, 0
            while covered < extent:
                covered *= rest[count][0]
                count += 1
            answer[name], rest = merge(rest[:count]), rest[count:]
        return answer

    def __str__(self) -> str:
        by_axis = self.digits() if self.source.axes else None
        if by_axis is not None and isinstance(self.map, DigitMap):
            head = ", ".join(f"{name} {_digits_text(modes)}" for name, modes in by_axis.items()) + _flips_text(self.map)
        else:
            head = f"[{self.source}] {_map_text(self.map)}"
        bounds = "".join(f" | {_guard_text(guard, self)}" for guard in self.guards)
        return f"{head} -> {self.target if self.target.axes else '[]'}{bounds}"


@composes(HierarchicalLayout, HierarchicalLayout)
def _composed(outer: HierarchicalLayout, inner: HierarchicalLayout) -> HierarchicalLayout:
    """Return ``outer`` after ``inner``, defined at the points where both are."""
    if inner.target != outer.source:
        because = f"the inner layout maps to ({inner.target}), the outer one from ({outer.source})"
        witness = {"inner": inner.target.dims, "outer": outer.source.dims}
        raise refuse("LA751", "the layouts do not compose", because, witness, outer, f"after {inner}")
    moved = tuple(Guard(maps.compose(g.map, inner.map), g.box, g.bounds) for g in outer.guards)
    return HierarchicalLayout(inner.source, outer.target, maps.compose(outer.map, inner.map), (*inner.guards, *moved))
