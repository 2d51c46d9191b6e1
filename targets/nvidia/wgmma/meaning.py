"""What ``wgmma`` descriptors, registers and sparse metadata denote, as layout values.

Main statements: reading subtracts the base offset from the row phase of the swizzle. This equals moving the address
back by 128 bytes per unit of base offset, swizzling, and moving it forward again, so a descriptor denotes a CuTe layout
followed by one swizzle and at most two offsets. The one exception is MN-major rows that end inside a swizzle span: no
CuTe layout describes the cut span, so they are piecewise, with the bounds as guards.

References: PTX ISA 9.1 section 9.7.15.5 and 9.7.15.6.
"""

from __future__ import annotations

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import shown
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.targets.nvidia.wgmma.descriptor import MatrixDescriptor, malformed, swizzle_rows
from layoutalg.targets.nvidia.wgmma.fragments import A_WORDS, WORD_BITS, accumulator_coordinates, metadata_coordinates
from layoutalg.targets.nvidia.wgmma.instructions import multiply
from layoutalg.targets.nvidia.wgmma.operand import Digit, ReadPattern, checked_read, read_pattern

ROW_BYTES = 128
"""Address bytes per unit of the swizzle's phase."""


def layout(
    descriptor: MatrixDescriptor,
    dtype: str,
    rows: int = 64,
    k: int | None = None,
    *,
    major: str = "K",
    unit: str = "element",
) -> CuteLayout | ComposedLayout | PiecewiseLayout:
    """Return the function that a descriptor denotes: (mn, k) to the place in shared memory that is read.

    Mathematically: ``operand_offsets`` as a layout value, in units of elements or bytes: c -> p + Sw(s + C(c)), with C
    the digits of both coordinates times their steps, s the start less 128 bytes per unit of base offset, and p those
    bytes again.

    Args:
        descriptor: The descriptor; its start address is taken as absolute.
        dtype: Element type of the operand: f16, bf16, tf32, e4m3, e5m2, s8, u8 or b1.
        rows: M of operand A (64), or N of operand B.
        k: As for ``operand_offsets``.
        major: ``"K"`` or ``"MN"``.
        unit: ``"element"`` (bits for ``b1``) or ``"byte"`` (not for ``b1``: eight elements share one).

    Returns:
        A two-mode ``CuteLayout``; a ``ComposedLayout`` if there is a swizzle or an offset; a ``PiecewiseLayout`` of
        ``mn`` and ``k`` if the rows end inside an MN-major span.

    Example:
        >>> print(layout(MatrixDescriptor(0, 16, 1024, 0, "128B"), "bf16"))
        Sw<3,3,3> o 0 o ((8,8),16):((64,512),1)
        >>> print(layout(MatrixDescriptor(32, 16, 512, 0, "64B"), "e4m3", 8))
        Sw<2,4,3> o 32 o (8,32):(64,1)
        >>> print(layout(MatrixDescriptor(0, 128, 256), "tf32", 8, unit="byte"))
        (8,(4,2)):(16,(4,128))

    Laws: equals ``operand_offsets`` divided by the unit, at every coordinate.
    Source: measured, see ``operand_offsets``.
    """
    bits = multiply(dtype).bits
    if not isinstance(unit, str) or unit not in ("element", "byte") or (unit == "byte" and bits < 8):
        because = f"unit must be element or, for elements of whole bytes, byte, not {shown(unit)}"
        raise malformed("LA814", "no such unit of shared memory", because, "layout")
    count, along = checked_read(descriptor, rows, k, bits, major)
    pattern = read_pattern(major, descriptor.swizzle, bits, along)
    in_bits = 8 if unit == "byte" else bits

    def units(step_bytes: int) -> int:
        return 8 * step_bytes // in_bits

    near = pattern.mn[0][0]
    if count > near and count % near:
        return _cut(descriptor, pattern, count, along, in_bits)

    def mode(digits: tuple[Digit, ...], extent: int) -> tuple[list[int], list[int]]:
        extents, steps = [], []
        for size, step in digits:
            here = min(size, extent) if size else extent
            extent //= here
            if here > 1:
                extents.append(here)
                # eight bits share a byte: their step is 0 bytes, and 1 in units of a bit
                steps.append(1 if step == 0 else units(step if isinstance(step, int) else getattr(descriptor, step)))
        return extents, steps

    modes = [mode(pattern.mn, count), mode(pattern.k, along)]
    shape = tuple(extents[0] if len(extents) == 1 else tuple(extents) for extents, _ in modes)
    strides = tuple(steps[0] if len(steps) == 1 else tuple(steps) for _, steps in modes)
    inner = CuteLayout(shape, strides)
    phases = swizzle_rows(descriptor.swizzle)
    start, back = descriptor.start_address_bytes, ROW_BYTES * (descriptor.base_offset % phases)
    if phases == 1:
        return ComposedLayout(Swizzle(0, 0, 0), units(start), inner) if start else inner
    chunk = units(16).bit_length() - 1
    swizzle = Swizzle(phases.bit_length() - 1, chunk, 3)
    if not back:
        return ComposedLayout(swizzle, units(start), inner)
    ahead = ROW_BYTES * phases - back  # addresses stay at least 0; the phase repeats after the period
    moved = ComposedLayout(swizzle, units(start + ahead), inner)
    return ComposedLayout(Swizzle(0, 0, 0), -units(ahead), moved)


