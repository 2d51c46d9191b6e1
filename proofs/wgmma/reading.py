"""The checker's own model of ``wgmma`` descriptor reads: an independent transcription of the measured table.

With W = 1, 2, 4, 8 for NONE, 32B, 64B, 128B, leading bytes L and stride bytes S, element (m, k) is at

  - K-major, NONE:      16 (m mod 8) + S (m div 8) + L (b div 16) + b mod 16
  - K-major, swizzled:  16 W (m mod 8) + S (m div 8) + L (b div 16 W) + b mod 16 W
  - MN-major, NONE:     2 (m mod 8) + S (m div 8) + 16 (k mod 8) + L (k div 8)
  - MN-major, swizzled: 2 (m mod 8 W) + L (m div 8 W) + 16 W (k mod 8) + S (k div 8)

from the start, where b = k * element bits div 8, and the 16-byte chunk c of that address is read as c XOR ((address div
128 - base offset) mod W).

It shares no function with ``targets``, which the finder uses: formulas instead of digit patterns, chunk numbers instead
of address bits, words decoded instead of fields encoded.

References: PTX ISA 9.1 section 9.7.15.5; reads of random descriptors on a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap.swizzle import CHUNK_BYTES, PHASES

SHARED_BYTES = 2**18
"""Addresses have 18 bits; reads beyond were not measured."""
K_BITS = 256
"""Bits of one row that a dense instruction reads."""
SWIZZLES = ("NONE", "128B", "64B", "32B")
"""Indexed by the top two bits."""
RESERVED = 0x3FF1C000C000C000
"""Bits 15:14, 31:30, 48:46 and 61:52."""


@dataclass(frozen=True, slots=True)
class Fields(Checked, code="LA374"):
    """The fields of a descriptor; see ``fields_of``."""

    start_address_bytes: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int
    swizzle: str


def fields_of(word: int) -> Fields | None:
    """Return the fields of a word; None if a reserved bit is set or it exceeds 64 bits.

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
    """Return the period of the XOR in bytes."""
    return CHUNK_BYTES if PHASES[swizzle] == 1 else 128 * PHASES[swizzle]


def read_addresses(
    fields: Fields, rows: int, major: str, tile_base_bytes: int, bits: int = 16, k: int = 16
) -> npt.NDArray[np.int64] | str:
    """Return the shared byte address read for each element of one instruction, or why it is unknown.

    Args:
        fields: The descriptor for the tile base 0.
        rows: Rows that the instruction reads.
        major: ``"K"`` or ``"MN"``.
        tile_base_bytes: The tile base.
        bits: Bits of an element.
        k: Elements along K that the instruction reads.

    Returns:
        int64[rows, k]; for one-bit elements, the containing byte.
    """
    if major == "MN" and bits != 16:
        return f"{bits}-bit elements cannot be MN-major"
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


@lru_cache(maxsize=1024)
def unread(rows: int, major: str, swizzle: str, bits: int = 16, k: int = 16) -> tuple[str, ...]:
    """Return the stride fields that affect no address of an instruction, found by varying them.

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


@lru_cache(maxsize=64)
def _counts(
    rows: int, major: str, span: int, bits: int, along: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the constant bytes, and the multiples of L and S."""
    m, k = np.indices((rows, along), dtype=np.int64)
    if major == "K":
        byte, row = k * bits // 8, 16 * span
        return row * (m % 8) + byte % row, byte // row, m // 8
    if span == 1:
        return 2 * (m % 8) + 16 * (k % 8), k // 8, m // 8
    return 2 * (m % (8 * span)) + 16 * span * (k % 8), m // (8 * span), k // 8
