"""What one im2col copy does, byte by byte: the pixels it visits and the bytes it writes.

Main statements: ``im2col_load`` and ``im2col_store`` reproduce every byte of the copies recorded on a device.

Mathematically: pixel 0 is visited at the start coordinate. From one pixel to the next the corner steps along W by the
element stride; past the box's end it returns to the box's start and steps along H, then D, then N (by the element
stride of N). The pixel loaded is at corner + offsets; outside the tensor it is filled.

References: PTX ISA 9.1, section 5.5.4; measured on NVIDIA H100 80GB HBM3, driver 580.159.04.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.targets.nvidia.im2col.checks import require_accepted, store_violations, use_violations
from layoutalg.targets.nvidia.im2col.fields import Im2colMap, require_im2col
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.convert import refused
from layoutalg.targets.nvidia.tensormap.execute import (
    gathered,
    put_chunks,
    put_rows,
    require_buffer,
    require_destination,
)
from layoutalg.targets.nvidia.tensormap.facts import SLICE_BYTES, element_bytes
from layoutalg.targets.nvidia.tensormap.fields import checked_ints, malformed

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
_COORD_LIMIT = 1 << 31


def row_bytes(tm: Im2colMap) -> int:
    """Return the bytes loaded per pixel: its channels, or one slice of an interleaved map.

    Example:
        >>> row_bytes(Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64))
        16
    """
    require_im2col(tm, "row_bytes")
    return SLICE_BYTES.get(tm.interleave) or tm.channels_per_pixel * element_bytes(tm.dtype)


def row_pitch_bytes(tm: Im2colMap) -> int:
    """Return the shared bytes from one pixel to the next: the swizzle span, or the row if not swizzled.

    Example:
        >>> row_pitch_bytes(Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64, swizzle="128B"))
        128
    """
    require_im2col(tm, "row_pitch_bytes")
    if tm.swizzle == "NONE" or tm.interleave != "NONE":
        return row_bytes(tm)
    return SWIZZLE_TABLE[tm.swizzle].span_bytes


def load_bytes(tm: Im2colMap) -> int:
    """Return the bytes that one load counts on its barrier: every pixel, filled or not, without gaps.

    Example:
        >>> load_bytes(Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64))
        1024
    """
    return row_bytes(tm) * tm.pixels_per_column


def pixel_places(tm: Im2colMap, coords: Sequence[int]) -> Ints:
    """Return the filter's corner at each pixel: int64[pixels, spatial modes + 1], W first, N last.

    Example:
        >>> tm = Im2colMap("f16", (8, 4, 3, 2), (16, 64, 192), (0, 0), (-1, -1), 8, 5)
        >>> pixel_places(tm, (0, 1, 0, 0)).tolist()
        [[1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0]]
    """
    require_im2col(tm, "pixel_places")
    coords = checked_ints("coords", coords, "LA850")
    if len(coords) != tm.rank or tm.rank < 3:
        because = f"expected {tm.rank} coordinates (at least 3), got {len(coords)}"
        raise malformed("LA850", "coords has the wrong length", because)
    if min(tm.element_strides) < 1 or tm.pixels_per_column < 1 or any(first > last for first, last in tm.box):
        raise malformed("LA850", "this map visits no pixels", "steps, pixels or the filter's box are empty")
    steps = tm.spatial(tm.element_strides)
    turn = np.arange(tm.pixels_per_column, dtype=np.int64)
    places = []
    for start, step, (first, last) in zip(tm.spatial(tuple(coords)), steps, tm.box, strict=True):
        before = (last - start) // step + 1  # positions before the first wrap
        whole = (last - first) // step + 1
        later = turn - before
        places.append(np.where(later < 0, start + turn * step, first + later % whole * step))
        turn = np.where(later < 0, 0, 1 + later // whole)
    return np.stack([*places, int(coords[-1]) + turn * tm.element_strides[-1]], axis=1)


def pixel_addresses(tm: Im2colMap, coords: Sequence[int], offsets: Sequence[int]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the byte address of each pixel's channel 0 (of its slice, if interleaved), and which pixels exist.

    Example:
        >>> tm = Im2colMap("f16", (8, 4, 2), (16, 64), (-1,), (0,), 8, 3)
        >>> [array.tolist() for array in pixel_addresses(tm, (0, -1, 0), (0,))]
        [[0, 0, 16], [False, True, True]]
    """
    places = pixel_places(tm, coords)
    added = checked_ints("offsets", offsets, "LA850")
    if len(added) != places.shape[1] - 1:
        raise malformed("LA850", "offsets has the wrong length", f"rank {tm.rank} needs {places.shape[1] - 1}")
    places[:, :-1] += np.asarray(added, dtype=np.int64)
    interleaved = tm.interleave != "NONE"
    dims, strides = list(tm.dims), [element_bytes(tm.dtype), *tm.strides_bytes]
    if interleaved:
        strides[0] = SLICE_BYTES[tm.interleave]
    fixed = tm.rank - 2 if interleaved else 0  # the mode of the channels
    modes = [mode for mode in range(tm.rank) if mode != fixed]
    extents = np.array([dims[mode] for mode in modes], dtype=np.int64)
    inside = np.asarray(((places >= 0) & (places < extents)).all(axis=1), np.bool_)
    address = tm.base_address + np.where(inside[:, None], places, 0) @ np.array([strides[m] for m in modes], np.int64)
    if interleaved:
        inside &= 0 <= coords[fixed] < dims[fixed]
        address += np.where(inside, int(coords[fixed]) * strides[fixed], 0)
    return address, inside


