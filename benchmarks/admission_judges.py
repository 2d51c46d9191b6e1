"""Judges of answers about wgmma, ldmatrix, stmatrix, ld.shared, st.shared, mma and mfma: everything is tried.

Written from the documents' formulas, without the library's finders and tables.

- *wgmma*: the address of every element has one XOR of one swizzle and base offset, which is undone; a stride field is
  what one element then says it is, so that all values of all fields are decided. Every number of rows, both majors, all
  swizzles and, block by block, all base offsets are tried. An admission's words are decoded and walked.
- *whole tiles by rows*: every run of every line is looked at; an admission is run by a simulator, byte by byte.
- *registers of mma and mfma*: which words of the fragment each word of registers could be, by all lanes; then every
  choice of instructions is tried, with backtracking.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))

from judges import matrix_moves  # noqa: E402

IntArray = npt.NDArray[np.int64]
FIELD = 1 << 18
"""Addresses and strides in a matrix descriptor end there."""
WGMMA_BITS = {"f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "e4m3": 8, "e5m2": 8, "u8": 8, "s8": 8}
INTEGERS = ("u8", "s8")


# ---------------------------------------------------------------- wgmma


def wgmma_rows(consumer: str, dtype: str) -> list[int]:
    """Return the rows that one instruction may read."""
    if consumer.startswith("wgmma.A"):
        return [64]
    return [8, 16, 24, *range(32, 257, 16)] if dtype in INTEGERS else list(range(8, 257, 8))


def offsets(major: str, wide: int, rows: int, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return, by (row, k) of one instruction, the constant part and how often LBO and SBO are added."""
    m, k = np.arange(rows)[:, None], np.arange(32 // size)[None, :]
    zero = np.zeros((rows, 32 // size), dtype=np.int64)
    if major == "K":
        byte = k * size + zero
        span = 16 * wide
        return span * (m % 8) + byte % span, byte // span, m // 8 + zero
    if wide == 1:
        return 2 * (m % 8) + 16 * (k % 8) + zero, k // 8 + zero, m // 8 + zero
    return 2 * (m % (8 * wide)) + 16 * wide * (k % 8) + zero, m // (8 * wide) + zero, k // 8 + zero


def one_descriptor(block: IntArray, major: str, wide: int, base: int, size: int) -> bool:
    """Return whether some start, LBO and SBO make a descriptor read these byte addresses."""
    plain = block ^ ((block >> 7) - base) % wide << 4
    start = int(plain[0, 0])
    rest, leading, stride = offsets(major, wide, block.shape[0], size)
    left = plain - start - rest
    if start % 16 or not 0 <= start < FIELD:
        return False
    for times in (leading, stride):
        other = stride if times is leading else leading
        ones = np.argwhere((times == 1) & (other == 0))
        if len(ones):
            field = int(left[tuple(ones[0])])
            if field % 16 or not 0 <= field < FIELD:
                return False
            left = left - times * field
    return not left.any()


def can_read(table: IntArray, consumer: str, dtype: str) -> bool:
    """Return whether descriptors of one number of rows, one major and one swizzle read a tile."""
    size = WGMMA_BITS[dtype] // 8
    rows, columns = table.shape
    each = 32 // size
    if columns % each or int(table.max()) * size >= FIELD or int(table.min()) < 0:
        return False
    for many in wgmma_rows(consumer, dtype):
        if rows % many:
            continue
        blocks = [
            table[row : row + many, k : k + each] * size
            for row in range(0, rows, many)
            for k in range(0, columns, each)
        ]
        for major, wide in itertools.product(("K", "MN") if size == 2 else ("K",), (1, 2, 4, 8)):
            if all(any(one_descriptor(block, major, wide, base, size) for base in range(wide)) for block in blocks):
                return True
    return False


def walked(plan: Any, table: IntArray, size: int) -> bool:
    """Return whether the words of a plan, decoded here, read the tile."""
    seen = np.full(table.shape, -1, dtype=np.int64)
    wide_of = {0: 1, 3: 2, 2: 4, 1: 8}
    for tile in plan.tiles:
        word = int(tile.encoded)
        start, leading, stride = ((word >> low & 0x3FFF) << 4 for low in (0, 16, 32))
        wide = wide_of[word >> 62]
        rest, times, others = offsets(plan.major, wide, plan.rows, size)
        at = start + rest + times * leading + others * stride
        at = at ^ ((at >> 7) - (word >> 49 & 7)) % wide << 4
        mn, k = tile.mn, tile.k
        seen[mn : mn + plan.rows, k : k + 32 // size] = at
    return bool(np.array_equal(seen, table * size))


# ---------------------------------------------------------------- rows of shared memory


def moves_rows(instruction: str, table: IntArray, size: int) -> bool:
    """Return whether a tile is cut into rows of one instruction, and its stores write each byte once."""
    matrix = "matrix" in instruction
    wide = matrix_moves.row_bytes(instruction)
    run = wide // size
    if instruction.startswith("st") and len(np.unique(table)) != table.size:
        return False
    if matrix and (table.ndim < 2 or ("trans" in instruction and size != 2)):
        return False
    if not run:
        return False
    at_once = int(instruction.split(".x")[1][0]) if matrix else 32
    turned = [table, table.swapaxes(-1, -2)] if "trans" in instruction else [table]
    for held in turned:
        if held.shape[-1] % run or (matrix and held.shape[-2] % 8):
            continue
        count = held.size // run
        if (count // 8 if matrix else count) % at_once or (matrix and count % 8):
            continue
        rows = held.reshape(-1, run) * size
        if all(int(row[0]) % wide == 0 and all(int(at) == int(row[0]) + size * step for step, at in enumerate(row))
               for row in rows):  # fmt: skip
            return True
    return False


def simulated(plan: Any, instruction: str, table: IntArray, size: int) -> bool:
    """Return whether the simulator moves what the plan says, and the plan names every element once."""
    addresses = np.asarray(plan.addresses.table())
    lanes = 8 * int(instruction.split(".x")[1][0]) if "matrix" in instruction else 32
    shaped = addresses.reshape(lanes, -1, order="F")
    memory = np.arange(int(addresses.max()) + 64, dtype=np.int64)
    held = np.asarray(plan.registers.table()).reshape(-1, 32, shaped.shape[1], order="F")
    step = matrix_moves.register_bits(instruction) // 8 // held.shape[0]  # bytes of a slot
    flat = table.reshape(-1, order="F") * size
    for one in range(shaped.shape[1]):
        found = matrix_moves.loaded(instruction, memory, shaped[:, one].tolist())[:, ::step].T
        named = flat[held[:, :, one] % table.size] + held[:, :, one] // table.size * step
        if not np.array_equal(found, named):
            return False
    return sorted(held.reshape(-1).tolist()) == list(range(table.size * max(1, size // step)))


# ---------------------------------------------------------------- registers of matrix instructions


def fragment(consumer: str) -> tuple[IntArray, tuple[int, int], int]:
    """Return which (row, column) each lane holds in each register, [lane, register, 2], the tile, and words' elements.

    ``mma.m16n8kK`` with K = 256 bits, and four MFMA of 16-bit elements with results of 32 bits.
    """
    name, _, operand = consumer.rpartition(".")
    lane = np.arange(64 if name.startswith("mfma") else 32)[:, None]
    if name.startswith("mfma"):
        side, k = (int(part) for part in re.findall(r"_(\d+)x\d+x(\d+)_", name)[0])
        across, part = lane % side, lane // side
        if operand in "AB":
            each = k * side // 64
            value = np.arange(each)[None, :]
            at = np.stack(np.broadcast_arrays(across, each * part + value), axis=-1)
            return (at if operand == "A" else at[..., ::-1]), ((side, k) if operand == "A" else (k, side)), 2
        value = np.arange(side * side // 64)[None, :]
        row = value % 4 + 4 * part + value // 4 * 4 * (64 // side)
        return np.stack(np.broadcast_arrays(row, across), axis=-1), (side, side), 1
    q, g = lane % 4, lane // 4
    if operand in "CD":
        value = np.arange(4)[None, :]
        return np.stack(np.broadcast_arrays(g + 8 * (value // 2), 2 * q + value % 2), axis=-1), (16, 8), 1
    k = int(re.findall(r"k(\d+)", name)[0])
    each = k // 8
    value = np.arange((4 if operand == "A" else 2) * each)[None, :]
    word, inside = value // each, value % each
    if operand == "A":
        parts = np.broadcast_arrays(g + 8 * (word % 2), each * q + inside + 4 * each * (word // 2))
        return np.stack(parts, axis=-1), (16, k), each
    parts = np.broadcast_arrays(each * q + inside + 4 * each * word, g)
    return np.stack(parts, axis=-1), (k, 8), each


def tiles_fragment(held: IntArray, consumer: str) -> bool:
    """Return whether registers [warp, lane, register, 2] can be dealt out to instructions, every choice tried."""
    one, extents, word = fragment(consumer)
    if held.shape[1] != one.shape[0] or held.shape[2] % one.shape[1]:
        return False
    words = held.reshape(*held.shape[:2], -1, word, 2)
    slots = one.reshape(one.shape[0], -1, word, 2)
    options: list[dict[int, bytes]] = []
    for at in range(words.shape[2]):
        mine = {}
        for slot in range(slots.shape[1]):
            starts = words[:, :, at] - slots[None, :, slot]
            first = starts[:, :1, :1]
            if (starts == first).all() and not (first % np.array(extents)).any():
                mine[slot] = first.tobytes()
        options.append(mine)
    return _deal(frozenset(range(len(options))), options, slots.shape[1])


def _deal(left: frozenset[int], options: list[dict[int, bytes]], slots: int) -> bool:
    if not left:
        return True
    first = min(left)
    for slot, start in options[first].items():
        found = [
            [first] if other == slot else [at for at in left if at != first and options[at].get(other) == start]
            for other in range(slots)
        ]
        for chosen in itertools.product(*found):
            if len(set(chosen)) == slots and _deal(left - set(chosen), options, slots):
                return True
    return False
