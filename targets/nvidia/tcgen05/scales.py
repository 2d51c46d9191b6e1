"""Layouts of the scale factors of block-scaled kinds: in shared memory for ``tcgen05.cp``, then in tensor memory.

Notation: a scale tensor has a row per row of A or column of B, and a group per 16 or 32 elements along K; a scale is
one byte. Four groups of 128 rows are a block of 512 bytes, the source of one ``tcgen05.cp.32x128b.warpx4``.

References: PTX ISA 9.1 sections 9.7.16.9.2 and 9.7.16.10.7; CUTLASS 4, block-scaled layouts; not run on a device.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.ground.check import Checker
from layoutalg.targets.nvidia.tcgen05.descriptor import ADDRESS_LIMIT_BYTES, MatrixDescriptor, broken

BLOCK_ROWS, BLOCK_GROUPS, BLOCK_BYTES = 128, 4, 512
SOURCE = "PTX ISA 9.1 section 9.7.16.10.7"
CHECK = Checker("LA848", "invalid tcgen05 scale factors")


def scale_layout(rows: int, groups: int, vector: int = 1, order: str = "K") -> CuteLayout:
    """Return the canonical layout of scale factors in shared memory: (row, k) to the byte of its scale.

    Mathematically: the block ((32,4),4):((16,4),1), repeated along K and along the rows; the ``vector`` elements along
    K that share a scale have stride 0.

    Args:
        rows: Rows of A or columns of B, a multiple of 128.
        groups: Scales of a row, a multiple of 4.
        vector: Elements along K per scale: 16 or 32, or 1 for a layout of the scales themselves.
        order: Whether blocks follow each other along K (``"K"``) or along the rows (``"MN"``).

    Example:
        >>> print(scale_layout(128, 4))
        ((32,4),4):((16,4),1)
        >>> print(scale_layout(256, 8, 32))
        ((32,4,2),(32,4,2)):((16,4,1024),(0,1,512))

    Source: CUTLASS 4, block-scaled layouts; PTX ISA 9.1 section 9.7.16.9.2.
    """
    blocks = [_blocks(rows, BLOCK_ROWS, "rows"), _blocks(groups, BLOCK_GROUPS, "groups")]
    if CHECK.integer(vector, "vector") not in (1, 16, 32):
        raise CHECK.malformed("vector", "must be 1, 16 or 32", vector)
    if not isinstance(order, str) or order not in ("K", "MN"):
        raise CHECK.malformed("order", "must be K or MN", order)
    steps = [BLOCK_BYTES * blocks[1], BLOCK_BYTES] if order == "K" else [BLOCK_BYTES, BLOCK_BYTES * blocks[0]]
    mn = [(32, 16), (4, 4)] + ([(blocks[0], steps[0])] if blocks[0] > 1 else [])
    k = ([(vector, 0)] if vector > 1 else []) + [(4, 1)] + ([(blocks[1], steps[1])] if blocks[1] > 1 else [])
    modes = [tuple(zip(*digits, strict=True)) for digits in (mn, k)]
    shape = tuple(extents if len(extents) > 1 else extents[0] for extents, _ in modes)
    return CuteLayout(shape, tuple(taken if len(taken) > 1 else taken[0] for _, taken in modes))


def scale_copy_bytes(descriptor: MatrixDescriptor) -> npt.NDArray[np.int64]:
    """Return the byte from which one ``tcgen05.cp.32x128b.warpx4`` fetches each scale of a block.

    Mathematically: row i = r + 32 q, group j: start + 16 (r mod 8) + S (r div 8) + 4 q + j: 32 rows of 16 bytes, placed
    like an unswizzled K-major operand.

    Args:
        descriptor: The source, without swizzle.

    Returns:
        int64[128, 4].

    Raises: MalformedError: LA848. TargetRuleError: LA845 (rules TCGEN05_NOT_DOCUMENTED, TCGEN05_ADDRESS).

    Example:
        >>> scale_copy_bytes(MatrixDescriptor(0, 16, 128))[[0, 1, 8, 32], 0].tolist()
        [0, 16, 128, 4]
    """
    given = CHECK.kind(descriptor, MatrixDescriptor, "descriptor")
    if given.swizzle != "NONE" or given.leading_mode != "relative" or given.stride_bytes == 0:
        what = "copies of scale factors with a swizzle, an absolute address or a stride of 0"
        raise broken("TCGEN05_NOT_DOCUMENTED", f"no available document states {what}", "LA845", SOURCE)
    row, group = np.arange(BLOCK_ROWS, dtype=np.int64)[:, None], np.arange(BLOCK_GROUPS, dtype=np.int64)[None, :]
    lane = row % 32
    found = given.start_address_bytes + 16 * (lane % 8) + given.stride_bytes * (lane // 8) + 4 * (row // 32) + group
    if int(found.max()) >= ADDRESS_LIMIT_BYTES:
        raise broken("TCGEN05_ADDRESS", f"it reaches byte {int(found.max())}; the limit is 2^18", "LA845", SOURCE)
    return found


def _blocks(value: object, block: int, name: str) -> int:
    many = CHECK.integer(value, name, block, 1 << 16)
    if many % block:
        raise CHECK.malformed(name, f"must be a multiple of {block}", many)
    return many // block