def _cut(descriptor: MatrixDescriptor, pattern: ReadPattern, rows: int, k: int, in_bits: int) -> PiecewiseLayout:
    """Reads of rows that end inside a span, as a piecewise layout."""
    terms = [str(8 * descriptor.start_address_bytes // in_bits)]
    for name, digits in (("mn", pattern.mn), ("k", pattern.k)):
        rest = name
        for size, step in digits:
            taken = f"({rest} mod {size})" if size else rest
            amount = 8 * (step if isinstance(step, int) else int(getattr(descriptor, step))) // in_bits
            terms.append(f"{amount}*{taken}")
            rest = f"floor({rest}/{size})" if size else rest
    linear, phases = " + ".join(terms), swizzle_rows(descriptor.swizzle)
    chunk, row = 128 // in_bits, 8 * ROW_BYTES // in_bits
    moved = f"({linear} + {row * (phases - descriptor.base_offset % phases)})"
    text = linear
    for bit in (1 << place for place in range(phases.bit_length() - 1)):
        old, phase = f"(floor(({linear})/{chunk * bit}) mod 2)", f"floor({moved}/{row * bit})"
        text += f" + {chunk * bit}*((({old} + {phase}) mod 2) - {old})"
    return PiecewiseLayout(f"{{ [mn, k] -> [offset = {text}] : 0 <= mn < {rows} and 0 <= k < {k} }}")


def register_layout(dtype: str) -> LinearLayout:
    """Return which element of A (for sparse A, stored element) each slot of each thread's four registers holds.

    Mathematically: ``register_coordinates`` as a linear layout: (register, lane, warp) to (row, k), where ``register``
    counts elements, low bits of a word first.

    Example:
        >>> str(register_layout("e4m3"))
        'F2[register=(0,1)(0,2)(8,0)(0,16), lane=(0,4)(0,8)(1,0)(2,0)(4,0), warp=(16,0)(32,0) -> row:64, k:32]'

    Laws: equals ``register_coordinates``.
    Source: PTX ISA 9.1 section 9.7.15.5.1.
    """
    bits = multiply(dtype).bits
    each = WORD_BITS // bits
    inside = [(0, 1 << place) for place in range(each.bit_length() - 1)]
    bases = {
        "register": [*inside, (8, 0), (0, 4 * each)],
        "lane": [(0, each), (0, 2 * each), (1, 0), (2, 0), (4, 0)],
        "warp": [(16, 0), (32, 0)],
    }
    return LinearLayout.from_bases(bases, {"row": 64, "k": 2 * A_WORDS * each})


def accumulator_layout(n: int) -> CuteLayout:
    """Return which element of D each thread holds in each value of its accumulator.

    Mathematically: (register, lane, warp) to ``row * n + column``, as ``accumulator_coordinates``; two values of an f16
    accumulator share a register.

    Args:
        n: Columns, 8..256 in steps of 8.

    Example:
        >>> print(accumulator_layout(24))
        ((2,2,3),(4,8),4):((1,192,8),(2,24),384)

    Laws: equals ``accumulator_coordinates``.
    Source: PTX ISA 9.1 section 9.7.15.5.1.
    """
    accumulator_coordinates(n)  # raises for an illegal N
    return CuteLayout(((2, 2, n // 8), (4, 8), 4), ((1, 8 * n, 8), (2, n), 16 * n))


def metadata_layout(dtype: str, selector: int = 0) -> CuteLayout:
    """Return which group of sparse A each nibble of the contributing metadata words describes.

    Mathematically: (nibble, thread) to ``row * G + group`` with G groups in a row (8, or 16 for 8-bit elements), over
    the contributing threads in order: all 128, or those with (t mod 4) div 2 = selector.

    Example:
        >>> print(metadata_layout("f16"))
        ((4,2),(2,8,4)):((1,64),(4,8,128))
        >>> print(metadata_layout("s8"))
        (8,(2,2,8,4)):(1,(128,8,16,256))

    Laws: equals ``metadata_coordinates`` where that is not -1.
    Source: PTX ISA 9.1 section 9.7.15.6.1.
    """
    bits = multiply(dtype).bits
    metadata_coordinates(bits, selector)  # raises for types without sparse operands
    if bits == 8:
        return CuteLayout((8, (2, 2, 8, 4)), (1, (8 * 16, 8, 16, 16 * 16)))
    return CuteLayout(((4, 2), (2, 8, 4)), ((1, 8 * 8), (4, 8, 16 * 8)))