def im2col_load(
    tm: Im2colMap,
    coords: npt.ArrayLike,
    offsets: npt.ArrayLike,
    memory: Bytes,
    image: Bytes,
    smem_offset_bytes: int = 0,
) -> int:
    """Load one column from global into shared memory, in place, and return the transaction bytes.

    Args:
        tm: The map; ``base_address`` is a byte offset into ``memory``.
        coords: Start C, W, (H, (D,)) N of the filter's corner, elements; interleaved W, (H, (D,)) C/8, N.
        offsets: Offsets along W, (H, (D)).
        memory: Global memory, one-dimensional contiguous uint8.
        image: Shared memory, one-dimensional contiguous writable uint8; byte 0 has an address aligned to 1024.
        smem_offset_bytes: Where the column starts in ``image``, a multiple of 128.

    Example:
        >>> memory, image = np.arange(128, dtype=np.uint8), np.full(128, 0xEE, np.uint8)
        >>> im2col_load(Im2colMap("u8", (16, 4, 2), (16, 64), (-1,), (0,), 16, 3), (0, -1, 0), (0,), memory, image)
        48
        >>> image[[0, 16, 32, 48]].tolist()
        [0, 0, 16, 238]

    Laws: reproduces every recorded load byte for byte; agrees with a per-element reference.
    Source: measured on NVIDIA H100 80GB HBM3, driver 580.159.04.
    """
    require_im2col(tm, "im2col_load")
    require_accepted(tm, "im2col_load")
    starts, added = checked_ints("coords", coords, "LA850"), checked_ints("offsets", offsets, "LA850")
    require_use(tm, starts, added)
    require_buffer("memory", memory, writable=False)
    require_buffer("image", image, writable=True)
    count, pitch = tm.pixels_per_column, row_pitch_bytes(tm)
    offset = require_destination(smem_offset_bytes, count * pitch, image)
    address, inside = pixel_addresses(tm, starts, added)
    if tm.interleave != "NONE":
        rows = gathered(tm.dtype, tm.oob_fill, memory, address[:, None], inside[:, None], row_bytes(tm))
    else:
        size = element_bytes(tm.dtype)
        channels = starts[0] + np.arange(tm.channels_per_pixel, dtype=np.int64)
        within = inside[:, None] & ((channels >= 0) & (channels < tm.dims[0]))
        rows = gathered(tm.dtype, tm.oob_fill, memory, address[:, None] + channels * size, within, size)
    put_rows(rows, pitch, tm.swizzle, image, offset)
    return load_bytes(tm)


