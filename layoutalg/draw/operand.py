"""Draw operands read through descriptors: the part that each instruction reads, and its place in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.draw.memory import LINES, Unit, draw_memory
from layoutalg.proofs.tcgen05 import Tcgen05Plan
from layoutalg.proofs.wgmma import OperandPlan, requested_addresses
from layoutalg.synth.wgmma.parts import PartsPlan
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

WIDE, TALL = 300.0, 240.0
CHUNK = CHUNK_BYTES
OPERANDS = (OperandPlan, PartsPlan, Tcgen05Plan)


@dataclass(frozen=True, slots=True)
class Reads:
    """What the descriptors of an operand read.

    Args:
        head: The operand in words.
        rows: Rows per instruction.
        k: Elements along K per instruction.
        bits: Bit address of every element, [mn, k].
        words: (first row, first K, descriptor) of each instruction.
        base: What to add to the descriptors for the tile's base.
    """

    head: str
    rows: int
    k: int
    bits: npt.NDArray[np.int64]
    words: tuple[tuple[int, int, int], ...]
    base: str


def reads_of(plan: Any) -> Reads | None:
    """Return what the descriptors of a plan read, or None if unknown."""
    words = tuple((tile.mn, tile.k, tile.encoded) for tile in plan.tiles)
    if isinstance(plan, Tcgen05Plan):
        table = plan.table()
        head = f"{plan.operand} of tcgen05.mma.kind::{plan.kind}, {plan.dtype}, {plan.major}-major, {plan.swizzle}"
        base = f"add base / 16; base aligned to {plan.align_bytes} bytes"
        return None if isinstance(table, str) else Reads(head, plan.rows, plan.k, table, words, base)
    if isinstance(plan, PartsPlan):
        head = f"operand of wgmma, {plan.major}-major, {plan.swizzle}, each part placed separately"
        places = 8 * plan.read()
        if plan.element_bits < 8:
            places = places + np.arange(places.shape[1]) % 8
        return Reads(head, plan.rows, plan.k, places, words, "add base / 16; base aligned to 1024 bytes")
    problem = plan.problem
    places = 8 * requested_addresses(problem)
    if problem.element_bits < 8:
        places = places + np.arange(places.shape[1]) % 8
    sparse = " of sparse A" if getattr(problem, "sparse", False) else ""
    swizzle = plan.tiles[0].descriptor.swizzle
    head = f"{problem.operand} of wgmma{sparse}, {problem.dtype}, {plan.major}-major, {swizzle}"
    k = min((tile.k for tile in plan.tiles if tile.k), default=places.shape[1])
    return Reads(
        head, plan.rows, k, places, words, f"add base / 16; base aligned to {plan.align_bytes} bytes"
    )  # fmt: skip


def draw_operand(canvas: Canvas, reads: Reads, top: float) -> None:
    """Draw the tile split into instructions, and shared memory coloured by instruction."""
    mn, k = reads.bits.shape
    many = len(reads.words)
    canvas.text(4, top + 14, f"{reads.head}: {many} x {reads.rows} x {reads.k}", "h")
    _tile(canvas, reads, 60.0, top + 48)
    _memory(canvas, reads, WIDE + 130, top + 48)
    note = f"tile {mn} x {k}; numbers: instructions; colour: the K step (rows if there is only one), on both sides"
    canvas.text(4, canvas.height + 14, f"{note}; {reads.base}", "s")


def _numbers(reads: Reads) -> npt.NDArray[np.int64]:
    """The instruction that reads each element."""
    owner = np.full(reads.bits.shape, -1, dtype=np.int64)
    for number, (mn, k, _) in enumerate(reads.words):
        owner[mn : mn + reads.rows, k : k + reads.k] = number
    return owner


def _levels(reads: Reads) -> list[int]:
    """The colour of each instruction: its K step, or its row if there is only one."""
    steps = sorted({k for _, k, _ in reads.words})
    rows = sorted({mn for mn, _, _ in reads.words})
    if len(steps) > 1:
        return [level_of(steps.index(k), 0, len(steps) - 1) for _, k, _ in reads.words]
    return [level_of(rows.index(mn), 0, max(1, len(rows) - 1)) for mn, _, _ in reads.words]


def _tile(canvas: Canvas, reads: Reads, left: float, top: float) -> None:
    mn, k = reads.bits.shape
    scale_x, scale_y = WIDE / k, TALL / mn
    canvas.text(left, top - 20, "the tile, rows down, K across", "n")
    canvas.text(left, top - 6, "instruction: low word of its descriptor", "s")
    levels = _levels(reads)
    for number, (row, column, word) in enumerate(reads.words):
        x, y = left + column * scale_x, top + row * scale_y
        wide, tall = reads.k * scale_x, reads.rows * scale_y
        level = levels[number]
        title = f"instruction {number}: rows {row} to {row + reads.rows - 1}, K {column} to {column + reads.k - 1}"
        canvas.box(x, y, wide, tall, f"c{level}", f"{title}, descriptor {word:#018x}")
        canvas.frame(x, y, wide, tall)
        low = f"{number}: {word & 0xFFFFFFFF:#x}"
        if tall >= 12 and wide >= 7 * len(low):
            canvas.text(x + wide / 2, y + tall / 2 + 4, low, f"m t{level}")
        elif tall >= 12 and wide >= 7 * len(str(number)):
            canvas.text(x + wide / 2, y + tall / 2 + 4, number, f"m t{level}")
    rows = sorted({row for row, _, _ in reads.words})
    for row in rows[:: max(1, len(rows) // 16)]:
        canvas.text(left - 6, top + row * scale_y + 10, row, "s e")
    columns = sorted({column for _, column, _ in reads.words})
    for column in columns[:: max(1, len(columns) // 8)]:
        canvas.text(left + column * scale_x + 2, top + TALL + 14, column, "s")


def _memory(canvas: Canvas, reads: Reads, left: float, top: float) -> None:
    owner = _numbers(reads).reshape(-1)
    chunks = reads.bits.reshape(-1) // (8 * CHUNK)
    order = np.argsort(reads.bits.reshape(-1), kind="stable")
    levels, k = _levels(reads), reads.bits.shape[1]
    canvas.text(left, top - 20, "shared memory from the tile's base, lines of 128 bytes", "n")
    canvas.text(left, top - 6, "each 16 bytes: row,k of its first element", "s")
    units: dict[int, Unit] = {}
    most = LINES * 8
    for element in order.tolist():
        chunk = int(chunks[element])
        if chunk >= most and len(units) >= most:
            break
        if chunk not in units:
            row, column = divmod(element, k)
            number = int(owner[element])
            title = f"starts with element ({row}, {column}), read by instruction {number}"
            units[chunk] = Unit(f"{row},{column}", f"c{levels[number]}", title)
    draw_memory(canvas, left, top, {chunk: unit for chunk, unit in units.items() if chunk < most}, CHUNK)
    end = int(chunks.max()) // 8 + 1
    if end > LINES:
        canvas.text(left, canvas.height + 12, f"the first {LINES} of {end} lines", "s")
