"""A layout that starts at an offset: what a tile or a partition of a larger layout is.

Main definitions: ``OffsetLayout``.

Notation: ``16 + (4,8):(1,4)``.

References: CuTe tensors (a pointer and a layout), without the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutalg.cute import radix
from layoutalg.cute.layout import Coords, CuteLayout
from layoutalg.cute.radix import IntArray
from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.inttuple import INT_LIMIT, IntTuple, integer, malformed


@dataclass(frozen=True, slots=True, repr=False)
class OffsetLayout:
    """The map c -> offset + layout(c).

    Args:
        offset: Added to every value. Elements.
        layout: A CuTe layout.

    Raises:
        MalformedError: LA175, a field has the wrong type; LA102, a value leaves the signed 64-bit range.

    Example:
        >>> tile = OffsetLayout(16, CuteLayout((4, 2), (8, 1)))
        >>> print(tile)
        16 + (4,2):(8,1)
        >>> tile(3, 1)
        41

    Source: CuTe ``Tensor``, as offset and layout.
    """

    offset: int
    layout: CuteLayout

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", integer(self.offset, "offset", "LA175"))
        if not isinstance(self.layout, CuteLayout):
            raise malformed("layout", "must be a CuteLayout", self.layout, "LA175")
        low, high = radix.span(self.layout.flat)
        if self.offset + low < -INT_LIMIT or self.offset + high >= INT_LIMIT:
            raise MalformedError(
                Diagnostic(
                    code="LA102",
                    what="the offsets leave the signed 64-bit range",
                    where=(str(self),),
                    because=f"the offsets run from {self.offset + low} to {self.offset + high}",
                )
            )

    @property
    def shape(self) -> IntTuple:
        """The shape of the layout."""
        return self.layout.shape

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.layout.size

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return self.layout.rank

    def __call__(self, *coord: IntTuple) -> int:
        """Return the value at one coordinate, read as by ``CuteLayout``."""
        return self.offset + self.layout(*coord)

    def apply(self, coords: Coords) -> IntArray:
        """Return the values at many coordinates, read as by ``CuteLayout.apply``."""
        return self.layout.apply(coords) + self.offset

    def table(self) -> IntArray:
        """Return the values at 0, 1, ..., size - 1."""
        return self.layout.table() + self.offset

    def __getitem__(self, mode: int) -> OffsetLayout:
        """Return one top-level mode, the other coordinates being 0."""
        return OffsetLayout(self.offset, self.layout[mode])

    def __iter__(self) -> Iterator[OffsetLayout]:
        return iter([self[position] for position in range(self.rank)])

    def __str__(self) -> str:
        return f"{self.offset} + {self.layout}"

    def __repr__(self) -> str:
        return f"OffsetLayout({self.offset}, {self.layout!r})"
