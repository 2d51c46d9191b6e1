"""What one tile copy does, byte by byte: a model of the engine on numpy arrays.

Main statements: ``tile_load`` reproduces every byte of 400 loads recorded on an H200, gaps included.

Notation: ``image`` is shared memory starting at a multiple of 1024 bytes; ``memory`` is global memory from
address 0.

The unit of an interleaved map is the slice of 16 or 32 bytes of channels (layouts like N C/8 H W 8): mode 0 counts
slices that are as far apart as they are long, mode i >= 1 steps by ``strides_bytes[i - 1]``. In shared memory the
slices are consecutive, mode 0 fastest, without gaps. ``loaded_counts`` says how many a box has; documents do not.

Implementation notes: the elements inside the tensor form one sub-box, so a copy is one strided numpy assignment plus a
permutation of 16-byte chunks. Addresses are compared as Python integers before any array is touched.

References: PTX ISA 9.1 sections 5.5.3 to 5.5.7; measurements on NVIDIA H200, driver 580.159.04 (CUDA 13.0);
interleaved maps on NVIDIA H100 80GB HBM3, same driver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.byte_runs import merged_runs
from layoutalg.targets.nvidia.tensormap.checks import require_accepted
from layoutalg.targets.nvidia.tensormap.convert import fill_bytes, load_convert, refused, require_storable
from layoutalg.targets.nvidia.tensormap.facts import (
    apply_swizzle,
    element_bytes,
    loaded_counts,
    require_map,
    row_pitch_bytes,
    transaction_bytes,
    unit_bytes,
)
from layoutalg.targets.nvidia.tensormap.fields import TensorMap, checked_int, checked_ints, malformed
from layoutalg.targets.nvidia.tensormap.limits import (
    COORD_LIMIT,
    MAX_DIM,
    SMEM_DESTINATION_ALIGN_BYTES,
    STORE_CHUNK_BYTES,
)

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Window:
    """A tile at a start coordinate: its extents, and its sub-box inside the tensor.

    ``counts`` are elements per mode, outermost first; ``inside`` slices that tile; ``first`` is the byte address of its
    first element; ``shape`` and ``strides`` walk it in bytes. All four are meaningless if ``shape`` has a zero.
    """

    counts: tuple[int, ...]
    inside: tuple[slice, ...]
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        return self.counts[-1]

    @property
    def rows(self) -> int:
        return math.prod(self.counts[:-1])

    @property
    def empty(self) -> bool:
        return 0 in self.shape

    @property
    def complete(self) -> bool:
        return self.shape == self.counts


def tile_load(tm: TensorMap, coords: npt.ArrayLike, memory: Bytes, image: Bytes, smem_offset_bytes: int = 0) -> int:
    """Load one tile from global into shared memory, in place, and return the transaction bytes.

    Mathematically: row r (modes 1.. with mode 1 fastest) of the tile starts at shared byte
    ``smem_offset_bytes + r * pitch``, pitch being the swizzle span or, without swizzle, the row itself; each byte
    address is then swizzled as an absolute address. Elements outside the tensor are filled, gaps are left untouched.

    Measured: swizzles NONE, 32B, 64B, 128B; fills; element strides; negative coordinates; tf32 rounding (nearest, ties
    to even, 13 bits dropped; fill is not rounded); flush-to-zero types, which flush nothing; NaN fill, half-word
    0x7FF7 whatever the type; shared destinations aligned to 128 bytes, where absolute address bits decide; interleaved
    tiles, whose element is a slice of 16 or 32 bytes (``interleaved_load``).

    Args:
        tm: The map; ``base_address`` is a byte offset into ``memory``.
        coords: Start coordinate in elements, innermost first, one signed 32-bit integer per mode.
        memory: Global memory, one-dimensional contiguous uint8.
        image: Shared memory, one-dimensional contiguous writable uint8; byte 0 has an address aligned to 1024.
        smem_offset_bytes: Where the tile starts in ``image``, bytes, a multiple of 128.

    Returns:
        Bytes completed on the barrier: the whole tile, elements out of bounds included, gaps not.

    Example:
        >>> memory, image = np.arange(64, dtype=np.uint8), np.full(128, 0xEE, np.uint8)
        >>> tile_load(TensorMap("u8", (16, 4), (16,), (16, 2)), (0, 3), memory, image)
        32
        >>> image[[0, 15, 16, 31, 32]].tolist()
        [48, 63, 0, 0, 238]

    Laws: agrees with a per-element reference; reproduces 400 recorded loads byte for byte.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    if isinstance(tm, TensorMap) and tm.interleave != "NONE":
        require_accepted(tm, "tile_load", "LA320")
        _require_executable(tm)
        return interleaved_load(tm, _checked_coords(tm, coords), memory, image, smem_offset_bytes)
    window = _window(tm, coords, memory, image, smem_offset_bytes, "tile_load")
    tile = _filled(tm, window)
    if not window.empty:
        tile[window.inside] = load_convert(tm.dtype, _global_view(window, memory))
    rows = tile.reshape(window.rows, window.row_bytes)
    put_rows(rows, row_pitch_bytes(tm), tm.swizzle, image, smem_offset_bytes)
    return rows.size


