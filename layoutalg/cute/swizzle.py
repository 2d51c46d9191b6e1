"""The XOR swizzle ``Sw<B,M,S>``, and layouts under swizzles and offsets.

Notation: ``Sw<bits,base,shift>`` acts on element offsets, ``Sw<bits,base,shift,byte>`` on byte addresses.
``Sw<3,4,3> o 8 o L`` swizzles 8 + L; a stage without a swizzle is written ``16 + L``; a stack is written with
parentheses, ``Sw<2,4,3> o 16 o (Sw<3,4,3> o 0 o (8,8):(8,1))``.

Main statements: a swizzle is an involution, linear over F2 on non-negative numbers, and commutes with adding its
period 2^(base + bits + |shift|), so a table of one period describes it. A stack g of swizzles and offsets is a
bijection of the integers with g(x + P) = g(x) + P for P the greatest period in it. Hence g(x) - x takes finitely many
values, and two windows of values determine the span of a composed layout.

The stages of a composed layout are one flat tuple, never nested. A bare offset is fused into the stage applied after
it, so only the outermost stage may lack a swizzle. Every swizzle acts on element offsets; one on byte addresses depends
on the element width and is rejected until ``Swizzle.recast_elements`` fixes the width.

References: ``cute::Swizzle``, ``cute::ComposedLayout`` of NVIDIA CUTLASS; PTX ISA, shared memory swizzling modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from layoutalg.cute.inttuple import INT_LIMIT, Coords, IntTuple, index_array, integer, malformed
from layoutalg.cute.layout import CuteLayout, LeafAxes, out_of_range
from layoutalg.f2.carry import source_mask, swizzle_period, swizzled
from layoutalg.ground.digits import Flat, IntArray, merge, span, table
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.layout import Layout, Written, after
from layoutalg.ground.limits import CUTE_POINTS, SWIZZLE_STACK
from layoutalg.ground.picture import Shown

Unit = Literal["element", "byte"]


@dataclass(frozen=True, slots=True, repr=False)
class Swizzle(Shown, Written):
    """The map x -> x ^ ((x & Y) >> shift), where Y selects ``bits`` bits.

    Mathematically: for shift >= 0, Y covers the bits [base + shift, base + shift + bits) and they are XORed onto
    [base, base + bits); for shift < 0, Y covers [base, base + bits) and they move up by -shift. Negative numbers are
    read in two's complement.

    Args:
        bits: Number of bits moved, >= 0; 0 is the identity.
        base: Lowest bit touched, >= 0.
        shift: How far the selected bits move down, |shift| >= bits; negative moves up.
        unit: ``"element"`` or ``"byte"``.

    Example:
        >>> swizzle = Swizzle(3, 4, 3)
        >>> swizzle(0b1_000_0000), swizzle.period
        (144, 1024)
    """

    bits: int
    base: int
    shift: int
    unit: Unit = "element"
    title = "a swizzle alone"
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the swizzle's operators

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, integer(getattr(self, name), name, "LA110"))
        for name in ("bits", "base"):
            if getattr(self, name) < 0:
                raise malformed(name, "must be >= 0", getattr(self, name), "LA110")
        if abs(self.shift) < self.bits:
            rule = f"must be at least bits = {self.bits} in magnitude, or source and target overlap"
            raise malformed("shift", rule, self.shift, "LA110")
        reach = self.base + self.bits + abs(self.shift)
        if reach > 62:
            raise malformed("base + bits + |shift|", "must be at most 62", reach, "LA110")
        if not isinstance(self.unit, str) or self.unit not in ("element", "byte"):
            raise malformed("unit", "must be 'element' or 'byte'", self.unit, "LA110")

    @property
    def source_mask(self) -> int:
        """The bits read."""
        return source_mask(self.bits, self.base, self.shift)

    @property
    def target_mask(self) -> int:
        """The bits changed."""
        return source_mask(self.bits, self.base, -self.shift)

    @property
    def period(self) -> int:
        """The least P > 0 with sw(x + P) = sw(x) + P for all x.

        Example:
            >>> Swizzle(2, 0, -3).period, Swizzle(0, 4, 3).period
            (32, 1)
        """
        return swizzle_period(self.bits, self.base, self.shift)

    @overload
    def __call__(self, value: int) -> int: ...
    @overload
    def __call__(self, value: npt.NDArray[np.integer]) -> IntArray: ...
    def __call__(self, value: object) -> object:
        """Return the swizzled number, or the int64 array of swizzled numbers."""
        if isinstance(value, np.ndarray | list):
            return self.apply(value)
        return swizzled(integer(value, "value"), self.bits, self.base, self.shift)

    def apply(self, values: npt.ArrayLike) -> IntArray:
        """Return the swizzled numbers as an int64 array.

        Example:
            >>> Swizzle(1, 0, 1).apply([0, 1, 2, 3]).tolist()
            [0, 1, 3, 2]
        """
        return np.asarray(self.map(index_array(values)))

    def map(self, numbers: IntArray) -> IntArray:
        """``apply`` for an int64 array.

        Example:
            >>> Swizzle(1, 0, -1).map(np.arange(4, dtype=np.int64)).tolist()
            [0, 3, 2, 1]
        """
        if not isinstance(numbers, np.ndarray) or numbers.dtype != np.int64:
            raise malformed("numbers", "must be an int64 array; apply accepts others", numbers, "LA104")
        moved = numbers & self.source_mask
        if self.shift >= 0:
            moved >>= self.shift
        else:
            moved <<= -self.shift
        moved ^= numbers
        return moved

    def matrix_columns(self, n_bits: int) -> tuple[int, ...]:
        """Return the columns of the F2 matrix: entry i is the image of ``1 << i``.

        Args:
            n_bits: Number of input bits, 0 to 62.

        Example:
            >>> Swizzle(1, 0, 1).matrix_columns(3)
            (1, 3, 4)
        """
        count = integer(n_bits, "n_bits")
        if not 0 <= count <= 62:
            raise malformed("n_bits", "must be in [0, 62]", count)
        return tuple([self(1 << position) for position in range(count)])

    def recast_elements(self, element_bytes: int) -> Swizzle:
        """Return the swizzle of element offsets that this swizzle of byte addresses induces.

        Mathematically: the element swizzle t with sw(w x) = w t(x) for all element offsets x, w = ``element_bytes``.

        Args:
            element_bytes: Element width in bytes.

        Example:
            >>> print(Swizzle(3, 4, 3, "byte").recast_elements(2))
            Sw<3,3,3>
        """
        where = f"({self}).recast_elements({integer(element_bytes, 'element_bytes')})"
        if self.unit == "element":
            raise _inexact(where, "the swizzle already acts on element offsets")
        low = _width_bits(where, element_bytes)
        if self.bits and self.base < low:
            because = f"it touches address bit {self.base}, which is inside an element of {element_bytes} bytes "
            raise _inexact(where, f"{because}(bits 0 to {low - 1}) and would move parts of elements")
        return Swizzle(self.bits, max(0, self.base - low), self.shift)

    def recast_bytes(self, element_bytes: int) -> Swizzle:
        """Return the swizzle of byte addresses that this swizzle of element offsets induces.

        Args:
            element_bytes: Element width in bytes.

        Example:
            >>> print(Swizzle(3, 3, 3).recast_bytes(2))
            Sw<3,4,3,byte>
        """
        where = f"({self}).recast_bytes({integer(element_bytes, 'element_bytes')})"
        if self.unit == "byte":
            raise _inexact(where, "the swizzle already acts on byte addresses")
        return Swizzle(self.bits, self.base + _width_bits(where, element_bytes), self.shift, "byte")

    def raised(self, low: int) -> Swizzle:
        """Return the same swizzle ``low`` bits higher: x 2^low maps to sw(x) 2^low.

        Example:
            >>> print(Swizzle(3, 4, 3).raised(-1))
            Sw<3,3,3>
        """
        return (
            Swizzle(self.bits, self.base + integer(low, "low", "LA110"), self.shift, self.unit) if self.bits else self
        )

    def inverse(self) -> Swizzle:
        """Return the inverse: the swizzle itself."""
        return self

    def __matmul__(self, inner: Any) -> Any:
        """Return this swizzle after ``inner``, a layout or a swizzle; raises if two swizzles do not give one."""
        return after(self, inner) if isinstance(inner, Swizzle | Layout) else NotImplemented

    def __rmatmul__(self, outer: Any) -> Any:
        """Return ``outer`` after this swizzle, which permutes the 1-D coordinates of a layout; may raise."""
        return after(outer, self) if isinstance(outer, Layout) else NotImplemented

    def then(self, outer: Any) -> Any:
        """Return ``outer`` after this swizzle, also written ``outer @ self``.

        Example:
            >>> from layoutalg.cute import CuteLayout
            >>> print(Swizzle(1, 0, 1).then(CuteLayout((4, 3), (1, 12))))
            Sw<1,0,1> o 0 o (4,3):(1,12)
        """
        return after(outer, self)

    def __str__(self) -> str:
        suffix = ",byte" if self.unit == "byte" else ""
        return f"Sw<{self.bits},{self.base},{self.shift}{suffix}>"

    def __repr__(self) -> str:
        suffix = ", 'byte'" if self.unit == "byte" else ""
        return f"Swizzle({self.bits}, {self.base}, {self.shift}{suffix})"


def _width_bits(where: str, element_bytes: int) -> int:
    width = integer(element_bytes, "element_bytes")
    if width < 1:
        raise malformed("element_bytes", "must be at least 1", width)
    if width & (width - 1):
        raise _inexact(where, f"{width} bytes is not a power of two: elements do not fill whole address bits")
    return width.bit_length() - 1


def _inexact(where: str, because: str) -> AdmissibilityError:
    return AdmissibilityError(Diagnostic("LA111", "the swizzle has no exact form in that unit", (where,), because))


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

    Example:
        >>> layout = ComposedLayout(Swizzle(2, 0, 2), 0, CuteLayout((4, 4), (4, 1)))
        >>> print(layout)
        Sw<2,0,2> o 0 o (4,4):(4,1)
        >>> [layout(1, column) for column in range(4)]
        [5, 4, 7, 6]
        >>> print(ComposedLayout(Swizzle(1, 0, 1), 2, ComposedLayout(Swizzle(0, 0, 0), 3, CuteLayout(4))))
        Sw<1,0,1> o 5 o 4:1
    """

    stages: Stages
    base: CuteLayout
    title = "CuTe with swizzles and offsets"
    hint = "its .base is the layout under the swizzles and offsets"
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
            what = "a swizzle of byte addresses cannot follow a layout of element offsets"
            raise AdmissibilityError(Diagnostic("LA112", what, (f"{outer} o {start} o {inner}",), because))
        _fill(self, ((outer, start), *inner.stages), inner.base)

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
        """Return the least and the greatest value; (0, 0) for an empty layout."""
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
    """Put a layout under more stages, the last one applied first; without stages return it unchanged."""
    found = (*stages, *inner.stages)
    return _fill(object.__new__(ComposedLayout), found, inner.base) if found else inner.base


def shift(layout: Cute, offset: int) -> ComposedLayout:
    """Return ``offset + layout``.

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
    """Return the stack in normal form: a bare offset is fused into the stage applied after it."""
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
