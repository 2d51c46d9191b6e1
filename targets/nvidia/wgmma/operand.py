"""Which shared byte ``wgmma`` reads for each element of an operand in shared memory.

Main statements: let o(mn, k) be the sum of the pattern's digits times their steps and a = start + o. The byte read is
a with its chunk bits, 4 and up, XORed with ((a div 128) - base_offset) mod W, where W = 1, 2, 4, 8 for NONE, 32B, 64B,
128B. The XOR acts on absolute shared addresses, so a start inside the pattern needs no base offset. For a K-major
operand the rule depends on bytes only, not on the element type: a row of a chunk is 16 bytes, and one instruction
reads 32 bytes along K, or 64 of B if A is sparse.

Implementation notes: measured with random descriptors of every element width, dense and sparse, whether or not the
documented canonical layouts allow them. The document calls the leading offset unused for swizzled K-major operands; the
device reads it if one instruction's K is longer than the span (64 bytes of B with sparse A, in the 32B mode). Refused
because untested on a device: a stride field of 0 that is read, addresses beyond 2^18.

References: PTX ISA 9.1 section 9.7.15.5 (canonical layouts), confirmed by the measurement wherever both apply.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, TargetRuleError, shown
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.reading import Digit, Field, Meaning, denoted, offsets, step_bytes
from layoutalg.targets.nvidia.wgmma.descriptor import (
    ADDRESS_LIMIT_BYTES,
    UNIT_BYTES,
    MatrixDescriptor,
    checked_integer,
    malformed,
    swizzle_rows,
)
from layoutalg.targets.nvidia.wgmma.instructions import (
    FLOAT_N,
    INTEGER_N,
    checked_bits,
    instruction_k,
    multiply,
)

MAJORS = ("K", "MN")
MAJOR_SOURCE = "PTX ISA 9.1 section 9.7.15.5.2 (transpose immediates exist for .f16 and .bf16 only)"
MEASURED_SOURCE = "reads of random wgmma descriptors on a device, tests/data/measured"


@fact("LA374")
class ReadPattern:
    """How an element's coordinates split into digits, fastest first, and what each digit adds to the address.

    Args:
        mn: ``(extent, step)`` per digit of the row coordinate; a step is in bytes or names a descriptor field.
            The last extent is 0: unbounded.
        k: The same for the K coordinate, in full (16 elements).
    """

    mn: tuple[Digit, ...]
    k: tuple[Digit, ...]


def checked_major(major: object, where: str = "operand_offsets") -> str:
    """Return ``"K"`` or ``"MN"``."""
    if not isinstance(major, str) or major not in MAJORS:
        raise malformed("LA358", "no such major", f"major must be 'K' or 'MN', not {shown(major)}", where)
    return str(major)


def read_pattern(major: str, swizzle: str, element_bits: int = 16, k: int | None = None) -> ReadPattern:
    """Return the digits of an operand for one major and one swizzle mode, before the XOR.

    Args:
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1; 16-bit elements only).
        swizzle: A name of ``SWIZZLES``.
        element_bits: 1, 8, 16 or 32.
        k: Elements along K: 256 bits (the default), or 512 bits of B if A is sparse.

    Example:
        >>> read_pattern("K", "128B")
        ReadPattern(mn=((8, 128), (0, 'stride_bytes')), k=((16, 2),))
        >>> read_pattern("MN", "NONE")
        ReadPattern(mn=((8, 2), (0, 'stride_bytes')), k=((8, 16), (2, 'leading_bytes')))
        >>> read_pattern("K", "NONE", 1).k
        ((8, 0), (16, 1), (2, 'leading_bytes'))

    Source: measured; PTX ISA 9.1 section 9.7.15.5.
    """
    span = swizzle_rows(swizzle)
    along = _checked_k(k, element_bits)
    return _pattern(checked_major(major, "read_pattern"), span, checked_bits(element_bits), along)


@lru_cache(maxsize=1024)
def _pattern(major: str, span: int, bits: int, along: int) -> ReadPattern:
    row = UNIT_BYTES * span
    if major == "K":
        near: tuple[Digit, ...] = ((8, 0),) if bits == 1 else ()
        step, total = max(bits // 8, 1), along * bits // 8
        inside = min(row, total) if span > 1 else UNIT_BYTES
        far: tuple[Digit, ...] = ((total // inside, "leading_bytes"),) if total > inside else ()
        return ReadPattern(((8, row), (0, "stride_bytes")), (*near, (inside // step, step), *far))
    if bits != 16:
        because = f"only 16-bit operands may be MN-major, not those of {bits} bits"
        raise TargetRuleError(
            Diagnostic("LA812", "the operand cannot be MN-major", ("read_pattern",), because, source=MAJOR_SOURCE),
            "WGMMA_MAJOR",
        )
    if span == 1:
        return ReadPattern(((8, 2), (0, "stride_bytes")), ((8, row), (along // 8, "leading_bytes")))
    return ReadPattern(((8 * span, 2), (0, "leading_bytes")), ((8, row), (along // 8, "stride_bytes")))


def unread_fields(
    rows: int, major: str, swizzle: str, element_bits: int = 16, k: int | None = None
) -> tuple[Field, ...]:
    """Return the stride fields that affect no address of an instruction.

    Args:
        rows: Rows that the instruction reads.
        major: ``"K"`` or ``"MN"``.
        swizzle: A name of ``SWIZZLES``.
        element_bits: As for ``read_pattern``.
        k: As for ``read_pattern``.

    Example:
        >>> unread_fields(64, "K", "128B")
        ('leading_bytes',)
        >>> unread_fields(64, "K", "NONE")
        ()
    """
    return _unread(read_pattern(major, swizzle, element_bits, k), checked_integer("rows", rows, "unread_fields"))


def _unread(pattern: ReadPattern, rows: int) -> tuple[Field, ...]:
    read = {step for _, step in pattern.k}
    if rows > pattern.mn[0][0]:
        read.add(pattern.mn[1][1])
    fields: tuple[Field, ...] = ("leading_bytes", "stride_bytes")
    return tuple([field for field in fields if field not in read])


def swizzle_phase(addresses: npt.NDArray[np.int64], swizzle: str, base_offset: int = 0) -> npt.NDArray[np.int64]:
    """Return the addresses after the XOR of the descriptor's swizzle; an involution.

    Args:
        addresses: int64, any shape, absolute shared byte addresses.
        swizzle: A name of ``SWIZZLES``.
        base_offset: The descriptor's base offset.

    Example:
        >>> swizzle_phase(np.array([0, 128, 256]), "128B").tolist()
        [0, 144, 288]
        >>> swizzle_phase(np.array([0, 128, 256]), "128B", base_offset=1).tolist()
        [112, 128, 272]
    """
    rows = swizzle_rows(swizzle)
    offset = checked_integer("base_offset", base_offset, "swizzle_phase") % rows
    if not isinstance(addresses, np.ndarray) or addresses.dtype.kind not in "iu":
        raise malformed("LA350", "addresses are not an array of integers", f"got {shown(addresses)}", "swizzle_phase")
    given = addresses.astype(np.int64, copy=False)
    return given ^ (((given >> 7) - offset & rows - 1) << 4)  # rows are a power of two


def operand_offsets(
    descriptor: MatrixDescriptor, *, rows: int = 64, k: int | None = None, element_bits: int = 16, major: str = "K"
) -> npt.NDArray[np.int64]:
    """Return the absolute shared byte address that one instruction reads for each element of its operand.

    Mathematically: with W the swizzle's phases, L and S the leading and stride bytes, and b = k element_bits div 8 the
    byte of k in its row, the offset o(m, k) is

    - K-major, NONE: 16 (m mod 8) + S (m div 8) + L (b div 16) + b mod 16
    - K-major, swizzled: 16 W (m mod 8) + S (m div 8) + L (b div 16 W) + b mod 16 W
    - MN-major, NONE: 2 (m mod 8) + S (m div 8) + 16 (k mod 8) + L (k div 8)
    - MN-major, swizzled: 2 (m mod 8W) + L (m div 8W) + 16 W (k mod 8) + S (k div 8)

    and the address is a = start + o with chunk bits XOR ((a div 128) - base offset) mod W. Elements of one bit: the
    address of the byte; element k is its bit k mod 8.

    Args:
        descriptor: The descriptor; its start address is taken as absolute.
        rows: M of operand A (64), or N of operand B (8..256 in steps of 8; of bits, the N of ``b1``).
        k: Elements along K: 256 bits (the default; for sparse A, stored bits), or 512 bits of B if A is sparse.
        element_bits: 1, 8, 16 or 32.
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1; 16-bit elements only).

    Returns:
        int64[rows, k].

    Example:
        >>> d = MatrixDescriptor(0, 16, 1024, 0, "128B")
        >>> operand_offsets(d)[:3, [0, 8]].tolist()
        [[0, 16], [144, 128], [288, 304]]
        >>> operand_offsets(d, k=8, element_bits=32)[1].tolist()
        [144, 148, 152, 156, 128, 132, 136, 140]

    Source: measured, see ``tests/data/measured/README.md``.
    """
    count, along, pattern = _checked_read(descriptor, rows, k, element_bits, major)
    linear = (
        descriptor.start_address_bytes
        + offsets(descriptor, pattern.mn, count)[:, None]
        + offsets(descriptor, pattern.k, along)[None, :]
    )
    return swizzle_phase(linear, descriptor.swizzle, descriptor.base_offset)


def layout(
    descriptor: MatrixDescriptor,
    dtype: str,
    rows: int = 64,
    k: int | None = None,
    *,
    major: str = "K",
    unit: str = "element",
) -> Meaning:
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
    count, along, pattern = _checked_read(descriptor, rows, k, bits, major)
    in_bits = 8 if unit == "byte" else bits

    def units(digits: tuple[Digit, ...]) -> list[tuple[int, int]]:
        # eight bits share a byte: their step is 0 bytes, and 1 in units of a bit
        return [(size, 8 * step_bytes(descriptor, step) // in_bits or 1) for size, step in digits]

    return denoted(descriptor, (units(pattern.mn), units(pattern.k)), (count, along), in_bits, join=False)


def _checked_read(
    descriptor: MatrixDescriptor, rows: int, k: int | None, element_bits: int, major: str
) -> tuple[int, int, ReadPattern]:
    if not isinstance(descriptor, MatrixDescriptor):
        raise malformed("LA350", "descriptor is not a MatrixDescriptor", f"got {shown(descriptor)}", "operand_offsets")
    count, along = _checked_rows(rows, element_bits), _checked_k(k, element_bits)
    pattern = read_pattern(checked_major(major), descriptor.swizzle, element_bits, along)
    for field in ("leading_bytes", "stride_bytes"):
        if getattr(descriptor, field) == 0 and field not in _unread(pattern, count):
            raise _not_measured(f"{field} = 0, which this operand reads")
    last = descriptor.start_address_bytes + _reach(descriptor, pattern.mn, count) + _reach(descriptor, pattern.k, along)
    if last >= ADDRESS_LIMIT_BYTES:
        raise _not_measured(f"byte address {last}, beyond the 18 bits of an address")
    return count, along, pattern


def _reach(descriptor: MatrixDescriptor, digits: tuple[Digit, ...], extent: int) -> int:
    """The largest sum of the digits' steps."""
    total = 0
    for size, step in digits:
        here = min(size, extent) if size else extent
        extent = -(-extent // here)
        total += (here - 1) * step_bytes(descriptor, step)
    return total


def _checked_rows(rows: int, element_bits: int) -> int:
    count = checked_integer("rows", rows, "operand_offsets")
    legal = INTEGER_N if checked_bits(element_bits, "operand_offsets") == 1 else FLOAT_N
    if count not in legal:
        raise _not_measured(f"rows = {shown(count)}; rows are 64 for A, one of {', '.join(map(str, legal))} for B")
    return count


def _checked_k(k: int | None, element_bits: int) -> int:
    legal = (instruction_k(element_bits), instruction_k(element_bits, sparse=True))
    along = legal[0] if k is None else checked_integer("k", k, "operand_offsets")
    if along not in legal:
        what = f"k = {shown(along)}; one instruction reads {legal[0]} elements of {element_bits} bits along K"
        raise _not_measured(f"{what}, or {legal[1]} of B if A is sparse")
    return along


def _not_measured(what: str) -> TargetRuleError:
    diagnostic = Diagnostic(
        "LA357", "not measured", ("operand_offsets",), f"not measured: {what}", source=MEASURED_SOURCE
    )
    return TargetRuleError(diagnostic, "NOT_MEASURED")
