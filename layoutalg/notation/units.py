"""What was probably meant where a swizzle of elements looks like one of bytes."""

from __future__ import annotations

from layoutalg.cute.swizzle import ComposedLayout, Swizzle
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE


def unit_hint(layout: object, element_bits: int) -> str | None:
    """Return what to try where the swizzle of a layout is one of the hardware's only if it counts bytes; else None.

    Mathematically: CuTe prints ``Sw<b,m,s>`` over ``smem_ptr`` for byte addresses. On elements of 2^w bytes that is
    ``Sw<b,m-w,s>``, which is what a layout of element offsets needs.

    Args:
        layout: A layout, of which the last swizzle is looked at; any other value gives None.
        element_bits: Bits of an element.

    Example:
        >>> from layoutalg.notation import parse
        >>> unit_hint(parse("Sw<3,4,3> o 0 o (64,64):(64,1)"), 16)
        'Sw<3,4,3> counts elements here. Printed over smem_ptr it counts bytes (128B), on 16-bit elements Sw<3,3,3>'
        >>> unit_hint(parse("Sw<3,3,3> o 0 o (64,64):(64,1)"), 16), unit_hint(parse("(4,8):(8,1)"), 16)
        (None, None)
    """
    if not isinstance(layout, ComposedLayout) or element_bits < 8 or element_bits & (element_bits - 1):
        return None
    swizzle, width = layout.stages[0][0], element_bits.bit_length() - 4
    meant = _name(swizzle)
    if width == 0 or not swizzle.bits or meant is None or swizzle.base < width:
        return None
    if _name(swizzle.raised(width)) is not None:
        return None
    on_elements = Swizzle(swizzle.bits, swizzle.base - width, swizzle.shift)
    printed = f"Printed over smem_ptr it counts bytes ({meant})"
    return f"{swizzle} counts elements here. {printed}, on {element_bits}-bit elements {on_elements}"


def _name(swizzle: Swizzle) -> str | None:
    """Return the hardware's name of a swizzle read as one of byte addresses."""
    steps = tuple([(swizzle.base + bit, swizzle.base + bit + swizzle.shift) for bit in range(swizzle.bits)])
    return next((name for name, entry in SWIZZLE_TABLE.items() if entry.xor == steps and steps), None)
