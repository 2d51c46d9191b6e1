"""How instructions read operands through matrix descriptors: digits of (mn, k), their steps, and the layout value.

Main statements: reading subtracts the base offset from the row phase of the swizzle. This equals moving the address
back by 128 bytes per unit of base offset, swizzling, and moving it forward again, so a descriptor denotes a CuTe layout
followed by one swizzle and at most two offsets. The one exception is MN-major rows that end inside a swizzle span: no
CuTe layout describes the cut span, so they are piecewise, with the bounds as guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE, XORS

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

ROW_BYTES = 128
"""Address bytes per unit of the swizzle's phase, and of the base offset."""
Field: TypeAlias = Literal["leading_bytes", "stride_bytes"]
Step: TypeAlias = int | Field
Digit: TypeAlias = tuple[int, Step]
"""An extent (0 for the rest), and the digit's step in bytes or as a descriptor field."""
Meaning: TypeAlias = "CuteLayout | ComposedLayout | PiecewiseLayout"
IntArray: TypeAlias = npt.NDArray[np.int64]


def step_bytes(descriptor: Any, step: Step) -> int:
    """Return a digit's step in bytes."""
    return step if isinstance(step, int) else int(getattr(descriptor, step))


def offsets(descriptor: Any, digits: tuple[Digit, ...], extent: int) -> IntArray:
    """Return the bytes that the digits of 0 .. extent - 1 add to the address."""
    fixed, named = _lines(digits, extent)
    for field, digit in named:
        fixed = fixed + digit * getattr(descriptor, field)
    return fixed


@lru_cache(maxsize=256)
def _lines(digits: tuple[Digit, ...], extent: int) -> tuple[IntArray, tuple[tuple[Field, IntArray], ...]]:
    """The sum of the digits with a byte step along an axis, and the values of digits multiplied by a field."""
    rest = np.arange(extent, dtype=np.int64)
    fixed = np.zeros(extent, dtype=np.int64)
    named: list[tuple[Field, IntArray]] = []
    for size, step in digits:
        digit = rest % size if size else rest
        if isinstance(step, int):
            fixed += digit * step
        elif digit.any():
            named.append((step, digit))
        rest = rest // size if size else np.zeros_like(rest)
    return fixed, tuple(named)


def denoted(
    descriptor: Any, digits: Sequence[Sequence[tuple[int, int]]], extents: tuple[int, int], bits: int, *, join: bool
) -> Meaning:
    """Return the function that a descriptor denotes: c -> p + Sw(s + C(c)).

    C is the sum of the digits of both coordinates times their steps, s the start less 128 bytes per unit of base
    offset, and p those bytes again.

    Args:
        descriptor: A descriptor; its start address is taken as absolute.
        digits: For mn and for k, (extent or 0 for the rest, step in units) per digit, fastest first.
        extents: Of mn and of k.
        bits: Bits of a unit.
        join: Whether contiguous digits become one mode.
    """
    rest = extents[0]
    for size, _ in digits[0]:
        if size and rest > size and rest % size:
            return _cut(descriptor, digits, extents, bits)
        rest = -(-rest // size) if size else 1
    modes = [_mode(each, extent, join) for each, extent in zip(digits, extents, strict=True)]
    shape = tuple(sizes[0] if len(sizes) == 1 else tuple(sizes) for sizes, _ in modes)
    strides = tuple(steps[0] if len(steps) == 1 else tuple(steps) for _, steps in modes)
    inner, start = CuteLayout(shape, strides), 8 * descriptor.start_address_bytes // bits
    count, base, shift = XORS[descriptor.swizzle]
    if not count:
        return ComposedLayout(Swizzle(0, 0, 0), start, inner) if start else inner
    swizzle = Swizzle(count, base + 4 - bits.bit_length(), shift)
    ahead = 8 * _ahead(descriptor) // bits
    if not ahead:
        return ComposedLayout(swizzle, start, inner)
    return ComposedLayout(Swizzle(0, 0, 0), -ahead, ComposedLayout(swizzle, start + ahead, inner))


def _ahead(descriptor: Any) -> int:
    """Bytes to the next start of the pattern: a move back that leaves addresses at least 0; the pattern repeats."""
    return int(-ROW_BYTES * descriptor.base_offset) % SWIZZLE_TABLE[descriptor.swizzle].period_bytes


def _mode(digits: Sequence[tuple[int, int]], extent: int, join: bool) -> tuple[list[int], list[int]]:
    extents: list[int] = []
    steps: list[int] = []
    for size, step in digits:
        here = min(size, extent) if size else extent
        extent = -(-extent // here)
        if here > 1 and join and extents and steps[-1] * extents[-1] == step:
            extents[-1] *= here
        elif here > 1:
            extents.append(here)
            steps.append(step)
    return (extents, steps) if extents else ([1], [0])


def _cut(
    descriptor: Any, digits: Sequence[Sequence[tuple[int, int]]], extents: tuple[int, int], bits: int
) -> PiecewiseLayout:
    """Reads of rows that end inside a span, as a piecewise layout."""
    from layoutalg.piecewise import PiecewiseLayout

    terms = [str(8 * descriptor.start_address_bytes // bits)]
    for rest, each in zip(("mn", "k"), digits, strict=True):
        for size, step in each:
            terms.append(f"{step}*({rest} mod {size})" if size else f"{step}*{rest}")
            rest = f"floor({rest}/{size})" if size else rest
    linear = " + ".join(terms)
    text, moved = linear, f"({linear} + {8 * _ahead(descriptor) // bits})"
    for target, source in SWIZZLE_TABLE[descriptor.swizzle].xor:
        step = (8 << target) // bits
        old, phase = f"(floor(({linear})/{step}) mod 2)", f"floor({moved}/{(8 << source) // bits})"
        text += f" + {step}*((({old} + {phase}) mod 2) - {old})"
    return PiecewiseLayout(f"{{ [mn, k] -> [offset = {text}] : 0 <= mn < {extents[0]} and 0 <= k < {extents[1]} }}")
