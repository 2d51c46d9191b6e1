"""The copy engine as one measured chip behaves: tiled loads and stores through 128 descriptor bytes.

Main statements: fields are read from the bytes alone. A box of ``counts`` elements (``box[0]``, then the ceilings of
``box / element stride``) is walked with dimension 0 fastest; its rows stand in shared memory at a pitch of the swizzle
span (of the row itself without a swizzle) and the 16-byte chunk bits of every absolute shared address are XORed with
the bits above them. Element ``i`` of a box that starts at ``c`` has the coordinates ``c + element_stride * i``; where
one of them leaves ``[0, dim)`` a load fills and a store writes nothing, but rows of a store are whole 16-byte chunks.

Notation: everything innermost first. ``memory`` is global memory from the address 0 of the descriptor's base; shared
memory starts at a multiple of 1024 bytes.

Implementation notes: written for the tests from the tables of bit fields and from the recorded images; knows nothing of
the library. Elements are listed one by one, addresses are plain integers. Only what was measured is modelled: tiled
mode, no interleave, element types of whole bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

# element format code: name, bytes
_FORMATS = {
    0: ("u8", 1),
    1: ("u16", 2),
    2: ("u32", 4),
    3: ("s32", 4),
    4: ("u64", 8),
    5: ("s64", 8),
    6: ("f16", 2),
    7: ("f32", 4),
    8: ("f32_ftz", 4),
    9: ("f64", 8),
    10: ("bf16", 2),
}
DRIVER_DTYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")
SIZES = dict(_FORMATS.values()) | {"tf32": 4, "tf32_ftz": 4}
FLOATS = {"f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz"}
SWIZZLES = ("NONE", "32B", "64B", "128B")
_XOR_BITS = {"NONE": 0, "32B": 1, "64B": 2, "128B": 3}
MAX_RANK, MAX_BOX, MAX_STEP = 5, 256, 8
MAX_BOX_BYTES = 233_472
STRIDE_LIMIT = 1 << 40
DIM_LIMIT = 1 << 31
"""Extents that the engine executes; the driver encodes up to 2^32."""
ADDRESS_LIMIT = 1 << 57
SHARED_ALIGN = 128
CHUNK = 16


class FaultError(Exception):
    """The driver refuses the map, or the device faults; ``rule`` names why."""

    def __init__(self, rule: str, text: str = "") -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Map:
    """The fields of a tiled map, innermost first; ``strides[0]`` is the element's size."""

    dtype: str
    size: int
    base: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str
    nan: bool = False
    interleave: int = 0
    promotion: int = 0

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that one box moves along each dimension; the element stride of dimension 0 is ignored."""
        return (self.box[0], *(-(-b // e) for b, e in zip(self.box[1:], self.steps[1:], strict=True)))

    @property
    def pitch(self) -> int:
        """Shared bytes from one row to the next."""
        row = self.box[0] * self.size
        return row if self.swizzle == "NONE" else max(row, span(self.swizzle))

    @property
    def bytes_moved(self) -> int:
        """What one box counts on the barrier: every element, out of bounds too, gaps not."""
        return math.prod(self.counts) * self.size

    @property
    def footprint(self) -> int:
        """Shared bytes from the start of a box to the end of its last row."""
        return math.prod(self.counts[1:]) * self.pitch


def map_of(row: Sequence[int] | Ints) -> Map:
    """Return the map of a row of recorded parameters (tests/data/measured)."""
    values = [int(v) for v in row]
    rank, dtype = values[1], DRIVER_DTYPES[values[0]]
    dims, strides, box, steps = (tuple(values[at : at + rank]) for at in (3, 8, 12, 17))
    fields = SWIZZLES[values[23]], bool(values[25]), values[22], values[24]
    return Map(dtype, SIZES[dtype], values[2], dims, (SIZES[dtype], *strides[: rank - 1]), box, steps, *fields)


def span(swizzle: str) -> int:
    """Return the row length that a swizzle permutes, in bytes; 16 without one."""
    return 16 << _XOR_BITS[swizzle]


def period(swizzle: str) -> int:
    """Return after how many shared bytes a swizzle repeats."""
    return 16 if swizzle == "NONE" else 128 << _XOR_BITS[swizzle]


def xor(swizzle: str, addresses: Ints) -> Ints:
    """Return where the bytes at these shared addresses go: chunk bits 4.. take the XOR with bits 7.."""
    mask = (1 << _XOR_BITS[swizzle]) - 1
    return addresses ^ (((addresses >> 7) & mask) << 4)


def read_map(raw: bytes) -> Map:
    """Read the 128 bytes of a descriptor.

    Raises:
        FaultError: ENCODING, bits that no tiled map of the measured driver has.
    """
    if len(raw) != 128:
        raise FaultError("ENCODING", f"{len(raw)} bytes")
    word = [int.from_bytes(raw[4 * k : 4 * k + 4], "little") for k in range(32)]
    flags = word[2]
    if flags & 0xF or flags >> 19:
        raise FaultError("ENCODING", f"word 2 is {flags:#x}")
    rank = (flags >> 4 & 7) + 1
    code, interleave, swizzle = flags >> 7 & 15, flags >> 11 & 3, flags >> 13 & 3
    if rank > MAX_RANK or code not in _FORMATS or interleave > 2:
        raise FaultError("ENCODING", f"rank {rank}, format {code}, interleave {interleave}")
    dtype, size = _FORMATS[code]
    if flags >> 16 & 1:
        if dtype not in ("f32", "f32_ftz"):
            raise FaultError("ENCODING", f"tf32 rounding of {dtype}")
        dtype = dtype.replace("f32", "tf32")
    strides = [(word[3 + k] | (word[7] >> 4 * k & 15) << 32) << 4 for k in range(4)]
    dims = [word[8 + k] + 1 for k in range(5)]
    steps = [(word[13] >> 3 * k & 7) + 1 for k in range(5)]
    box = [(word[13] >> 24) + 1, *((word[14] >> 8 * k & 255) + 1 for k in range(4))]
    unused = [*strides[rank - 1 :], *(d - 1 for d in dims[rank:]), *(s - 1 for s in steps[rank:])]
    unused += [*(b - 1 for b in box[rank:]), word[13] >> 15 & 0x1FF, word[15], word[7] >> 16]
    if any(unused):
        raise FaultError("ENCODING", "bits of absent dimensions are set")
    answer = Map(
        dtype,
        size,
        word[0] | word[1] << 32,
        tuple(dims[:rank]),
        (size, *strides[: rank - 1]),
        tuple(box[:rank]),
        tuple(steps[:rank]),
        SWIZZLES[swizzle],
        bool(flags >> 15 & 1),
        interleave,
        flags >> 17 & 3,
    )
    upper = [int.from_bytes(raw[64 + 8 * k : 72 + 8 * k], "little") for k in range(8)]
    whole = math.prod(b // e for b, e in zip(answer.box, answer.steps, strict=True)) * size
    if upper != [whole, period(answer.swizzle), 0, 0, 0, 0, 0, 0]:
        raise FaultError("ENCODING", f"the upper half is {upper}")
    return answer


def write_map(tm: Map) -> bytes:
    """Return the 128 bytes that the measured driver writes for these fields."""
    code = next(c for c, (name, _) in _FORMATS.items() if name == tm.dtype.replace("tf32", "f32"))
    word = [0] * 32
    word[0], word[1] = tm.base & 0xFFFFFFFF, tm.base >> 32
    word[2] = (tm.rank - 1) << 4 | code << 7 | tm.interleave << 11 | SWIZZLES.index(tm.swizzle) << 13 | tm.nan << 15
    word[2] |= tm.dtype.startswith("tf32") << 16 | tm.promotion << 17
    for k, stride in enumerate(tm.strides[1:]):
        word[3 + k] = stride >> 4 & 0xFFFFFFFF
        word[7] |= (stride >> 36) << 4 * k
    for k in range(tm.rank):
        word[8 + k] = tm.dims[k] - 1
        word[13] |= (tm.steps[k] - 1) << 3 * k
        if k:
            word[14] |= (tm.box[k] - 1) << 8 * (k - 1)
    word[13] |= (tm.box[0] - 1) << 24
    word[16] = math.prod(b // e for b, e in zip(tm.box, tm.steps, strict=True)) * tm.size
    word[18] = period(tm.swizzle)
    return b"".join(w.to_bytes(4, "little") for w in word)


def refusals(tm: Map) -> list[str]:
    """Return the rules by which the measured driver refuses these fields, none where it accepts them."""
    broken = []
    unit = 32 if tm.interleave == 2 else 16
    row = tm.box[0] * tm.size
    whole = math.prod(b // max(1, e) for b, e in zip(tm.box, tm.steps, strict=True)) * tm.size
    tests = {
        "RANK": (3 if tm.interleave else 1) <= tm.rank <= MAX_RANK,
        "BASE_ALIGN": tm.base % unit == 0,  # rows of recorded parameters count bases from a buffer, some below it
        "DIM_RANGE": all(1 <= d <= 1 << 32 for d in tm.dims),
        "STRIDE_ALIGN": all(s % unit == 0 for s in tm.strides[1:]),
        "STRIDE_RANGE": all(0 <= s < STRIDE_LIMIT for s in tm.strides[1:]),
        "BOX_RANGE": all(1 <= b <= MAX_BOX for b in tm.box),
        "ELEM_STRIDE": all(1 <= e <= MAX_STEP for e in tm.steps),
        "BOX_INNER_16B": row % 16 == 0,
        "SWIZZLE_INNER": tm.interleave != 0 or tm.swizzle == "NONE" or row <= span(tm.swizzle),
        "OOB_NAN": not tm.nan or tm.dtype in FLOATS,
        "BOX_BYTES": whole <= MAX_BOX_BYTES,
    }
    broken += [rule for rule, holds in tests.items() if not holds]
    return broken


@dataclass(frozen=True, slots=True)
class Walk:
    """The elements of one box: index along each dimension, and shared byte before the XOR, in walking order."""

    index: Ints
    offsets: Ints


@lru_cache(maxsize=64)
def walk(tm: Map) -> Walk:
    """Return every element of a box, dimension 0 fastest."""
    counts = tm.counts
    index = np.stack([axis.reshape(-1) for axis in np.indices(counts[::-1])[::-1]]).astype(np.int64)
    rows = np.zeros(index.shape[1], dtype=np.int64)
    per = 1
    for axis, count in zip(index[1:], counts[1:], strict=True):
        rows += axis * per
        per *= count
    return Walk(index, rows * tm.pitch + index[0] * tm.size)


@dataclass(frozen=True, slots=True)
class Touch:
    """What one box touches, element by element: shared byte, global byte, and whether the engine calls it inside."""

    shared: Ints
    address: Ints
    inside: npt.NDArray[np.bool_]


def reach(tm: Map, coords: Sequence[int] | Ints, offset: int, *, storing: bool = False) -> Touch:
    """Return what a box touches that starts at ``coords``, with its shared memory at ``offset``.

    ``coords`` may be an array of starts, one per row: then ``address`` and ``inside`` have a row for each.

    Raises:
        FaultError: the map is refused, or the device faults on one of the starts.
    """
    broken = refusals(tm)
    if broken:
        raise FaultError(broken[0], "the driver refuses the map")
    if tm.interleave:
        raise FaultError("INTERLEAVE", "not modelled")
    if tm.base >= ADDRESS_LIMIT:
        raise FaultError("MEMORY", f"no address {tm.base:#x}")
    if max(tm.dims) > DIM_LIMIT:
        raise FaultError("DIM_EXECUTE", f"dims {tm.dims}")
    starts = np.asarray(coords, dtype=object)
    if starts.shape[-1] != tm.rank:
        raise FaultError("COORDS", f"{starts.shape[-1]} coordinates for rank {tm.rank}")
    if starts.size and (starts.min() < -(1 << 31) or starts.max() >= 1 << 31):
        raise FaultError("COORDS", "32 bits")
    starts = starts.astype(np.int64)
    if (starts[..., 0] * tm.size % 16).any():
        raise FaultError("BOX_ADDR", "the inner start coordinate is off 16 bytes")
    if storing and (starts < 0).any():
        raise FaultError("STORE", "a negative start coordinate")
    if offset < 0 or offset % SHARED_ALIGN:
        raise FaultError("SMEM_ALIGN", f"offset {offset}")
    walked = walk(tm)
    address = np.full((*starts.shape[:-1], walked.offsets.size), tm.base, dtype=np.int64)
    inside = np.ones(address.shape, dtype=np.bool_)
    for j in range(tm.rank):
        step = tm.steps[j] if j else 1
        coordinate = starts[..., j, None] + walked.index[j] * step
        inside &= (coordinate >= 0) & (coordinate < tm.dims[j])
        address += coordinate * tm.strides[j]
    return Touch(xor(tm.swizzle, walked.offsets + offset), address, inside)


def fill_bytes(tm: Map) -> Bytes:
    """Return one element out of bounds: zeros, or the half-word 0x7FF7 repeated."""
    return np.frombuffer((b"\xf7\x7f" if tm.nan else b"\0\0") * 4, dtype=np.uint8)[: tm.size]


def converted(dtype: str, values: Bytes) -> Bytes:
    """Return elements (last axis: bytes) as they arrive: tf32 is rounded to nearest, ties to even, 13 bits dropped."""
    if not dtype.startswith("tf32"):
        return values
    words = np.ascontiguousarray(values).view("<u4").astype(np.uint64)
    magnitude = words & 0x7FFFFFFF
    rounded = (words + 0xFFF + (words >> 13 & 1)) & 0xFFFFE000
    rounded = np.where(magnitude == 0x7F800000, words, np.where(magnitude > 0x7F800000, 0x7FFFE000, rounded))
    return rounded.astype("<u4").view(np.uint8).reshape(values.shape)


def load(tm: Map, coords: Sequence[int], memory: Bytes, shared: Bytes, offset: int = 0) -> int:
    """Load one box from ``memory`` into ``shared``, in place; return the bytes counted on the barrier.

    Raises:
        FaultError: as ``reach``; MEMORY or SHARED, a byte outside the arrays.
    """
    touch = reach(tm, coords, offset)
    within = np.arange(tm.size)
    values = np.tile(fill_bytes(tm), (touch.shared.size, 1))
    source = touch.address[touch.inside][:, None] + within
    if source.size and (source.min() < 0 or source.max() >= memory.size):
        raise FaultError("MEMORY", f"bytes {source.min()} to {source.max()} of {memory.size}")
    values[touch.inside] = converted(tm.dtype, memory[source])
    target = touch.shared[:, None] + within
    if target.max() >= shared.size:
        raise FaultError("SHARED", f"byte {target.max()} of {shared.size}")
    shared[target] = values
    return tm.bytes_moved


def store(tm: Map, coords: Sequence[int], memory: Bytes, shared: Bytes, offset: int = 0) -> None:
    """Store one box from ``shared`` into ``memory``, in place.

    A row is written in whole chunks: where ``dims[0]`` ends inside one, its remaining bytes are written too.

    Raises:
        FaultError: as ``reach``; MEMORY or SHARED, a byte outside the arrays; OVERLAP, differing elements share a byte.
    """
    touch = reach(tm, coords, offset, storing=True)
    written = touch.inside | chunk_tail(tm, coords, touch)
    within = np.arange(tm.size)
    source = touch.shared[written][:, None] + within
    if source.size and source.max() >= shared.size:
        raise FaultError("SHARED", f"byte {source.max()} of {shared.size}")
    target = touch.address[written][:, None] + within
    if target.size and (target.min() < 0 or target.max() >= memory.size):
        raise FaultError("MEMORY", f"bytes {target.min()} to {target.max()} of {memory.size}")
    memory[target] = shared[source]
    if not np.array_equal(memory[target], shared[source]):
        raise FaultError("OVERLAP", "the outcome depends on the order of the elements")


def chunk_tail(tm: Map, coords: Sequence[int] | Ints, touch: Touch) -> npt.NDArray[np.bool_]:
    """Return which elements out of bounds a store writes all the same: the rest of a chunk that ``dims[0]`` cuts."""
    starts = np.asarray(coords, dtype=np.int64)
    index = walk(tm).index
    inner = starts[..., 0, None] + index[0]
    end = -(-tm.dims[0] * tm.size // CHUNK) * CHUNK // tm.size
    tail = (inner >= tm.dims[0]) & (inner < end)
    for j in range(1, tm.rank):
        coordinate = starts[..., j, None] + index[j] * tm.steps[j]
        tail &= (coordinate >= 0) & (coordinate < tm.dims[j])
    # the chunk is only there where it begins inside
    return np.asarray(tail & (starts[..., 0, None] < tm.dims[0]) & ~touch.inside)
