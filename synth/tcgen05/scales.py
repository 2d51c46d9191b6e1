"""Find copies of scale factors to tensor memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.tcgen05 import ScalePlan, Tcgen05Tile, refuted
from layoutalg.synth.tcgen05.operand import unchecked, unknown
from layoutalg.targets.nvidia import tcgen05 as hardware

IntArray = npt.NDArray[np.int64]
ROWS, GROUPS = 128, 4
RULE = "TCGEN05_SCALE_LAYOUT"


def find_scales(wanted: IntArray) -> ScalePlan | Broken | Unknown:
    """Return the copies of scale factors to tensor memory, or the first scale that they would not copy.

    For each 128 x 4 block the start is the first scale's byte and the stride the distance from row 0 to row 8; no other
    descriptor is possible.

    Args:
        wanted: int64[row, group]: byte of each scale; a multiple of 128 rows and of 4 groups.

    Example:
        >>> table = np.array(hardware.scale_layout(128, 4).table()).reshape(128, 4, order="F")
        >>> print(find_scales(table))
        1 x tcgen05.cp.32x128b.warpx4, 4 columns each
          (0, 0): 0x0000400800010000
        >>> find_scales(table + 8).reason
        'the block at (0, 0) starts at byte 8, which is not 16-byte aligned'
    """
    tiles = []
    for row in range(0, wanted.shape[0], ROWS):
        for group in range(0, wanted.shape[1], GROUPS):
            block = wanted[row : row + ROWS, group : group + GROUPS]
            start, stride = int(block[0, 0]), int(block[8, 0] - block[0, 0])
            where = f"the block at ({row}, {group})"
            if start % 16:
                because = f"{where} starts at byte {start}, which is not 16-byte aligned"
                return Broken(RULE, because, {"mn": row, "k": group, "requested_byte": start})
            try:
                descriptor = hardware.MatrixDescriptor(start, 16, stride)
            except LayoutError:
                because = f"{where}: rows 0 and 8 are {stride} bytes apart, which the stride field cannot encode"
                return Broken(RULE, because, {"mn": row + 8, "k": group, "requested_byte": int(block[8, 0])})
            read = hardware.scale_copy_bytes(descriptor) if stride else None
            if read is None:
                return unknown("copying scale factors with a stride of 0")
            wrong = np.argwhere(read != block)
            if len(wrong):
                i, j = (int(part) for part in wrong[0])
                witness = {
                    "mn": row + i,
                    "k": group + j,
                    "requested_byte": int(block[i, j]),
                    "read_byte": int(read[i, j]),
                }
                return Broken(RULE, f"{where} is not ((32,4),4):((16,4),1) with eight rows per stride", dict(witness))
            tiles.append(Tcgen05Tile(row, group, descriptor.encode()))
    plan = ScalePlan(tuple(tiles))
    wrong_at = refuted(plan, wanted)
    return unchecked(wrong_at) if wrong_at else plan
