"""What ``tcgen05`` reads through a descriptor, as the checker says it: the documented table, written out once more.

Main statements: with c bits to an element in shared memory, T = 128 / c elements to a chunk of 16 bytes, and W = 1, 2,
4, 8 chunks to the span of NONE, 32B, 64B, 128B, chunk (m, h) of a K-major operand and chunk (h, k) of an MN-major one
lie at

  - K-major, NONE:            16 (m mod 8) + S (m div 8) + L h
  - K-major, swizzled:        16 W (m mod 8) + S (m div 8) + 16 h
  - MN-major, NONE:           S h + 16 (k mod 8) + L (k div 8)
  - MN-major, swizzled:       16 (h mod W) + L (h div W) + 16 W (k mod 8) + S (k div 8)
  - MN-major, 32-byte atoms:  16 (h mod 8) + L (h div 8) + 128 (k mod 4) + S (k div 4)

from the start. The chunk number is then XORed with the row of 128 bytes, counted from the base offset: modulo W, or
twice that row modulo 4 under 32-byte atoms.

Implementation notes: shares no function with ``targets``, which the finder uses: formulas in place of digit patterns,
chunk numbers in place of address bits, fields cut out of the word in place of a word put together from fields.

References: PTX ISA 9.1 sections 9.7.16.3.3 and 9.7.16.4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
SPANS = {0: 1, 1: 8, 2: 8, 4: 4, 6: 2}
"""Chunks in a span, by the number in the top three bits."""
ATOMS_OF_32 = 1
CONSTANT, CONSTANT_MASK = 1 << 46, 0x1FE1C000C000C000
"""Bits 15:14, 31:30, 48:46, 60:53, of which bit 46 alone is set."""


def read_bits(
    word: int, rows: int, k: int, container_bits: int, element_bits: int, major: str, base_bytes: int = 0
) -> IntArray | str:
    """Return the bit address that is read for each element of one instruction, or why it is not known.

    Args:
        word: The descriptor, for the tile base 0.
        rows: Rows that the instruction reads.
        k: Elements along K.
        container_bits: Bits of an element's place in shared memory.
        element_bits: Bits of an element.
        major: ``"K"`` or ``"MN"``.
        base_bytes: Where the tile base is.

    Example:
        >>> (read_bits(0x4000404000010000, 64, 16, 16, 16, "K")[:3, 8] // 8).tolist()
        [16, 128, 304]
        >>> read_bits(0x4000004000010000, 64, 16, 16, 16, "K")
        'the word is no tcgen05 descriptor'
    """
    code = word >> 61
    if not 0 <= word < 2**64 or word & CONSTANT_MASK != CONSTANT or code not in SPANS or word >> 52 & 1:
        return "the word is no tcgen05 descriptor"
    start, leading, stride = (16 * (word >> shift & 0x3FFF) for shift in (0, 16, 32))
    span, chunk_elements = SPANS[code], 128 // container_bits
    mn, along = np.indices((rows, k), dtype=np.int64)
    near = (along if major == "K" else mn) % chunk_elements
    if major == "K":
        if code == ATOMS_OF_32 or (span > 1 and start % (16 * span) + k * container_bits // 8 > 16 * span):
            return "no document states these reads"
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
        return "it leaves the 18 bits of an address"
    row = linear // 128 - (word >> 49 & 7)
    phase = 2 * (row % 4) if code == ATOMS_OF_32 else row % span
    number = linear // 16
    return np.asarray(128 * (number ^ phase) + near * element_bits, dtype=np.int64)


def scale_bytes(word: int) -> IntArray | str:
    """Return the byte that one copy of scale factors takes for each (row, group) of a block, or why it is not known.

    Example:
        >>> scale_bytes(0x0000400800010000)[[1, 8, 32], 0].tolist()
        [16, 128, 4]
    """
    if not 0 <= word < 2**61 or word & CONSTANT_MASK != CONSTANT or word >> 52 & 1:
        return "the word is no tcgen05 descriptor without a swizzle"
    start, stride = 16 * (word & 0x3FFF), 16 * (word >> 32 & 0x3FFF)
    quarter, eight, row, group = np.indices((4, 4, 8, 4), dtype=np.int64)
    found = start + stride * eight + 16 * row + 4 * quarter + group
    return np.asarray(found.reshape(128, 4), dtype=np.int64)
