"""Layouts given by a table instead of a formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import limits
from layoutalg.ground.check import Checker, integers
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA802", "invalid layout table")


@dataclass(frozen=True, slots=True)
class ListedLayout(Layout):
    """A tile layout given as the list of its element offsets.

    Args:
        extents: Tile extents, outermost dimension first; axis ``dimK`` is dimension K.
        values: The offset at every flat index, dimension 0 fastest.

    Example:
        >>> listed([[0, 2], [5, 3]]).table().tolist()
        [0, 5, 2, 3]
    """

    extents: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA802")
        if not self.extents or min(self.extents) < 1 or int(np.prod(self.extents, dtype=object)) != len(self.values):
            raise CHECK.malformed("values", "must have one offset per point of the extents", len(self.values))
        if min(self.values) < -(2**62) or max(self.values) >= 2**62:
            raise CHECK.malformed("values", "must be offsets in [-2^62, 2^62)", max(self.values, key=abs))

    def __str__(self) -> str:
        return f"a table of {len(self.values)} offsets over {'x'.join(map(str, self.extents))}"

    @property
    def in_dims(self) -> dict[str, int]:
        """The tile's dimensions."""
        return {f"dim{place}": extent for place, extent in enumerate(self.extents)}

    @property
    def out_dims(self) -> dict[str, Any]:
        """The offset, unbounded."""
        return {"offset": None}

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.values)

    def __call__(self, *point: int) -> int:
        """Return the offset at a point, outermost dimension first, or at a flat index.

        Example:
            >>> listed([[0, 2], [5, 3]])(1, 0), listed([[0, 2], [5, 3]])(1)
            (5, 5)
        """
        if len(point) == 1 != len(self.extents):
            return self.at(point[0])
        if len(point) != len(self.extents):
            raise CHECK.malformed("point", f"must have {len(self.extents)} coordinates", point)
        return int(self.apply(dict(zip(self.in_dims, point, strict=True)))["offset"])

    def at(self, index: int) -> int:
        """Return the offset at a flat index."""
        return self.values[CHECK.integer(index, "index", 0, self.size)]

    def apply(self, coords: Any) -> Any:
        """Return the offsets at many points; see ``Layout.apply``."""
        if isinstance(coords, Mapping):
            CHECK.names(list(coords), "coords", tuple(self.in_dims), whole=True)
            index: Any = 0
            for name, extent in reversed(self.in_dims.items()):
                index = index * extent + CHECK.coordinate(coords[name], name, extent)
            return {"offset": self.table()[index]}
        found = integers(coords, "coords")
        if found is None or (found.size and not 0 <= int(found.min()) <= int(found.max()) < self.size):
            raise CHECK.malformed("coords", f"must be flat indices below {self.size}", coords)
        return self.table()[found]

    def table(self) -> IntArray:
        """Return the offsets at 0, 1, ..., size - 1."""
        return np.array(self.values, dtype=np.int64)

    def inverse(self) -> Any:
        """Refuse: a table has no formula to invert."""
        because = "use layoutalg.convert.recognize to find an invertible layout with this table"
        raise RepresentabilityError(Diagnostic("LA803", "a table cannot be inverted directly", (str(self),), because))


def listed(table: object) -> ListedLayout:
    """Return the layout with the given array of element offsets, indexed outermost dimension first.

    Args:
        table: Integers: an array or nested lists, at most 2^20 entries.
    """
    found = integers(table, "table")
    if found is None or isinstance(table, np.ma.MaskedArray) or not found.ndim or not 0 < found.size <= limits.POINTS:
        raise CHECK.malformed("table", f"must be an integer array of 1 to {limits.POINTS} offsets", table)
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= 2**62:
        raise CHECK.malformed("table", "must be offsets in [0, 2^62)", low if low < 0 else high)
    values = found.astype(np.int64).reshape(-1, order="F").tolist()
    return ListedLayout(tuple(found.shape), tuple(values))
