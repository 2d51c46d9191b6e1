"""Which shared byte ``wgmma`` reads for each element of an operand in shared memory.

Main definitions: ``ReadPattern``, ``read_pattern``, ``operand_offsets``, ``unread_fields``, ``swizzle_phase``.

Main statements: let o(mn, k) be the sum of the pattern's digits times their steps and a = start + o. The byte read is
a with its chunk bits, 4 and up, XORed with ((a div 128) - base_offset) mod W, where W = 1, 2, 4, 8 for NONE, 32B, 64B,
128B. The XOR acts on absolute shared addresses, so a start inside the pattern needs no base offset.

Implementation notes: measured on an H200 (driver 580.159.04) for A of m64n16k16, f16: 1,200 random descriptors, legal
by the documented canonical layouts or not; LBO and SBO of 1..199 units, every base offset, every swizzle, both majors.
Refused because they were not tested on a device: other element widths, other K, a stride field of 0 that is read,
addresses that pass 2^18. The rule for B (N rows) was confirmed on 640 descriptors of N = 8, 64, 128, 256.

References: PTX ISA 9.1 section 9.7.15.5 (canonical layouts), which the measurement confirms wherever both apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, TargetRuleError, shown
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.nvidia.wgmma.descriptor import (
    ADDRESS_LIMIT_BYTES,
    UNIT_BYTES,
    MatrixDescriptor,
    checked_integer,
    malformed,
    swizzle_rows,
)
from layoutalg.targets.nvidia.wgmma.shapes import INSTRUCTION_K, N_VALUES

MAJORS = ("K", "MN")
ELEMENT_BITS = 16
MEASURED_SOURCE = "reads of 1,200 wgmma.m64n16k16 descriptors on one NVIDIA H200, driver 580.159.04"

Field: TypeAlias = Literal["leading_bytes", "stride_bytes"]
Step: TypeAlias = int | Field
Digit: TypeAlias = tuple[int, Step]


@dataclass(frozen=True, slots=True)
class ReadPattern:
    """How an element's coordinates split into digits, fastest first, and what each digit adds to the address.

    Args:
        mn: ``(extent, step)`` per digit of the row coordinate; a step is bytes or the descriptor field that holds it.
            The last extent is 0: unbounded.
        k: The same for the K coordinate, in full (16 elements).
    """

    mn: tuple[Digit, ...]
    k: tuple[Digit, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


def checked_major(major: object, where: str = "operand_offsets") -> str:
    """Return ``"K"`` or ``"MN"``.

    Raises: MalformedError: LA358.
    """
    if not isinstance(major, str) or major not in MAJORS:
        raise malformed("LA358", "no such major", f"major must be 'K' or 'MN', not {shown(major)}", where)
    return str(major)


def read_pattern(major: str, swizzle: str) -> ReadPattern:
    """Return the digits of a 16-bit operand for one major and one swizzle mode, before the XOR.

    Args:
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1).
        swizzle: A name of ``SWIZZLES``.

    Raises: MalformedError: LA358, LA354.

    Example:
        >>> read_pattern("K", "128B")
        ReadPattern(mn=((8, 128), (0, 'stride_bytes')), k=((16, 2),))
        >>> read_pattern("MN", "NONE")
        ReadPattern(mn=((8, 2), (0, 'stride_bytes')), k=((8, 16), (2, 'leading_bytes')))

    Source: measured; PTX ISA 9.1 section 9.7.15.5.
    """
    span = swizzle_rows(swizzle)
    row = UNIT_BYTES * span
    if checked_major(major, "read_pattern") == "K":
        k: tuple[Digit, ...] = ((8, 2), (2, "leading_bytes")) if span == 1 else ((16, 2),)
        return ReadPattern(((8, row), (0, "stride_bytes")), k)
    if span == 1:
        return ReadPattern(((8, 2), (0, "stride_bytes")), ((8, row), (2, "leading_bytes")))
    return ReadPattern(((8 * span, 2), (0, "leading_bytes")), ((8, row), (2, "stride_bytes")))


def unread_fields(rows: int, major: str, swizzle: str) -> tuple[Field, ...]:
    """Return the stride fields that do not influence any address of an instruction.

    Args:
        rows: Rows that the instruction reads.
        major: ``"K"`` or ``"MN"``.
        swizzle: A name of ``SWIZZLES``.

    Raises: MalformedError: LA350, LA354, LA358.

    Example:
        >>> unread_fields(64, "K", "128B")
        ('leading_bytes',)
        >>> unread_fields(64, "K", "NONE")
        ()

    Source: follows from ``read_pattern``.
    """
    pattern = read_pattern(major, swizzle)
    read = {step for _, step in pattern.k}
    if checked_integer("rows", rows, "unread_fields") > pattern.mn[0][0]:
        read.add(pattern.mn[1][1])
    fields: tuple[Field, ...] = ("leading_bytes", "stride_bytes")
    return tuple(field for field in fields if field not in read)


def swizzle_phase(addresses: npt.NDArray[np.int64], swizzle: str, base_offset: int = 0) -> npt.NDArray[np.int64]:
    """Return the addresses after the XOR of the descriptor's swizzle; an involution.

    Args:
        addresses: int64, any shape, absolute shared byte addresses.
        swizzle: A name of ``SWIZZLES``.
        base_offset: The descriptor's base offset.

    Raises: MalformedError: LA350, LA354.

    Example:
        >>> swizzle_phase(np.array([0, 128, 256]), "128B").tolist()
        [0, 144, 288]
        >>> swizzle_phase(np.array([0, 128, 256]), "128B", base_offset=1).tolist()
        [112, 128, 272]

    Source: measured.
    """
    rows = swizzle_rows(swizzle)
    offset = checked_integer("base_offset", base_offset, "swizzle_phase") % rows
    if not isinstance(addresses, np.ndarray) or addresses.dtype.kind not in "iu":
        raise malformed("LA350", "addresses are not an array of integers", f"got {shown(addresses)}", "swizzle_phase")
    given = addresses.astype(np.int64, copy=False)
    return given ^ (((given >> 7) - offset) % rows << 4)


def operand_offsets(
    descriptor: MatrixDescriptor, *, rows: int = 64, k: int = 16, element_bits: int = 16, major: str = "K"
) -> npt.NDArray[np.int64]:
    """Return the absolute shared byte address that one instruction reads for each element of its operand.

    Mathematically: with W the swizzle's phases, L and S the leading and stride bytes, the offset o(m, k) is

    - K-major, NONE: 16 (m mod 8) + S (m div 8) + L (k div 8) + 2 (k mod 8)
    - K-major, swizzled: 16 W (m mod 8) + S (m div 8) + 2 k
    - MN-major, NONE: 2 (m mod 8) + S (m div 8) + 16 (k mod 8) + L (k div 8)
    - MN-major, swizzled: 2 (m mod 8W) + L (m div 8W) + 16 W (k mod 8) + S (k div 8)

    and the address is a = start + o with chunk bits XOR ((a div 128) - base offset) mod W.

    Args:
        descriptor: The descriptor; its start address is taken as absolute.
        rows: M of operand A (64), or N of operand B (8..256 in steps of 8).
        k: 16.
        element_bits: 16 (f16 or bf16).
        major: ``"K"`` (transpose bit 0) or ``"MN"`` (transpose bit 1).

    Returns:
        int64[rows, k].

    Raises: MalformedError: LA350, LA358. TargetRuleError: LA357.

    Example:
        >>> d = MatrixDescriptor(0, 16, 1024, 0, "128B")
        >>> operand_offsets(d)[:3, [0, 8]].tolist()
        [[0, 16], [144, 128], [288, 304]]

    Source: measured on an H200 for A (64 rows) and for B with 8, 64, 128 and 256 rows; driver 580.159.04.
    """
    if not isinstance(descriptor, MatrixDescriptor):
        raise malformed("LA350", "descriptor is not a MatrixDescriptor", f"got {shown(descriptor)}", "operand_offsets")
    count = _checked_shape(rows, k, element_bits)
    pattern = read_pattern(checked_major(major), descriptor.swizzle)
    for field in ("leading_bytes", "stride_bytes"):
        if getattr(descriptor, field) == 0 and field not in unread_fields(count, major, descriptor.swizzle):
            raise _not_measured(f"{field} = 0, which this operand reads")
    linear = (
        descriptor.start_address_bytes
        + _axis(descriptor, pattern.mn, count)[:, None]
        + _axis(descriptor, pattern.k, INSTRUCTION_K)[None, :]
    )
    addresses = swizzle_phase(linear, descriptor.swizzle, descriptor.base_offset)
    last = int(linear.max())
    if last >= ADDRESS_LIMIT_BYTES:
        raise _not_measured(f"byte address {last}, beyond the 18 bits of an address")
    return addresses


def _axis(descriptor: MatrixDescriptor, digits: tuple[Digit, ...], extent: int) -> npt.NDArray[np.int64]:
    rest = np.arange(extent, dtype=np.int64)
    total = np.zeros(extent, dtype=np.int64)
    for size, step in digits:
        digit = rest % size if size else rest
        total += digit * (step if isinstance(step, int) else int(getattr(descriptor, step)))
        rest = rest // size if size else rest
    return total


def _checked_shape(rows: int, k: int, element_bits: int) -> int:
    count = checked_integer("rows", rows, "operand_offsets")
    if count not in N_VALUES:
        raise _not_measured(f"rows = {shown(count)}; rows are 64 for A, a multiple of 8 in 8..256 for B")
    for name, value, known in (("k", k, INSTRUCTION_K), ("element_bits", element_bits, ELEMENT_BITS)):
        if checked_integer(name, value, "operand_offsets") != known:
            raise _not_measured(f"{name} = {shown(value)}; only {name} = {known} was")
    return count


def _not_measured(what: str) -> TargetRuleError:
    diagnostic = Diagnostic(
        "LA357", "not measured", ("operand_offsets",), f"not measured: {what}", source=MEASURED_SOURCE
    )
    return TargetRuleError(diagnostic, "NOT_MEASURED")
