"""The checker's own model of ``tcgen05`` descriptor reads: an independent transcription of the documented table.

With c bits per element in shared memory, T = 128 / c elements per 16-byte chunk, and W = 1, 2, 4, 8 chunks per span of
NONE, 32B, 64B, 128B, chunk (m, h) of a K-major operand and chunk (h, k) of an MN-major one are at

  - K-major, NONE:            16 (m mod 8) + S (m div 8) + L h
  - K-major, swizzled:        16 W (m mod 8) + S (m div 8) + 16 h
  - MN-major, NONE:           S h + 16 (k mod 8) + L (k div 8)
  - MN-major, swizzled:       16 (h mod W) + L (h div W) + 16 W (k mod 8) + S (k div 8)
  - MN-major, 32-byte atoms:  16 (h mod 8) + L (h div 8) + 128 (k mod 4) + S (k div 4)

from the start. The chunk number is then XORed with the number of its 128-byte row, minus the base offset, modulo W;
with 32-byte atoms, with twice that number modulo 4.

It shares no function with ``targets``, which the finder uses: formulas instead of digit patterns, chunk numbers instead
of address bits, words decoded instead of fields encoded.

References: PTX ISA 9.1 sections 9.7.16.3.3 and 9.7.16.4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
SPANS = {0: 1, 1: 8, 2: 8, 4: 4, 6: 2}
"""Chunks in a span, by the top three bits."""
ATOMS_OF_32 = 1
CONSTANT, CONSTANT_MASK = 1 << 46, 0x1FE1C000C000C000
"""Bits 15:14, 31:30, 48:46, 60:53; only bit 46 is set."""


def read_bits(
    word: int, rows: int, k: int, container_bits: int, element_bits: int, major: str, base_bytes: int = 0
) -> IntArray | str:
    """Return the bit address read for each element of one instruction, or why it is unknown.

    Args:
        word: The descriptor for the tile base 0.
        rows: Rows that the instruction reads.
        k: Elements along K.
        container_bits: Bits per element in shared memory, padding included.
        element_bits: Bits of an element.
        major: ``"K"`` or ``"MN"``.
        base_bytes: The tile base.

    Example:
        >>> (read_bits(0x4000404000010000, 64, 16, 16, 16, "K")[:3, 8] // 8).tolist()
        [16, 128, 304]
        >>> read_bits(0x4000004000010000, 64, 16, 16, 16, "K")
        'not a tcgen05 descriptor'
    """
    code = word >> 61
    if not 0 <= word < 2**64 or word & CONSTANT_MASK != CONSTANT or code not in SPANS or word >> 52 & 1:
        return "not a tcgen05 descriptor"
    start, leading, stride = (16 * (word >> shift & 0x3FFF) for shift in (0, 16, 32))
    span, chunk_elements = SPANS[code], 128 // container_bits
    mn, along = np.indices((rows, k), dtype=np.int64)
    near = (along if major == "K" else mn) % chunk_elements
    if major == "K":
        if code == ATOMS_OF_32 or (span > 1 and start % (16 * span) + k * container_bits // 8 > 16 * span):
            return "these reads are not documented"
        chunk = along // chunk_elements
        far = leading * chunk if span == 1 else 16 * chunk
        linear = 16 * span * (mn % 8) + stride * (mn // 8) + far
    else:
        chunk, group = mn // chunk_elements, 4 if code == ATOMS_OF_32 else 8
        if span == 1:
            linear = stride * chunk + 16 * (along % 8) + leading * (along // 8)
        else:
            linear = 16 * (chunk % span) + leading * (chunk // span)
            linear = linear + 16 * span * (along % group) + stride * (along // group)
    linear = linear + start + base_bytes
    if int(linear.max()) + 16 > 2**18:
        return "an address exceeds 18 bits"
    row = linear // 128 - (word >> 49 & 7)
    phase = 2 * (row % 4) if code == ATOMS_OF_32 else row % span
    number = linear // 16
    return np.asarray(128 * (number ^ phase) + near * element_bits, dtype=np.int64)


def scale_bytes(word: int) -> IntArray | str:
    """Return the byte that one copy of scale factors reads for each (row, group) of a block, or why it is unknown.

    Example:
        >>> scale_bytes(0x0000400800010000)[[1, 8, 32], 0].tolist()
        [16, 128, 4]
    """
    if not 0 <= word < 2**61 or word & CONSTANT_MASK != CONSTANT or word >> 52 & 1:
        return "not a tcgen05 descriptor without swizzle"
    start, stride = 16 * (word & 0x3FFF), 16 * (word >> 32 & 0x3FFF)
    quarter, eight, row, group = np.indices((4, 4, 8, 4), dtype=np.int64)
    found = start + stride * eight + 16 * row + 4 * quarter + group
    return np.asarray(found.reshape(128, 4), dtype=np.int64)
