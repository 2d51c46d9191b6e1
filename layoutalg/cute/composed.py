"""Layouts under offsets and swizzles: ``16 + (4,8):(1,4)``, ``Sw<3,4,3> o 0 o (64,64):(64,1)``, and stacks of these.

Notation: ``Sw<3,4,3> o 8 o L`` swizzles 8 + L; a stage without a swizzle is written ``16 + L``; a stack is written with
parentheses, ``Sw<2,4,3> o 16 o (Sw<3,4,3> o 0 o (8,8):(8,1))``.

Main statements: the stack g of swizzles and offsets is a bijection of the integers with g(x + P) = g(x) + P for P the
greatest period in it. Hence g(x) - x takes finitely many values, and two windows of values determine the span of a
composed layout.

Implementation notes: the stages are one flat tuple, never nested. A bare offset is fused into
the stage applied after it, so only the outermost stage may lack a swizzle. Every swizzle acts on element offsets; one
on byte addresses depends on the element width and is rejected until ``Swizzle.recast_elements`` fixes the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from layoutalg.cute.coords import Coords
from layoutalg.cute.inttuple import INT_LIMIT, IntTuple, integer, malformed
from layoutalg.cute.layout import CuteLayout, LeafAxes, out_of_range
from layoutalg.cute.swizzle import Swizzle
from layoutalg.ground.digits import Flat, IntArray, merge, span, table
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.limits import CUTE_POINTS, SWIZZLE_STACK

Cute: TypeAlias = "CuteLayout | ComposedLayout"
Stages: TypeAlias = tuple[tuple[Swizzle, int], ...]
"""(swizzle, offset) pairs, the last one applied first; the offset is added before the swizzle."""

IDENTITY = Swizzle(0, 0, 0)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ComposedLayout(LeafAxes):
    """The map c -> outer(offset + inner(c)), and stacks of such maps.

    Args:
        outer: A swizzle of element offsets; ``Swizzle(0, 0, 0)`` only adds the offset.
        offset: Added before the swizzle. Elements.
        inner: A CuTe layout or another composed layout, whose stages follow this one.

    Raises: MalformedError: LA113, LA102. AdmissibilityError: LA112.

    Example:
        >>> layout = ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 4), (4, 1)))
        >>> print(layout)
        Sw<2,0,2> o 0 o (4,4):(4,1)
        >>> [layout(1, column) for column in range(4)]
        [5, 4, 7, 6]
        >>> print(ComposedLayout(Swizzle(1, 0, 1), 2, ComposedLayout(Swizzle(0, 0, 0), 3, CuteLayout(4))))
        Sw<1,0,1> o 5 o 4:1

    Source: ``cute::ComposedLayout`` of NVIDIA CUTLASS; CuTe tensors, as offset and layout.
    """

    stages: Stages
    base: CuteLayout
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the layout's operators

    def __init__(self, outer: Swizzle, offset: int, inner: Cute) -> None:
        start = integer(offset, "offset", "LA113")
        if not isinstance(outer, Swizzle):
            raise malformed("outer", "must be a Swizzle", outer, "LA113")
        if not isinstance(inner, CuteLayout | ComposedLayout):
            raise malformed("inner", "must be a CuteLayout or a ComposedLayout", inner, "LA113")
        if outer.unit == "byte":
            because = (
                "which element bits it moves depends on the element width; "
                "outer.recast_elements(element_bytes) fixes the width and gives the swizzle of element offsets"
            )
            raise AdmissibilityError(
                Diagnostic(
                    "LA112",
                    "a swizzle of byte addresses cannot follow a layout of element offsets",
                    (f"{outer} o {start} o {inner}",),
                    because,
                )
            )
        if isinstance(inner, ComposedLayout):
            _fill(self, ((outer, start), *inner.stages), inner.base)
        else:
            _fill(self, ((outer, start),), inner)

    @property
    def outer(self) -> Swizzle:
        """The swizzle applied last."""
        return self.stages[0][0]

    @property
    def offset(self) -> int:
        """The offset added before the last swizzle."""
        return self.stages[0][1]

    @property
    def inner(self) -> Cute:
        """The layout under the last swizzle and its offset."""
        return staged(self.stages[1:], self.base)

    @property
    def shape(self) -> IntTuple:  # type: ignore[override]
        """The shape of the layout at the bottom."""
        return self.base.shape

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.base.size

    @property
    def out_dims(self) -> dict[str, None]:
        """One output, ``offset``, without a bound."""
        return {"offset": None}

    @property
    def cosize(self) -> int:
        """1 + the greatest value - the least value; 0 for an empty layout. Exact for large domains too.

        Raises: BudgetError: LA114.

        Example:
            >>> ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(3, 1)).cosize
            4
        """
        low, high = self.value_range()
        return 1 + high - low if self.size else 0

    @property
    def period(self) -> int:
        """The greatest period of the swizzles: the stack commutes with adding it."""
        return max(swizzle.period for swizzle, _ in self.stages)

    def _moved(self, values: IntArray) -> IntArray:
        for swizzle, offset in reversed(self.stages):
            values = np.asarray(values + offset) if offset else values
            values = swizzle.map(values) if swizzle.bits else values
        return values

    def value_range(self) -> tuple[int, int]:
        """Return the least and the greatest value; (0, 0) for an empty layout.

        Raises: BudgetError: LA114.
        """
        if self.size == 0:
            return 0, 0
        low, high = span(self.base.flat)
        if self.period == 1:
            return low + self.offset, high + self.offset
        flat = merge(self.base.flat)
        if self.size <= CUTE_POINTS:
            values = self._moved(table(flat))
            return int(values.min()), int(values.max())
        if self.period > CUTE_POINTS:
            raise self._gave_up(f"the period of the swizzles is {self.period}")
        residues = np.arange(self.period, dtype=np.int64)
        moved = self._moved(residues) - residues
        slack = int(moved.max()) - int(moved.min())
        top = _values_from(flat, high - slack)
        bottom = _values_from(tuple([(extent, -stride) for extent, stride in flat]), -low - slack)
        if top is None or bottom is None:
            raise self._gave_up("too many values are near the extremes")
        return int(self._moved(-bottom).min()), int(self._moved(top).max())

    def _gave_up(self, because: str) -> BudgetError:
        because = f"{because}, the limit is {CUTE_POINTS}"
        return BudgetError(Diagnostic("LA114", "the span of the layout was not decided", (str(self),), because))

    def __call__(self, *coord: IntTuple) -> int:
        """Return the value at one coordinate, read as by ``CuteLayout``."""
        value = self.base(*coord)
        for swizzle, offset in reversed(self.stages):
            value = swizzle(value + offset)
        return value

    def at(self, index: int) -> int:
        """Return the value at a 1-D coordinate."""
        return self(integer(index, "coordinate"))

    def apply(self, coords: Coords) -> Any:
        """Return the values at many coordinates, read as by ``CuteLayout.apply``."""
        values = self.base.apply(coords)
        if isinstance(coords, Mapping):
            return {name: np.asarray(self._moved(column)) for name, column in values.items()}
        return np.asarray(self._moved(values))

    def table(self) -> IntArray:
        """Return the values at the 1-D coordinates 0, 1, ..., size - 1.

        Raises: BudgetError: LA002.

        Example:
            >>> ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(4)).table().tolist()
            [0, 1, 3, 2]
        """
        return self._moved(self.base.table())

    def __getitem__(self, mode: int) -> ComposedLayout:
        """Return the layout along one top-level mode, with the other coordinates 0."""
        return self.rebase(self.base[mode])

    def rebase(self, base: CuteLayout, shift: int = 0) -> ComposedLayout:
        """Return the same stages over ``base + shift``.

        Raises: MalformedError: LA113, LA102.

        Example:
            >>> print(ComposedLayout(Swizzle(1, 0, 1), 8, CuteLayout(4)).rebase(CuteLayout(2, 2)))
            Sw<1,0,1> o 8 o 2:2
        """
        if not isinstance(base, CuteLayout):
            raise malformed("base", "must be a CuteLayout", base, "LA113")
        *above, (swizzle, offset) = self.stages
        moved = offset + integer(shift, "shift", "LA113")
        return _fill(object.__new__(ComposedLayout), (*above, (swizzle, moved)), base)

    def __str__(self) -> str:
        text = ""
        for swizzle, offset in reversed(self.stages):
            text = f"({text})" if text else str(self.base)
            text = f"{swizzle} o {offset} o {text}" if swizzle.bits else f"{offset} + {text}"
        return text

    def __repr__(self) -> str:
        text = repr(self.base)
        for swizzle, offset in reversed(self.stages):
            text = f"ComposedLayout({swizzle!r}, {offset}, {text})"
        return text


def staged(stages: Iterable[tuple[Swizzle, int]], inner: Cute) -> Cute:
    """Put a layout under more stages, the last one applied first; without stages return it unchanged.

    Example:
        >>> print(staged([(IDENTITY, 5), (Swizzle(1, 0, 1), 0)], CuteLayout(4)), staged([], CuteLayout(4)))
        5 + (Sw<1,0,1> o 0 o 4:1) 4:1
    """
    found = (*stages, *(inner.stages if isinstance(inner, ComposedLayout) else ()))
    base = inner.base if isinstance(inner, ComposedLayout) else inner
    return _fill(object.__new__(ComposedLayout), found, base) if found else base


def bottom(layout: Cute) -> CuteLayout:
    """Return the layout under all swizzles and offsets."""
    return layout.base if isinstance(layout, ComposedLayout) else layout


def shift(layout: Cute, offset: int) -> ComposedLayout:
    """Return ``offset + layout``.

    Raises: MalformedError: LA113, LA102.

    Example:
        >>> print(shift(CuteLayout((4, 2), (8, 1)), 16))
        16 + (4,2):(8,1)
    """
    return ComposedLayout(IDENTITY, offset, layout)


def _fill(layout: ComposedLayout, stages: Stages, base: CuteLayout) -> ComposedLayout:
    """Set the fields: normalise the stages and check that every swizzled number fits signed 64 bits."""
    if len(stages) > 1 or not stages[0][0].bits:
        stages = fused(stages)
    object.__setattr__(layout, "stages", stages)
    object.__setattr__(layout, "base", base)
    if len(stages) > SWIZZLE_STACK:
        raise malformed("inner", f"must stack at most {SWIZZLE_STACK} swizzles", len(stages) - 1, "LA113")
    low, high = span(base.flat)
    for swizzle, offset in reversed(stages):
        low, high = low + offset, high + offset
        if low < -INT_LIMIT or high >= INT_LIMIT or not -INT_LIMIT <= offset < INT_LIMIT:
            raise out_of_range(str(layout), f"the swizzled numbers range from {low} to {high}")
        if swizzle.bits:  # a swizzle keeps a number within its aligned block of one period
            period = swizzle.period
            low, high = low // period * period, high // period * period + period - 1
    return layout


def fused(stages: Stages) -> Stages:
    """Return the stack in normal form: a bare offset is fused into the stage applied after it.

    Example:
        >>> fused(((Swizzle(1, 0, 1), 2), (IDENTITY, 3)))
        ((Swizzle(1, 0, 1), 5),)
    """
    kept: list[tuple[Swizzle, int]] = []
    for swizzle, offset in stages:
        if swizzle.bits or not kept:
            kept.append((swizzle if swizzle.bits else IDENTITY, offset))
        else:
            kept[-1] = (kept[-1][0], kept[-1][1] + offset)
    return tuple(kept[1:] if len(kept) > 1 and kept[0] == (IDENTITY, 0) else kept)


def _values_from(flat: Flat, bound: int) -> IntArray | None:
    """Return all values >= ``bound`` of the digit list, or None if there are more than the limit."""
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