def im2col_store(tm: Im2colMap, coords: npt.ArrayLike, memory: Bytes, image: Bytes, smem_offset_bytes: int = 0) -> int:
    """Store one column from shared into global memory, in place, and return the bytes of the column.

    Mathematically: the reverse of a load without offsets: each pixel inside the tensor is written, in whole chunks of
    16 bytes if its channels end inside one; nothing outside is.

    Args:
        tm: The map; its box must lie inside the tensor.
        coords: As for ``im2col_load``, none negative.
        memory: Global memory, one-dimensional contiguous writable uint8.
        image: Shared memory, one-dimensional contiguous uint8; byte 0 has an address aligned to 1024.
        smem_offset_bytes: Where the column starts in ``image``, a multiple of 128.

    Example:
        >>> memory, image = np.zeros(128, np.uint8), np.arange(128, dtype=np.uint8)
        >>> im2col_store(Im2colMap("u8", (16, 4, 2), (16, 64), (1,), (0,), 16, 3), (0, 2, 0), memory, image)
        48
        >>> memory[[16, 32, 48, 64, 80]].tolist()
        [0, 0, 16, 0, 32]

    Laws: reproduces every recorded store byte for byte.
    Source: measured on NVIDIA H100 80GB HBM3, driver 580.159.04.
    """
    require_im2col(tm, "im2col_store")
    require_accepted(tm, "im2col_store")
    starts, none = checked_ints("coords", coords, "LA850"), (0,) * (tm.rank - 2)
    require_use(tm, starts, none, store=True)
    require_buffer("memory", memory, writable=True)
    require_buffer("image", image, writable=False)
    count, pitch, width = tm.pixels_per_column, row_pitch_bytes(tm), row_bytes(tm)
    offset = require_destination(smem_offset_bytes, count * pitch, image)
    address, inside = pixel_addresses(tm, starts, none)
    chunks = np.arange(0, width, 16, dtype=np.int64)
    kept = np.broadcast_to(inside[:, None], (count, chunks.size))
    if tm.interleave == "NONE":
        size = element_bytes(tm.dtype)
        kept = kept & (starts[0] * size + chunks < tm.dims[0] * size)
        address = address + starts[0] * size
    put_chunks(tm.swizzle, memory, address[:, None] + chunks, kept, image, offset, pitch)
    return width * count


def require_use(tm: Im2colMap, coords: Sequence[int], offsets: Sequence[int], *, store: bool = False) -> None:
    """Raise LA857 if a copy breaks a rule of use; on a device, a start outside the box is an illegal instruction."""
    found = [*use_violations(tm, coords, offsets), *(store_violations(tm, coords) if store else ())]
    if not all(-_COORD_LIMIT <= start < _COORD_LIMIT for start in coords):
        raise malformed("LA850", "a coordinate does not fit a signed 32-bit integer", f"coords = {tuple(coords)}")
    if found:
        what, because = f"an im2col {'store' if store else 'load'} breaks a rule", "; ".join(map(str, found))
        raise refused("LA857", what, because, found[0].rule, (repr(tm),))


def layout(tm: Im2colMap) -> CuteLayout | ComposedLayout:
    """Return where a load puts its column: (pixel, channel) to the byte offset from a base aligned to the swizzle.

    Args:
        tm: The map; the measured driver must accept it.

    Example:
        >>> print(layout(Im2colMap("f16", (8, 4, 3, 2), (16, 64, 192), (-1, -1), (0, 0), 8, 5)))
        (5,8):(16,2)

    Source: measured on NVIDIA H100 80GB HBM3, driver 580.159.04.
    """
    require_im2col(tm, "layout")
    require_accepted(tm, "layout")
    size = element_bytes(tm.dtype)
    inner = CuteLayout((tm.pixels_per_column, row_bytes(tm) // size), (row_pitch_bytes(tm), size))
    bits = len(SWIZZLE_TABLE[tm.swizzle].xor)  # 32B, 64B and 128B: 4 ^= 7, 5 ^= 8, 6 ^= 9
    return ComposedLayout(Swizzle(bits, 4, 3), 0, inner) if bits else inner
