"""Rows of one copy: gather them from global memory, fill out of bounds, write them to shared memory.

Implementation notes: for the modes whose rows do not form one strided box: im2col and interleaved tiles.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.targets.nvidia.tensormap.convert import fill_bytes, load_convert, refused
from layoutalg.targets.nvidia.tensormap.facts import apply_swizzle
from layoutalg.targets.nvidia.tensormap.fields import checked_int, malformed
from layoutalg.targets.nvidia.tensormap.limits import SMEM_DESTINATION_ALIGN_BYTES

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]


def gathered(dtype: str, fill: str, memory: Bytes, starts: Ints, inside: npt.NDArray[np.bool_], size: int) -> Bytes:
    """Return uint8[rows, pieces * size]: per row and piece, the bytes from ``starts[row, piece]`` on, or fill.

    Args:
        dtype: Element type; it determines the conversion on load.
        fill: ``"ZERO"`` or ``"NAN"``.
        memory: Global memory.
        starts: Byte addresses, int64[rows, pieces].
        inside: Which pieces lie inside the tensor.
        size: Bytes of a piece, whole elements.
    """
    rows, pieces = starts.shape
    pattern = np.frombuffer(fill_bytes(dtype, fill), np.uint8)
    answer = np.tile(pattern, rows * pieces * size // pattern.size).reshape(rows, pieces, size)
    used = starts[inside]
    if used.size:
        low, high = int(used.min()), int(used.max()) + size
        if low < 0 or high > memory.size:
            because = f"the tile touches bytes {low}..{high - 1}, memory has 0..{memory.size - 1}"
            raise refused("LA322", "an element is outside memory", because, "MEMORY_RANGE")
        answer[inside] = load_convert(dtype, memory[used[:, None] + np.arange(size)])
    return answer.reshape(rows, pieces * size)


def put_rows(rows: Bytes, pitch: int, swizzle: str, image: Bytes, offset: int) -> None:
    """Write each row (a multiple of 16 bytes) at its pitch, every 16-byte chunk at its swizzled address."""
    count, width = rows.shape
    at = offset + pitch * np.arange(count, dtype=np.int64)[:, None] + np.arange(0, width, 16, dtype=np.int64)
    chunks = apply_swizzle(swizzle, at) >> 4
    image[: image.size // 16 * 16].reshape(-1, 16)[chunks.reshape(-1)] = rows.reshape(-1, 16)


def put_chunks(
    swizzle: str, memory: Bytes, to: Ints, kept: npt.NDArray[np.bool_], image: Bytes, offset: int, pitch: int
) -> None:
    """Write the kept 16-byte chunks of shared-memory rows to global addresses, int64[rows, chunks]."""
    at = offset + pitch * np.arange(to.shape[0], dtype=np.int64)[:, None] + 16 * np.arange(to.shape[1], dtype=np.int64)
    places = to[kept]
    if places.size:
        low, high = int(places.min()), int(places.max()) + 16
        if low < 0 or high > memory.size:
            because = f"the tile touches bytes {low}..{high - 1}, memory has 0..{memory.size - 1}"
            raise refused("LA322", "an element is outside memory", because, "MEMORY_RANGE")
        each = np.arange(16)
        memory[places[:, None] + each] = image[apply_swizzle(swizzle, at)[kept][:, None] + each]


def require_buffer(name: str, buffer: Any, *, writable: bool) -> None:
    """Raise LA327 unless the buffer is a one-dimensional contiguous uint8 array, writable if required."""
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        kind = f"{buffer.dtype}, shape {buffer.shape}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
        raise malformed("LA327", f"{name} is not a one-dimensional uint8 array", f"got {kind}")
    if not buffer.flags.c_contiguous or (writable and not buffer.flags.writeable):
        raise malformed("LA327", f"{name} is not contiguous or is read-only", f"its stride is {buffer.strides[0]}")


def require_destination(offset: int, footprint: int, image: Bytes) -> int:
    """Check a tile's offset: a multiple of 128 at which the footprint fits the image."""
    place = checked_int("smem_offset_bytes", offset, "LA327")
    if place < 0 or place % SMEM_DESTINATION_ALIGN_BYTES:
        because = f"smem_offset_bytes = {place} is not a multiple of {SMEM_DESTINATION_ALIGN_BYTES} at or above 0"
        raise refused("LA324", "the tile's shared address is not aligned", because, "SMEM_ALIGN")
    if place + footprint > image.size:
        because = f"the tile occupies bytes {place}..{place + footprint - 1}, the image has 0..{image.size - 1}"
        raise refused("LA323", "the tile does not fit the image", because, "SMEM_RANGE")
    return place
