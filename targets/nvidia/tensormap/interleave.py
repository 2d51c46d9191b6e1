"""Interleaved tiled maps: a tensor of slices of 16 or 32 bytes of channels, for layouts like N C/8 H W 8.

Mathematically: the unit is the slice: mode 0 counts slices that are 16 (32) bytes apart, mode i >= 1 steps by
``strides_bytes[i - 1]``. Along the next-to-last mode, that of the channel slices, a box has one slice whatever its
extent; along every other mode, including the first, ``ceil(box / element stride)``. In shared memory the slices are
consecutive, mode 0 fastest, without gaps; the swizzle XORs absolute addresses.

Implementation notes: these rules were measured on loads; documents do not give the counts.

References: measured on NVIDIA H100 80GB HBM3, driver 580.159.04; PTX ISA 9.1, section 5.5.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.targets.nvidia.tensormap.facts import SLICE_BYTES, loaded_counts, transaction_bytes, unit_bytes
from layoutalg.targets.nvidia.tensormap.fields import TensorMap, malformed
from layoutalg.targets.nvidia.tensormap.rows import gathered, put_chunks, put_rows, require_buffer, require_destination

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]


def slice_bytes(tm: TensorMap) -> int:
    """Return the bytes of a slice.

    Example:
        >>> slice_bytes(TensorMap("f16", (64, 8, 8), (1024, 32768), (8, 2, 2), interleave="32B"))
        32
    """
    unit = unit_bytes(tm)
    if tm.interleave not in SLICE_BYTES:
        raise malformed("LA302", "the map is not interleaved", f"interleave {tm.interleave}")
    return unit


def slice_counts(tm: TensorMap) -> tuple[int, ...]:
    """Return how many slices one tile has along each mode.

    Example:
        >>> slice_counts(TensorMap("f16", (64, 8, 8), (1024, 32768), (8, 64, 3), (2, 1, 1), interleave="16B"))
        (4, 1, 3)

    Source: measured on NVIDIA H100.
    """
    slice_bytes(tm)
    return loaded_counts(tm)


def interleaved_bytes(tm: TensorMap) -> int:
    """Return the bytes that one load writes and counts on its barrier.

    Example:
        >>> interleaved_bytes(TensorMap("f16", (64, 8, 8), (1024, 32768), (8, 64, 3), interleave="16B"))
        384

    Source: measured on NVIDIA H100.
    """
    slice_bytes(tm)
    return transaction_bytes(tm)


def interleaved_places(tm: TensorMap, coords: Sequence[int]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the byte address of each slice of a tile, in shared-memory order, and which are inside the tensor.

    Example:
        >>> tm = TensorMap("f16", (2, 8, 8), (1024, 32768), (8, 1, 1), interleave="16B")
        >>> [array.tolist()[:3] for array in interleaved_places(tm, (1, 0, 0))]
        [[16, 0, 0], [True, False, False]]
    """
    unit, counts = slice_bytes(tm), slice_counts(tm)
    index = np.indices(counts[::-1]).reshape(tm.rank, -1)[::-1].astype(np.int64)
    address = np.full(index.shape[1], tm.base_address, np.int64)
    inside = np.ones(index.shape[1], np.bool_)
    for mode, stride in enumerate((unit, *tm.strides_bytes)):
        place = int(coords[mode]) + index[mode] * tm.element_strides[mode]
        inside &= (place >= 0) & (place < tm.dims[mode])
        address += np.where(inside, place, 0) * stride
    return address, inside


def interleaved_load(tm: TensorMap, coords: Sequence[int], memory: Bytes, image: Bytes, smem_offset_bytes: int) -> int:
    """Load one interleaved tile in place; return the bytes it counts. ``tile_load`` checks map and coordinates."""
    require_buffer("memory", memory, writable=False)
    require_buffer("image", image, writable=True)
    total = interleaved_bytes(tm)
    offset = require_destination(smem_offset_bytes, total, image)
    address, inside = interleaved_places(tm, coords)
    rows = gathered(tm.dtype, tm.oob_fill, memory, address[:, None], inside[:, None], slice_bytes(tm))
    put_rows(rows, slice_bytes(tm), tm.swizzle, image, offset)
    return total


def interleaved_store(tm: TensorMap, coords: Sequence[int], memory: Bytes, image: Bytes, smem_offset_bytes: int) -> int:
    """Store one interleaved tile in place: the slices inside the tensor; return the bytes of the tile."""
    require_buffer("memory", memory, writable=True)
    require_buffer("image", image, writable=False)
    total, unit = interleaved_bytes(tm), slice_bytes(tm)
    offset = require_destination(smem_offset_bytes, total, image)
    address, inside = interleaved_places(tm, coords)
    to = address[:, None] + np.arange(0, unit, 16, dtype=np.int64)
    put_chunks(tm.swizzle, memory, to, np.broadcast_to(inside[:, None], to.shape), image, offset, unit)
    return total
