"""Find ``wgmma`` descriptors for a tile whose instructions' parts are anywhere in shared memory.

Every instruction has its own descriptor, so a tile is readable exactly if each instruction's part is, with one number
of rows, one major and one swizzle: ``layoutalg.synth.wgmma.plan`` decides that from the addresses. The tile's base is a
multiple of 1024 bytes, the period of all swizzles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.wgmma import InstructionTile
from layoutalg.synth.wgmma.plan import Tile, described
from layoutalg.targets.nvidia import wgmma as hardware

Table = npt.NDArray[np.int64]
ALIGN_BYTES = 1024


@dataclass(frozen=True, slots=True)
class PartsPlan(
    Record,
    Shown,
    code="LA808",
    schema="layoutalg/wgmma-parts/1",
    json="major rows k element_bits swizzle align_bytes tiles",
):
    """Descriptors of a tile, listed individually: their start addresses follow no regular steps.

    Args:
        major: ``"K"`` or ``"MN"``.
        rows: Rows that one instruction reads.
        k: Elements along K of one instruction.
        element_bits: Bits per element.
        swizzle: Name of the swizzle.
        tiles: One entry per instruction, rows slowest; add base/16 for a base that is a multiple of 1024.
    """

    major: str
    rows: int
    k: int
    element_bits: int
    swizzle: str
    tiles: tuple[InstructionTile, ...]

    @property
    def align_bytes(self) -> int:
        """Alignment of the tile base."""
        return ALIGN_BYTES

    def read(self) -> Table:
        """Return the byte address read for every element, for tile base 0; int64[mn, k]."""
        shape = max(tile.mn for tile in self.tiles) + self.rows, max(tile.k for tile in self.tiles) + self.k
        found = np.full(shape, -1, dtype=np.int64)
        for tile in self.tiles:
            found[tile.mn : tile.mn + self.rows, tile.k : tile.k + self.k] = hardware.operand_offsets(
                tile.descriptor, rows=self.rows, k=self.k, element_bits=self.element_bits, major=self.major
            )
        return found

    def __str__(self) -> str:
        many, shape = len(self.tiles), f"{self.rows} x {self.k}"
        told = f"{many} instructions of {shape}, {self.major}-major, {self.swizzle}, irregular start addresses"
        lines = [f"  ({tile.mn}, {tile.k})  {tile.encoded:#018x}" for tile in self.tiles[:8]]
        return "\n".join([told, *lines, *([f"  {many - 8} more"] if many > 8 else [])])


def parts(places: Table, rows: tuple[int, ...], element_bits: int, k: int) -> PartsPlan | None:
    """Return descriptors that read every instruction's part, if there are any.

    Args:
        places: Byte address of every element for tile base 0, int64[mn, k].
        rows: Allowed rows of an instruction.
        element_bits: 1, 8, 16 or 32.
        k: Elements along K of one instruction.

    Example:
        >>> part = 2 * (np.arange(64)[:, None] * 16 + np.arange(16))
        >>> swapped = np.concatenate([part + 4096, part], axis=1)
        >>> print(parts(swapped ^ (swapped >> 7) % 2 << 4, (64,), 16, 16))
        2 instructions of 64 x 16, K-major, 32B, irregular start addresses
          (0, 0)  0xc000001000010100
          (0, 16)  0xc000001000010000
        >>> parts(swapped, (64,), 16, 16) is None
        True
    """
    if places.ndim != 2 or places.shape[1] % k:
        return None
    if int(places.max()) >= hardware.ADDRESS_LIMIT_BYTES:
        return None
    found = described(
        Tile(places, "NONE", ALIGN_BYTES, k, element_bits), rows, hardware.MAJORS if element_bits == 16 else ("K",)
    )
    if found is None:
        return None
    many, major, swizzle, tiles = found
    return PartsPlan(major, many, k, element_bits, swizzle, tuple(tiles))
