"""A tile layout as (extent, stride) digits per dimension, followed by a swizzle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.proofs.smem import shared_tile
from layoutalg.synth.admission.request import Request
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, PLAIN

Modes = tuple[tuple[tuple[int, int], ...], ...]
NAMES = PLAIN
CHUNK_BITS = 8 * CHUNK_BYTES
"""Unit that the hardware's swizzles permute."""


@dataclass(frozen=True, slots=True)
class Form:
    """Element offsets ``swizzle(base + sum of digit * stride)``.

    Args:
        modes: Per tile dimension, outermost first, ``(extent, stride)`` digits, fastest first.
        swizzle: Acts on element offsets; optional.
        base: Offset of the first element, before the swizzle.
    """

    modes: Modes
    swizzle: Swizzle | None = None
    base: int = 0

    def __post_init__(self) -> None:
        checked_kinds(self, "LA801")

    @property
    def tile(self) -> tuple[int, ...]:
        """The tile's extents."""
        return tuple(math.prod(extent for extent, _ in digits) for digits in self.modes)

    @property
    def reach(self) -> int:
        """Span in elements from the tile's base, before the swizzle."""
        return self.base + 1 + sum((extent - 1) * stride for digits in self.modes for extent, stride in digits)

    def layout(self) -> CuteLayout | ComposedLayout:
        """Return the layout; its text parses back to the same layout.

        Example:
            >>> print(Form((((8, 64),), ((64, 1),)), Swizzle(3, 3, 3)).layout())
            Sw<3,3,3> o 0 o (8,64):(64,1)
        """
        kept = [tuple(digit for digit in digits if digit[0] > 1) or ((1, 0),) for digits in self.modes]
        shape, stride = (
            tuple(digits[0][part] if len(digits) == 1 else tuple(digit[part] for digit in digits) for digits in kept)
            for part in (0, 1)
        )
        plain = CuteLayout(shape, stride)
        if self.swizzle is None and not self.base:
            return plain
        return ComposedLayout(self.swizzle or Swizzle(0, 0, 0), self.base, plain)


def swizzle_named(name: str, bits: int) -> Swizzle | None:
    """Return a hardware swizzle acting on offsets of ``bits``-bit elements; None for NONE and sizes not dividing 128.

    Example:
        >>> str(swizzle_named("64B", 16))
        'Sw<2,3,3>'
    """
    order = NAMES.index(name)
    if not order or CHUNK_BITS % bits:
        return None
    return Swizzle(order, (CHUNK_BITS // bits).bit_length() - 1, 3)


def form_of(request: Request) -> Form | None:
    """Return the requested layout as digits and at most one swizzle; None if it has no such form."""
    layout, bits = request.layout, request.dtype.bits
    try:
        if isinstance(layout, ComposedLayout) and len(layout.stages) == 1 and isinstance(layout.base, CuteLayout):
            swizzle, base = layout.stages[0]
            inner = shared_tile(layout.base, request.extents, 1, names=("NONE",))
            return Form(inner.modes, swizzle if swizzle.bits else None, base)
        names = NAMES if bits % 8 == 0 and CHUNK_BITS % bits == 0 else ("NONE",)
        found = shared_tile(layout, request.extents, max(1, bits // 8), names=names)
    except LayoutError:
        return None
    return Form(found.modes, swizzle_named(found.swizzle, bits), found.base)


def dense(tile: Sequence[int], inner: int, span: int) -> Modes | None:
    """Return the digits of a gap-free tile: dimension ``inner`` contiguous, cut into columns of ``span`` elements.

    Example:
        >>> dense((8, 128), 1, 64)
        (((8, 64),), ((64, 1), (2, 512)))
        >>> dense((8, 96), 1, 64) is None
        True
    """
    wide = tile[inner]
    if span > wide or wide % span:
        return None
    modes: list[tuple[tuple[int, int], ...]] = [()] * len(tile)
    reach = span
    for dim in (*range(inner + 1, len(tile)), *range(inner - 1, -1, -1)):
        modes[dim] = ((tile[dim], reach),)
        reach *= tile[dim]
    modes[inner] = ((span, 1),) if span == wide else ((span, 1), (wide // span, reach))
    return tuple(modes)
