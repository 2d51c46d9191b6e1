"""Swizzled layouts: a swizzle after an offset after a layout, and stacks of them.

Main definitions: ``ComposedLayout``.

Notation: ``Sw<3,4,3> o 0 o (64,64):(64,1)``; a stack is written with parentheses,
``Sw<2,4,3> o 16 o (Sw<3,4,3> o 0 o (8,8):(8,1))``.

Main statements: with g the stack of swizzles and offsets, g(x + P) = g(x) + P for P the greatest period in the stack.
Hence g(x) - x takes finitely many values, and the span of a composed layout is decided on two windows of its values.

Implementation notes: every swizzle of the stack acts on element offsets. A swizzle of byte addresses has another
meaning for each element width, so it is refused until ``Swizzle.recast_elements`` has fixed the width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, cast

import numpy as np

from layoutalg.cute.inttuple import INT_LIMIT, IntTuple, integer, malformed
from layoutalg.cute.layout import Coords, CuteLayout
from layoutalg.cute.swizzle import Swizzle
from layoutalg.ground.digits import Flat, IntArray, merge, span, table
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, MalformedError
from layoutalg.ground.limits import CUTE_POINTS, SWIZZLE_STACK
from layoutalg.ground.operators import then

Inner: TypeAlias = "CuteLayout | ComposedLayout"


@dataclass(frozen=True, slots=True, repr=False)
class ComposedLayout:
    """The map c -> outer(offset + inner(c)).

    Args:
        outer: A swizzle of element offsets.
        offset: Added before the swizzle. Elements.
        inner: A CuTe layout or another composed layout.

    Raises: MalformedError: LA113, LA102. AdmissibilityError: LA112.

    Example:
        >>> layout = ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 4), (4, 1)))
        >>> print(layout)
        Sw<2,0,2> o 0 o (4,4):(4,1)
        >>> [layout(1, column) for column in range(4)]
        [5, 4, 7, 6]

    Source: ``cute::ComposedLayout`` of NVIDIA CUTLASS.
    """

    outer: Swizzle
    offset: int
    inner: Inner
    __array_ufunc__: ClassVar[None] = None  # numpy leaves operators with a layout to the layout

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", integer(self.offset, "offset", "LA113"))
        if not isinstance(self.outer, Swizzle):
            raise malformed("outer", "must be a Swizzle", self.outer, "LA113")
        if not isinstance(self.inner, CuteLayout | ComposedLayout):
            raise malformed("inner", "must be a CuteLayout or a ComposedLayout", self.inner, "LA113")
        if self.outer.unit == "byte":
            raise AdmissibilityError(
                Diagnostic(
                    code="LA112",
                    what="a swizzle of byte addresses cannot follow a layout of element offsets",
                    where=(f"{self.outer} o {self.offset} o {self.inner}",),
                    because="which element bits it moves depends on the element width; "
                    "outer.recast_elements(element_bytes) fixes the width and gives the swizzle of element offsets",
                )
            )
        if len(self.stages) > SWIZZLE_STACK:
            raise malformed("inner", f"must stack at most {SWIZZLE_STACK} swizzles", len(self.stages) - 1, "LA113")
        low, high = span(self.base.flat)
        for swizzle, offset in reversed(self.stages):
            low, high = low + offset, high + offset
            if low < -INT_LIMIT or high >= INT_LIMIT:
                raise MalformedError(
                    Diagnostic(
                        code="LA102",
                        what="the offsets leave the signed 64-bit range",
                        where=(str(self),),
                        because=f"the numbers swizzled run from {low} to {high}",
                    )
                )
            # A swizzle keeps a number within its aligned block of one period.
            low, high = (
                low // swizzle.period * swizzle.period,
                high // swizzle.period * swizzle.period + swizzle.period - 1,
            )

    @property
    def stages(self) -> tuple[tuple[Swizzle, int], ...]:
        """The (swizzle, offset) pairs, the last one applied first."""
        found: list[tuple[Swizzle, int]] = []
        layer: Inner = self
        while isinstance(layer, ComposedLayout):
            found.append((layer.outer, layer.offset))
            layer = layer.inner
        return tuple(found)

    @property
    def base(self) -> CuteLayout:
        """The CuTe layout at the bottom of the stack."""
        layer: Inner = self
        while isinstance(layer, ComposedLayout):
            layer = layer.inner
        return layer

    @property
    def shape(self) -> IntTuple:
        """The shape of the innermost layout."""
        return self.base.shape

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.base.size

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return self.base.rank

    @property
    def depth(self) -> int:
        """How deep the shape nests."""
        return self.base.depth

    @property
    def cosize(self) -> int:
        """1 + the greatest value - the least value; 0 for an empty layout. Exact, also for large domains.

        Raises: BudgetError: LA114.

        Example:
            >>> ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(3, 1)).cosize
            4
        """
        if self.size == 0:
            return 0
        low, high = self.value_range()
        return 1 + high - low

    def _swizzled(self, values: IntArray) -> IntArray:
        for swizzle, offset in reversed(self.stages):
            values = values + offset if offset else values
            values = swizzle.map(values) if swizzle.bits else values
        return values

    def value_range(self) -> tuple[int, int]:
        """Return the least and the greatest value; (0, 0) for an empty layout.

        Raises: BudgetError: LA114.
        """
        if self.size == 0:
            return 0, 0
        flat = merge(self.base.flat)
        if self.size <= CUTE_POINTS:
            values = self._swizzled(table(flat))
            return int(values.min()), int(values.max())
        period = max(swizzle.period for swizzle, _ in self.stages)
        if period > CUTE_POINTS:
            raise self._gave_up(f"the period of the swizzles is {period}")
        residues = np.arange(period, dtype=np.int64)
        moved = self._swizzled(residues) - residues
        slack = int(moved.max()) - int(moved.min())
        low, high = span(flat)
        top = _values_from(flat, high - slack)
        bottom = _values_from(tuple([(extent, -stride) for extent, stride in flat]), -low - slack)
        if top is None or bottom is None:
            raise self._gave_up("too many values lie near the extremes")
        return int(self._swizzled(-bottom).min()), int(self._swizzled(top).max())

    def _gave_up(self, because: str) -> BudgetError:
        return BudgetError(
            Diagnostic(
                code="LA114",
                what="the span of the layout was not decided",
                where=(str(self),),
                because=f"{because}, the limit is {CUTE_POINTS}",
            )
        )

    def __call__(self, *coord: IntTuple) -> int:
        """Return the value at one coordinate, read as by ``CuteLayout``."""
        value = self.base(*coord)
        for swizzle, offset in reversed(self.stages):
            value = swizzle(value + offset)
        return value

    def apply(self, coords: Coords) -> IntArray:
        """Return the values at many coordinates, read as by ``CuteLayout.apply``."""
        return np.asarray(self._swizzled(self.base.apply(coords)))

    def table(self) -> IntArray:
        """Return the values at the 1-D coordinates 0, 1, ..., size - 1.

        Raises: BudgetError: LA002.

        Example:
            >>> ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(4)).table().tolist()
            [0, 1, 3, 2]
        """
        return self._swizzled(self.base.table())

    def __getitem__(self, mode: int) -> ComposedLayout:
        """Return the layout along one top-level mode, the other coordinates being 0."""
        return self.rebase(self.base[mode])

    def __iter__(self) -> Iterator[ComposedLayout]:
        return iter([self[position] for position in range(self.rank)])

    def rebase(self, base: CuteLayout, shift: int = 0) -> ComposedLayout:
        """Return the same stack of swizzles and offsets over another layout, ``shift`` added to its values.

        Raises: MalformedError: LA113, LA102.

        Example:
            >>> print(ComposedLayout(Swizzle(1, 0, 1), 8, CuteLayout(4)).rebase(CuteLayout(2, 2)))
            Sw<1,0,1> o 8 o 2:2
        """
        if not isinstance(base, CuteLayout):
            raise malformed("base", "must be a CuteLayout", base, "LA113")
        (swizzle, offset), *rest = reversed(self.stages)
        answer = ComposedLayout(swizzle, offset + integer(shift, "shift", "LA113"), base)
        for swizzle, offset in rest:
            answer = ComposedLayout(swizzle, offset, answer)
        return answer

    def __matmul__(self, inner: Inner | Swizzle) -> ComposedLayout:
        """Return ``self`` after ``inner``, exact or refused."""
        from layoutalg.cute.composition import composition

        if not isinstance(inner, CuteLayout | ComposedLayout | Swizzle):
            return NotImplemented
        return composition(self, inner)

    def then(self, outer: Swizzle | CuteLayout | ComposedLayout) -> ComposedLayout:
        """Return ``outer`` after ``self``, exact or refused.

        Raises: MalformedError: LA192.
        """
        return cast(ComposedLayout, then(self, outer))

    def __str__(self) -> str:
        inner = f"({self.inner})" if isinstance(self.inner, ComposedLayout) else str(self.inner)
        return f"{self.outer} o {self.offset} o {inner}"

    def __repr__(self) -> str:
        return f"ComposedLayout({self.outer!r}, {self.offset}, {self.inner!r})"


def _values_from(flat: Flat, bound: int) -> IntArray | None:
    """Return all values >= ``bound`` of the digit list, or None where the search meets more than the limit."""
    modes = sorted([mode for mode in flat if mode[1]], key=lambda mode: -abs(mode[1]))
    reach = [0]
    for extent, stride in reversed(modes):
        reach.append(reach[-1] + max(0, (extent - 1) * stride))
    values = np.zeros(1, dtype=np.int64)
    for position, (extent, stride) in enumerate(modes):
        missing = bound - reach[len(modes) - 1 - position]
        # Only the digits near the favourable end can still reach the bound.
        best = int(values.max()) + max(0, (extent - 1) * stride)
        count = min(extent, (best - missing) // abs(stride) + 1)
        if count <= 0:
            return np.zeros(0, dtype=np.int64)
        if count * values.size > CUTE_POINTS:
            return None
        first = extent - count if stride > 0 else 0
        digits = np.arange(first, first + count, dtype=np.int64) * stride
        values = np.unique(np.add.outer(digits, values))
        values = values[values >= missing]
    return values
