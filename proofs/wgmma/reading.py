"""What ``wgmma`` reads through a descriptor, as the checker says it: the measured table, written out once more.

Main statements: with W = 1, 2, 4, 8 for NONE, 32B, 64B, 128B, leading bytes L, stride bytes S, element (m, k) lies at

  - K-major, NONE:      16 (m mod 8) + S (m div 8) + L (b div 16) + b mod 16
  - K-major, swizzled:  16 W (m mod 8) + S (m div 8) + L (b div 16 W) + b mod 16 W
  - MN-major, NONE:     2 (m mod 8) + S (m div 8) + 16 (k mod 8) + L (k div 8)
  - MN-major, swizzled: 2 (m mod 8 W) + L (m div 8 W) + 16 W (k mod 8) + S (k div 8)

from the start, where b is k times the bits of an element div 8, and the 16-byte chunk c of that address is read as c
XOR ((address div 128 - base offset) mod W).

Implementation notes: shares no function with ``targets``, which the finder uses: formulas in place of digit patterns,
chunk numbers in place of address bits, fields cut out of the word in place of a word put together from fields.

References: PTX ISA 9.1 section 9.7.15.5; reads of random descriptors on a device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.cache import remembered
from layoutalg.ground.kinds import checked_kinds
from layoutalg.proofs.tensormap.swizzle import CHUNK_BYTES, PHASES

SHARED_BYTES = 2**18
"""Addresses have 18 bits; what lies beyond was not measured."""
K_BITS = 256
"""Of one row, read by one dense instruction."""
SWIZZLES = ("NONE", "128B", "64B", "32B")
"""By the number in the top two bits."""
RESERVED = 0x3FF1C000C000C000
"""Bits 15:14, 31:30, 48:46 and 61:52."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What the 64 bits hold; made by ``fields_of``."""

    start_address_bytes: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int
    swizzle: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


def fields_of(word: int) -> Fields | None:
    """Return the fields of a word, None where a reserved bit is set or there are not 64 bits.

    Example:
        >>> fields_of(0x4000004000010002)
        Fields(start_address_bytes=32, leading_bytes=16, stride_bytes=1024, base_offset=0, swizzle='128B')
        >>> fields_of(1 << 14) is None
        True
    """
    if not 0 <= word < 2**64 or word & RESERVED:
        return None
    quarters = [word >> shift & 0x3FFF for shift in (0, 16, 32)]
    start, leading, stride = (CHUNK_BYTES * quarter for quarter in quarters)
    return Fields(start, leading, stride, word >> 49 & 0b111, SWIZZLES[word >> 62])


def period_bytes(swizzle: str) -> int:
    """Return after how many bytes of address the XOR repeats."""
    return CHUNK_BYTES if PHASES[swizzle] == 1 else 128 * PHASES[swizzle]


def read_addresses(
    fields: Fields, rows: int, major: str, tile_base_bytes: int, bits: int = 16, k: int = 16
) -> npt.NDArray[np.int64] | str:
    """Return the shared byte address read for each element of one instruction, or why it is not known.

    Args:
        fields: For the tile base 0.
        rows: Rows that the instruction reads.
        major: ``"K"`` or ``"MN"``.
        tile_base_bytes: Where the tile base is.
        bits: Bits of an element.
        k: Elements along K that the instruction reads.

    Returns:
        int64[rows, k]; of bits, the bytes that hold them.
    """
    if major == "MN" and bits != 16:
        return f"elements of {bits} bits are never MN-major"
    for name in ("leading_bytes", "stride_bytes"):
        if getattr(fields, name) == 0 and name not in unread(rows, major, fields.swizzle, bits, k):
            return f"not measured: {name} = 0, which this operand reads"
    offsets = _offsets(fields.leading_bytes, fields.stride_bytes, rows, major, PHASES[fields.swizzle], bits, k)
    linear = tile_base_bytes + fields.start_address_bytes + offsets
    if int(linear.max()) >= SHARED_BYTES:
        return f"not measured: byte address {int(linear.max())}, beyond the 18 bits of an address"
    chunk, row = linear // CHUNK_BYTES, linear // 128
    phase = (row - fields.base_offset) % PHASES[fields.swizzle]
    return linear + CHUNK_BYTES * ((chunk ^ phase) - chunk)


@remembered(lambda *_: 500)
def unread(rows: int, major: str, swizzle: str, bits: int = 16, k: int = 16) -> tuple[str, ...]:
    """Return the stride fields that change no address of an instruction, found by changing them.

    Example:
        >>> unread(64, "K", "128B"), unread(64, "K", "NONE")
        (('leading_bytes',), ())
    """
    span = PHASES[swizzle]
    some = _offsets(16, 16, rows, major, span, bits, k)
    changed = (("leading_bytes", (32, 16)), ("stride_bytes", (16, 32)))
    return tuple(
        name for name, fields in changed if np.array_equal(some, _offsets(*fields, rows, major, span, bits, k))
    )


def _offsets(
    leading: int, stride: int, rows: int, major: str, span: int, bits: int, along: int
) -> npt.NDArray[np.int64]:
    near, of_leading, of_stride = _counts(rows, major, span, bits, along)
    return near + leading * of_leading + stride * of_stride


@remembered(lambda counts, *_: 500 + 3 * counts[0].nbytes)
def _counts(
    rows: int, major: str, span: int, bits: int, along: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bytes that no field moves, and how often L and S are added."""
    m, k = np.indices((rows, along), dtype=np.int64)
    if major == "K":
        byte, row = k * bits // 8, 16 * span
        return row * (m % 8) + byte % row, byte // row, m // 8
    if span == 1:
        return 2 * (m % 8) + 16 * (k % 8), k // 8, m // 8
    return 2 * (m % (8 * span)) + 16 * span * (k % 8), m // (8 * span), k // 8
