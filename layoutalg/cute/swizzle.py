"""The XOR swizzle ``Sw<B,M,S>`` with the unit that it acts on.

Notation: ``Sw<bits,base,shift>`` acts on element offsets, ``Sw<bits,base,shift,byte>`` on byte addresses.

Main statements: a swizzle is an involution, linear over F2 on non-negative numbers, and commutes with adding its
period 2^(base + bits + |shift|), so a table of one period describes it.

References: ``cute::Swizzle`` of NVIDIA CUTLASS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt

from layoutalg.cute.coords import index_array
from layoutalg.cute.inttuple import integer, malformed
from layoutalg.f2.carry import source_mask, swizzle_period, swizzled
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.layout import Layout, Written, after
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

    Raises: MalformedError: LA110.

    Example:
        >>> swizzle = Swizzle(3, 4, 3)
        >>> swizzle(0b1_000_0000), swizzle.period
        (144, 1024)

    Source: ``cute::Swizzle``; PTX ISA, shared memory swizzling modes.
    """

    bits: int
    base: int
    shift: int
    unit: Unit = "element"
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the swizzle's operators

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, integer(getattr(self, name), name, "LA110"))
        if self.bits < 0:
            raise malformed("bits", "must be >= 0", self.bits, "LA110")
        if self.base < 0:
            raise malformed("base", "must be >= 0", self.base, "LA110")
        if abs(self.shift) < self.bits:
            raise malformed(
                "shift",
                f"must be at least bits = {self.bits} in magnitude, or source and target overlap",
                self.shift,
                "LA110",
            )
        if self.base + self.bits + abs(self.shift) > 62:
            raise malformed(
                "base + bits + |shift|", "must be at most 62", self.base + self.bits + abs(self.shift), "LA110"
            )
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
        """Return the swizzled number, or the int64 array of swizzled numbers.

        Raises: MalformedError: LA100, LA104.
        """
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

        Raises: MalformedError: LA100. AdmissibilityError: LA111.

        Example:
            >>> print(Swizzle(3, 4, 3, "byte").recast_elements(2))
            Sw<3,3,3>
        """
        where = f"({self}).recast_elements({integer(element_bytes, 'element_bytes')})"
        if self.unit == "element":
            raise _inexact(where, "the swizzle already acts on element offsets")
        low = _width_bits(where, element_bytes)
        if self.bits and self.base < low:
            raise _inexact(
                where,
                f"it touches address bit {self.base}, which is inside an element of {element_bytes} bytes "
                f"(bits 0 to {low - 1}) and would move parts of elements",
            )
        return Swizzle(self.bits, max(0, self.base - low), self.shift)

    def recast_bytes(self, element_bytes: int) -> Swizzle:
        """Return the swizzle of byte addresses that this swizzle of element offsets induces.

        Args:
            element_bytes: Element width in bytes.

        Raises: MalformedError: LA100, LA110. AdmissibilityError: LA111.

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

        Raises: MalformedError: LA110.

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

        Raises: MalformedError: LA192.

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
    return AdmissibilityError(
        Diagnostic(code="LA111", what="the swizzle has no exact form in that unit", where=(where,), because=because)
    )