def tile_store(tm: TensorMap, coords: npt.ArrayLike, memory: Bytes, image: Bytes, smem_offset_bytes: int = 0) -> int:
    """Store one tile from shared into global memory, in place, and return the bytes of the tile.

    Mathematically: the mirror image of ``tile_load``: the same byte of the image goes to the same element, bits
    unchanged for every type, and nothing outside the tensor is written, except that rows are written in whole
    16-byte chunks: where ``dims[0]`` ends inside a chunk, the rest of that chunk is written from the image too.

    Measured: swizzles NONE, 32B, 64B, 128B; element strides; upper edges; chunks; sources aligned to 128 bytes; slices
    of interleaved tiles. Refused as unknown: NaN and infinities of the tf32 and flush-to-zero types, overlapping
    elements.

    Args:
        tm: The map; ``base_address`` is a byte offset into ``memory``.
        coords: Start coordinate in elements, innermost first, each 0..2^31-1.
        memory: Global memory, one-dimensional contiguous writable uint8.
        image: Shared memory, one-dimensional contiguous uint8; byte 0 has an address aligned to 1024.
        smem_offset_bytes: Where the tile starts in ``image``, bytes, a multiple of 128.

    Returns:
        Bytes of the whole tile, elements out of bounds included.

    Example:
        >>> memory, image = np.zeros(64, np.uint8), np.arange(128, dtype=np.uint8)
        >>> tile_store(TensorMap("u8", (16, 4), (16,), (16, 2)), (0, 3), memory, image)
        32
        >>> memory[[47, 48, 63]].tolist()
        [0, 0, 15]

    Laws: storing what ``tile_load`` loaded leaves memory unchanged where rows end on chunks.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0); PTX ISA 9.1 section 9.7.9.27.
    """
    if isinstance(tm, TensorMap) and tm.interleave != "NONE":
        require_accepted(tm, "tile_store", "LA320")
        _require_executable(tm)
        starts = _checked_coords(tm, coords)
        _require_above(starts)
        return interleaved_store(tm, starts, memory, image, smem_offset_bytes)
    window = _window(tm, coords, memory, image, smem_offset_bytes, "tile_store")
    size = window.rows * window.row_bytes
    if not window.empty:
        at = _chunk_places(window.rows, window.row_bytes, row_pitch_bytes(tm), tm.swizzle, smem_offset_bytes) >> 4
        rows = image[: image.size // 16 * 16].reshape(-1, 16)[at.reshape(-1)]
        values = np.ascontiguousarray(rows.reshape(window.counts)[window.inside])
        require_storable(tm.dtype, values)
        if _overlapping(window):
            _require_consistent(window, values, memory)
        _global_view(window, memory)[...] = values
    return size


def stored_runs(tm: TensorMap, coords: npt.ArrayLike) -> tuple[tuple[int, int], ...]:
    """Return the bytes of global memory that ``tile_store`` writes, as (address, length), ascending and apart.

    Mathematically: the box clipped at the tensor's edges; a row that ends inside a chunk of 16 bytes is written to the
    end of that chunk.

    Example:
        >>> stored_runs(TensorMap("u8", (24, 4), (32,), (32, 3)), (0, 2))
        ((64, 64),)

    Laws: the bytes that change when ``tile_store`` stores their complements.
    Source: as for ``tile_store``.
    """
    require_map(tm, "stored_runs")
    require_accepted(tm, "stored_runs", "LA320")
    starts = _checked_coords(tm, coords)
    _require_executable(tm)
    _require_above(starts)
    if tm.interleave != "NONE":
        address, inside = interleaved_places(tm, starts)
        return merged_runs(address[inside], unit_bytes(tm))
    element = element_bytes(tm.dtype)
    _require_aligned(starts, element)
    window = _geometry(tm, starts, element, STORE_CHUNK_BYTES)
    return () if window.empty else merged_runs(_row_starts(window) + window.first, window.shape[-1])


def _window(
    tm: TensorMap, coords: npt.ArrayLike, memory: Bytes, image: Bytes, smem_offset_bytes: int, call: str
) -> _Window:
    """Check everything about one copy and return its geometry."""
    require_map(tm, call)
    require_accepted(tm, call, "LA320")
    starts = _checked_coords(tm, coords)
    _require_executable(tm)
    load = call == "tile_load"
    require_buffer("memory", memory, writable=not load)
    require_buffer("image", image, writable=load)
    element = element_bytes(tm.dtype)
    _require_aligned(starts, element)
    if not load:
        _require_above(starts)
    window = _geometry(tm, starts, element, 1 if load else STORE_CHUNK_BYTES)
    _require_memory(tm, window, memory)
    require_destination(smem_offset_bytes, window.rows * row_pitch_bytes(tm), image, (repr(tm),))
    return window


def _require_aligned(starts: tuple[int, ...], element: int) -> None:
    if starts[0] * element % 16:
        because = (
            f"coords[0] = {starts[0]} elements of {element} bytes is {starts[0] * element} bytes, "
            "not a multiple of 16; the device raises an illegal instruction"
        )
        raise refused("LA321", "the inner start coordinate is not aligned", because, "BOX_ADDR")


def _require_above(starts: tuple[int, ...]) -> None:
    if min(starts) < 0:
        because = f"coords = {starts}; the device raises an illegal instruction"
        raise refused("LA328", "a store starts at a negative coordinate", because, "STORE")


def _require_executable(tm: TensorMap) -> None:
    if max(tm.dims) > MAX_DIM:
        because = f"dims = {tm.dims}, the engine allows extents up to {MAX_DIM}; a load raises an illegal instruction"
        raise refused("LA331", "an extent is too large for the engine", because, "DIM_EXECUTE")


def _checked_coords(tm: TensorMap, coords: npt.ArrayLike) -> tuple[int, ...]:
    starts = checked_ints("coords", coords, "LA326")
    if len(starts) != tm.rank:
        raise malformed("LA326", "coords has the wrong length", f"the map has rank {tm.rank}, coords = {starts}")
    for mode, start in enumerate(starts):
        if not -COORD_LIMIT <= start < COORD_LIMIT:
            raise malformed("LA326", "a coordinate does not fit a signed 32-bit integer", f"coords[{mode}] = {start}")
    return starts


def _geometry(tm: TensorMap, starts: tuple[int, ...], element: int, chunk_bytes: int) -> _Window:
    """Return the window; rows inside the tensor end at the next multiple of ``chunk_bytes``."""
    counts, inside, shape, strides = [], [], [], []
    first = tm.base_address
    for mode, count in enumerate(loaded_counts(tm)):
        start, extent = starts[mode], tm.dims[mode]
        step = 1 if mode == 0 else tm.element_strides[mode]
        stride = element if mode == 0 else tm.strides_bytes[mode - 1]
        low = max(0, -(start // step))
        high = max(low, min(count, -((start - extent) // step)))
        first += (start + low * step) * stride
        if mode == 0:  # counted in bytes from here on
            count, low, high = count * element, low * element, high * element
            high = low if high == low else -(-high // chunk_bytes) * chunk_bytes
        counts.append(count)
        inside.append(slice(low, high))
        shape.append(high - low)
        strides.append(1 if mode == 0 else step * stride)
    return _Window(tuple(counts[::-1]), tuple(inside[::-1]), first, tuple(shape[::-1]), tuple(strides[::-1]))


def _require_memory(tm: TensorMap, window: _Window, memory: Bytes) -> None:
    if not window.empty:
        last = window.first + sum((n - 1) * s for n, s in zip(window.shape, window.strides, strict=True))
        require_memory(window.first, last + 1, memory, (repr(tm),))


def _global_view(window: _Window, memory: Bytes) -> Bytes:
    """Return the elements inside the tensor as a strided view; the bounds were checked."""
    return np.ndarray(window.shape, np.uint8, buffer=memory, offset=window.first, strides=window.strides)


def _filled(tm: TensorMap, window: _Window) -> Bytes:
    if window.complete:
        return np.empty(window.counts, np.uint8)
    fill = np.frombuffer(fill_bytes(tm.dtype, tm.oob_fill), np.uint8)
    return np.tile(fill, math.prod(window.counts) // fill.size).reshape(window.counts)


def _overlapping(window: _Window) -> bool:
    """Return whether two rows inside the tensor share a byte: exact, by sorting the row addresses."""
    return bool((np.diff(np.sort(_row_starts(window))) < window.shape[-1]).any())


def _row_starts(window: _Window) -> Ints:
    """Return where the rows inside the tensor start, relative to the first."""
    starts = np.zeros(1, np.int64)
    for count, stride in zip(window.shape[:-1], window.strides[:-1], strict=True):
        starts = (starts[:, None] + stride * np.arange(count, dtype=np.int64)).reshape(-1)
    return starts


def _require_consistent(window: _Window, values: Bytes, memory: Bytes) -> None:
    trial = memory.copy()
    view = _global_view(window, trial)
    view[...] = values
    if not np.array_equal(view, values):
        at = tuple(int(i) for i in np.argwhere(view != values)[0])[::-1]
        because = f"element bytes at {at} of the tile (innermost first) are overwritten by another element"
        raise refused("LA329", "two elements of a store share bytes and differ", because, "STORE_OVERLAP")


def interleaved_places(tm: TensorMap, coords: Sequence[int]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the byte address of each slice of a tile, in shared-memory order, and which are inside the tensor.

    Example:
        >>> tm = TensorMap("f16", (2, 8, 8), (1024, 32768), (8, 1, 1), interleave="16B")
        >>> [array.tolist()[:3] for array in interleaved_places(tm, (1, 0, 0))]
        [[16, 0, 0], [True, False, False]]
    """
    unit, counts = unit_bytes(tm), loaded_counts(tm)
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
    total = transaction_bytes(tm)
    offset = require_destination(smem_offset_bytes, total, image)
    address, inside = interleaved_places(tm, coords)
    rows = gathered(tm.dtype, tm.oob_fill, memory, address[:, None], inside[:, None], unit_bytes(tm))
    put_rows(rows, unit_bytes(tm), tm.swizzle, image, offset)
    return total


def interleaved_store(tm: TensorMap, coords: Sequence[int], memory: Bytes, image: Bytes, smem_offset_bytes: int) -> int:
    """Store one interleaved tile in place: the slices inside the tensor; return the bytes of the tile."""
    require_buffer("memory", memory, writable=True)
    require_buffer("image", image, writable=False)
    total, unit = transaction_bytes(tm), unit_bytes(tm)
    offset = require_destination(smem_offset_bytes, total, image)
    address, inside = interleaved_places(tm, coords)
    to = address[:, None] + np.arange(0, unit, 16, dtype=np.int64)
    put_chunks(tm.swizzle, memory, to, np.broadcast_to(inside[:, None], to.shape), image, offset, unit)
    return total


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
        require_memory(int(used.min()), int(used.max()) + size, memory)
        answer[inside] = load_convert(dtype, memory[used[:, None] + np.arange(size)])
    return answer.reshape(rows, pieces * size)


def _chunk_places(rows: int, row_bytes: int, pitch: int, swizzle: str, offset: int) -> Ints:
    """Return the shared byte address of each 16-byte chunk of each row."""
    starts = offset + pitch * np.arange(rows, dtype=np.int64)[:, None]
    return apply_swizzle(swizzle, starts + np.arange(0, row_bytes, 16, dtype=np.int64))


def put_rows(rows: Bytes, pitch: int, swizzle: str, image: Bytes, offset: int) -> None:
    """Write each row (a multiple of 16 bytes) at its pitch, every 16-byte chunk at its swizzled address."""
    count, width = rows.shape
    if swizzle == "NONE" and pitch == width:
        image[offset : offset + rows.size] = rows.reshape(-1)
        return
    chunks = _chunk_places(count, width, pitch, swizzle, offset) >> 4
    image[: image.size // 16 * 16].reshape(-1, 16)[chunks.reshape(-1)] = rows.reshape(-1, 16)


def put_chunks(
    swizzle: str, memory: Bytes, to: Ints, kept: npt.NDArray[np.bool_], image: Bytes, offset: int, pitch: int
) -> None:
    """Write the kept 16-byte chunks of shared-memory rows to global addresses, int64[rows, chunks]."""
    places = to[kept]
    if places.size:
        require_memory(int(places.min()), int(places.max()) + 16, memory)
        each, at = np.arange(16), _chunk_places(to.shape[0], 16 * to.shape[1], pitch, swizzle, offset)
        memory[places[:, None] + each] = image[at[kept][:, None] + each]


def require_buffer(name: str, buffer: Any, *, writable: bool) -> None:
    """Raise LA327 unless the buffer is a one-dimensional contiguous uint8 array, writable if required."""
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        kind = f"{buffer.dtype}, shape {buffer.shape}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
        raise malformed("LA327", f"{name} is not a one-dimensional uint8 array", f"got {kind}")
    if not buffer.flags.c_contiguous:
        raise malformed("LA327", f"{name} is not contiguous", f"its stride is {buffer.strides[0]} bytes")
    if writable and not buffer.flags.writeable:
        raise malformed("LA327", f"{name} is read-only", "the copy writes it in place")


def require_memory(low: int, end: int, memory: Bytes, where: tuple[str, ...] = ()) -> None:
    """Raise LA322 unless bytes low..end - 1 are in global memory."""
    if low < 0 or end > memory.size:
        because = f"the tile touches bytes {low}..{end - 1}, memory has 0..{memory.size - 1}"
        raise refused("LA322", "an element is outside memory", because, "MEMORY_RANGE", where)


def require_destination(offset: int, footprint: int, image: Bytes, where: tuple[str, ...] = ()) -> int:
    """Check a tile's offset: a multiple of 128 at which the footprint fits the image."""
    place = checked_int("smem_offset_bytes", offset, "LA327")
    if place < 0 or place % SMEM_DESTINATION_ALIGN_BYTES:
        because = f"smem_offset_bytes = {place} is not a multiple of {SMEM_DESTINATION_ALIGN_BYTES} at or above 0"
        raise refused("LA324", "the tile's shared address is not aligned", because, "SMEM_ALIGN")
    if place + footprint > image.size:
        because = f"the tile occupies bytes {place}..{place + footprint - 1}, the image has 0..{image.size - 1}"
        raise refused("LA323", "the tile does not fit the image", because, "SMEM_RANGE", where)
    return place
