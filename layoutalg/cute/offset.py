"""A layout that starts at an offset: what a tile or a partition of a larger layout is.

Main definitions: ``OffsetLayout``.

Notation: ``16 + (4,8):(1,4)``; CuTe's ``16 o (4,8):(1,4)`` is read as well.

Main statements: an offset is a stage without swizzle, so an offset layout is the composed layout
``Sw<0,0,0> o offset o layout`` under a shorter name, and every operation on composed layouts takes it.

References: CuTe tensors (a pointer and a layout), without the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.inttuple import INT_LIMIT, integer, malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle
from layoutalg.ground.digits import span
from layoutalg.ground.errors import Diagnostic, MalformedError


@dataclass(frozen=True, slots=True, init=False, repr=False)
class OffsetLayout(ComposedLayout):
    """The map c -> offset + layout(c).

    Args:
        offset: Added to every value. Elements.
        layout: A CuTe layout.

    Raises: MalformedError: LA175, LA102.

    Example:
        >>> tile = OffsetLayout(16, CuteLayout((4, 2), (8, 1)))
        >>> print(tile)
        16 + (4,2):(8,1)
        >>> tile(3, 1)
        41

    Source: CuTe ``Tensor``, as offset and layout.
    """

    def __init__(self, offset: int, layout: CuteLayout) -> None:
        start = integer(offset, "offset", "LA175")
        if not isinstance(layout, CuteLayout):
            raise malformed("layout", "must be a CuteLayout", layout, "LA175")
        low, high = span(layout.flat)
        if start + low < -INT_LIMIT or start + high >= INT_LIMIT:
            raise MalformedError(
                Diagnostic(
                    code="LA102",
                    what="the offsets leave the signed 64-bit range",
                    where=(f"{start} + {layout}",),
                    because=f"the offsets run from {start + low} to {start + high}",
                )
            )
        object.__setattr__(self, "outer", Swizzle(0, 0, 0))
        object.__setattr__(self, "offset", start)
        object.__setattr__(self, "inner", layout)

    @property
    def layout(self) -> CuteLayout:
        """The layout without the offset."""
        return self.base

    def rebase(self, base: CuteLayout, shift: int = 0) -> OffsetLayout:
        """Return another layout at the same offset, or ``shift`` further.

        Example:
            >>> print(OffsetLayout(16, CuteLayout(4)).rebase(CuteLayout(2, 2), 1))
            17 + 2:2
        """
        return OffsetLayout(self.offset + integer(shift, "shift", "LA175"), base)

    def __str__(self) -> str:
        return f"{self.offset} + {self.base}"

    def __repr__(self) -> str:
        return f"OffsetLayout({self.offset}, {self.base!r})"
