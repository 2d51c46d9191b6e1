"""Guards: predicates on the points of a box that make a layout partial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, TableMap
from layoutalg.hierarchy.digitmap import DigitMap
from layoutalg.hierarchy.levels import Box, integer, malformed


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
        answer = 1
        for bound in self.bounds:
            answer *= bound
        return answer

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
