"""Find a shared-address bit that is an XOR no hardware swizzle undoes.

A tile of 2^n elements whose offsets are affine over F2 has columns: the offset bits that each coordinate bit flips.
Before the hardware swizzle a box writes sums of digits, and a sum of digits that is affine over F2 flips no offset bit
from two coordinate bits. Lines of 128 bytes may be copied one by one in any order, so higher offset bits do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN
from layoutalg.targets.nvidia.tensormap import limits

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MixedBit:
    """An offset bit flipped by several coordinate bits, after undoing the swizzle that leaves the fewest of them."""

    bit: int  # the offset bit, in elements
    swizzle: str  # name
    sources: tuple[tuple[int, int], ...]  # ``(dimension, bit)`` of the coordinates that flip it

    def __str__(self) -> str:
        parts = " XOR ".join(f"bit {bit} of dimension {dim}" for dim, bit in self.sources)
        under = "" if self.swizzle == "NONE" else f"under the {self.swizzle} swizzle "
        return f"{under}offset bit {self.bit} is {parts}"


def mixed_bit(offsets: IntArray, element_bytes: int) -> MixedBit | None:
    """Return the lowest offset bit below 128 bytes that is an XOR under every hardware swizzle.

    None if the offsets are not affine over F2, or some swizzle undoes all XORs there.

    Args:
        offsets: Element offsets of the tile, indexed outermost dimension first.
        element_bytes: Bytes per element, a power of two.

    Example:
        >>> row, column = np.arange(8)[:, None], np.arange(8)[None, :]
        >>> print(mixed_bit(8 * row + (column ^ row % 2 * 4), 4))
        offset bit 2 is bit 0 of dimension 0 XOR bit 2 of dimension 1
        >>> mixed_bit(8 * row + column, 4) is None
        True
    """
    if any(extent & extent - 1 for extent in offsets.shape):
        return None
    names, columns = [], []
    origin = (0,) * offsets.ndim
    made = offsets[origin].reshape((1,) * offsets.ndim)
    for dim, extent in enumerate(offsets.shape):
        for bit in range(extent.bit_length() - 1):
            at = tuple(1 << bit if axis == dim else 0 for axis in range(offsets.ndim))
            names.append((dim, bit))
            columns.append(int(offsets[at] ^ offsets[origin]))
            made = np.concatenate((made, made ^ columns[-1]), axis=dim)
    if not np.array_equal(made, offsets):
        return None
    low = element_bytes.bit_length() - 1
    top = limits.SMEM_DESTINATION_ALIGN_BYTES.bit_length() - 1
    found: list[list[MixedBit]] = []
    for swizzle in ("NONE", *PLAIN[:0:-1]):
        undone = hardware.apply_swizzle(swizzle, np.array(columns, dtype=np.int64) << low)
        flips = [[name for name, column in zip(names, undone, strict=True) if column >> bit & 1] for bit in range(top)]
        found.append([MixedBit(bit - low, swizzle, tuple(held)) for bit, held in enumerate(flips) if len(held) > 1])
    least = min(found, key=len)
    return least[0] if least else None
