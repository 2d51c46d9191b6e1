"""Draw what instructions access: lanes and registers of shared-memory accesses, descriptor operands, tensor memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.draw.canvas import (
    LINE_BYTES,
    LINES,
    Canvas,
    Cell,
    Unit,
    draw_memory,
    draw_value,
    level_of,
    many,
    ranges,
)
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.tcgen05 import Tcgen05Plan, TmemPlan
from layoutalg.proofs.tile_map import cute_extents
from layoutalg.proofs.wgmma import OperandPlan, requested_addresses
from layoutalg.synth.lds import LdsPlan
from layoutalg.synth.wgmma.parts import PartsPlan
from layoutalg.targets.bank_counting import BANKS
from layoutalg.targets.nvidia.tcgen05 import TmemAccess, TmemAllocation, TmemUse
from layoutalg.targets.nvidia.tcgen05.memory import COLUMNS, LANES, WARP_LANES

SIDE = 32
"""Most rows and columns of the tile drawn."""
BANK, CHUNK = 4, 16
WIDE, TALL = 300.0, 240.0
"""Size of an operand's tile."""
TMEM_WIDE, LANE_TALL = 660.0, 1.75
_COLUMNS = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""Columns of one ``.x1`` access to tensor memory, by shape."""


@draw_value.register(AccessPlan)
def draw_access(plan: AccessPlan, canvas: Canvas, top: float) -> None:
    """Draw the bytes that a warp's first instruction accesses, by lane, and the lane and register of each element."""
    turns = "" if plan.turns is None else f", {plan.turns} bank turns in total"
    canvas.text(4, top + 14, f"{plan.count} x {plan.instruction} per warp{turns}: the first instruction", "h")
    places = _table(plan.addresses, 2)[:, 0]
    asked = _table(plan.requested, 3)[:, :, 0]
    bits = plan.element_bits
    unit_bytes = max(1, asked.size * bits // 8 // max(1, len(places)))
    units = _lanes(places.tolist(), 1 << (unit_bytes.bit_length() - 1))
    per_line = LINE_BYTES // _grain(unit_bytes)
    longest = max(len(unit.label) for unit in units.values())
    wide = per_line * max(14.0 if per_line > 8 else 24.0, 7.0 * longest + 6)
    left = 48.0
    canvas.text(left, top + 34, "shared memory, lines of 128 bytes (all banks)", "n")
    clash = any(unit.mark == "w" for unit in units.values())
    outlined = "; outlined: lanes of one group with a bank conflict" if clash else ""
    canvas.text(left, top + 48, f"L: the lane that supplies the address{outlined}", "s")
    draw_memory(canvas, left, top + 56, units, _grain(unit_bytes), whole=False)
    bottom = canvas.height
    columns = _columns(plan)
    beside = wide + 32.0 * columns < 900
    _draw_tile(canvas, plan, max(left + wide, left + 330.0) + 60 if beside else left, top if beside else bottom)
    canvas.height = max(canvas.height, bottom)
    canvas.text(4, canvas.height + 14, _note(plan), "s")


@draw_value.register(LdsPlan)
def draw_lds(plan: LdsPlan, canvas: Canvas, top: float) -> None:
    """Draw the bytes that a wave's first access takes, by lane."""
    turns = "turns unknown" if plan.turns is None else f"{plan.turns} bank turns in total"
    canvas.text(4, top + 14, f"{len(plan.addresses)} x {plan.instruction}, {turns}: the first access", "h")
    size = next(
        (int(part[1:]) // 8 for part in plan.instruction.split("_") if part[1:].isdigit() and part[0] == "b"), 4
    )
    first = plan.addresses[0]
    units = _lanes(first, size)
    canvas.text(48, top + 34, "LDS, lines of 128 bytes; L: the lane that supplies the address", "n")
    plain = {at: replace(unit, mark="") for at, unit in units.items()}  # each AMD instruction defines its own phases
    draw_memory(canvas, 48, top + 44, plain, _grain(size), whole=False)
    active = sum(address is not None for address in first)
    canvas.text(4, canvas.height + 14, f"{active} lanes access {size} bytes each", "s")


def _grain(unit_bytes: int) -> int:
    """Bytes per cell: the access of a lane, between one bank and a whole line."""
    return min(max(BANK, 1 << (unit_bytes.bit_length() - 1)), LINE_BYTES)


def _lanes(places: Any, size: int) -> dict[int, Unit]:
    """The units that each lane accesses; bank conflicts within a group of lanes are marked."""
    grain = _grain(size)
    group = max(1, min(32, 128 // max(BANK, size)))
    owners: dict[int, list[int]] = defaultdict(list)
    for lane, address in enumerate(places):
        if address is not None:
            for unit in range(address // grain, (address + size - 1) // grain + 1):
                owners[unit].append(lane)
    columns: dict[tuple[int, int], set[int]] = defaultdict(set)
    for unit, lanes in owners.items():
        for lane in lanes:
            columns[lane // group, unit % (LINE_BYTES // grain)].add(unit)
    last = max(len(places) - 1, 1)
    found = {}
    for unit, lanes in owners.items():
        clash = any(len(columns[lane // group, unit % (LINE_BYTES // grain)]) > 1 for lane in lanes)
        label = f"L{lanes[0]}" + (f",{lanes[1]}" if len(lanes) == 2 else f"+{len(lanes) - 1}" if len(lanes) > 2 else "")
        title = f"lane{'s' if len(lanes) > 1 else ''} {ranges(sorted(set(lanes)))}"
        bank = unit * grain // BANK % BANKS
        where = f"bank {bank}" if grain == BANK else f"banks {bank} to {bank + grain // BANK - 1}"
        style = f"c{level_of(lanes[0], 0, last)}"
        found[unit] = Unit(label, style, f"{title}, {where}{', a conflict' if clash else ''}", "w" if clash else "")
    return found


def _table(layout: Any, axes: int) -> npt.NDArray[np.int64]:
    """The table of a layout with one output over its first ``axes`` axes, for warp 0 if there is a warp axis."""
    extents = cute_extents(layout) if isinstance(layout, CuteLayout) else tuple(layout.in_dims.values())
    table = np.asarray(layout.table(), dtype=np.int64).reshape(extents, order="F")
    return table[..., 0] if table.ndim > axes else table


def _coordinates(plan: AccessPlan) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Coordinates of the first instruction as [register, lane, coordinate], and their names."""
    layout = plan.registers
    names = tuple(layout.out_dims)
    table = _table(layout, 3)[:, :, 0]
    if len(names) == 1:
        return np.stack([np.zeros_like(table), table], axis=-1), ("", names[0])
    parts = []
    for extent in layout.out_dims.values():  # the first output is the fastest
        table, part = np.divmod(table, extent)
        parts.append(part)
    return np.stack(parts[:2], axis=-1), names[:2]


def _columns(plan: AccessPlan) -> int:
    """Columns of the tile that the first instruction moves."""
    columns = _coordinates(plan)[0][..., 1]
    return min(int(columns.max() - columns.min()) + 1, SIDE)


def _draw_tile(canvas: Canvas, plan: AccessPlan, left: float, top: float) -> None:
    """Draw the corner of the tile moved by the first instruction, with the lane and register of each element."""
    points, names = _coordinates(plan)
    registers, lanes = points.shape[:2]
    low = points.reshape(-1, 2).min(axis=0)
    high = points.reshape(-1, 2).max(axis=0)
    if names[0] == "" and high[1] - low[1] >= SIDE:  # flat coordinates: draw only those that occur, in order
        order = {value: at for at, value in enumerate(sorted(set(points[..., 1].reshape(-1).tolist())))}
        width = 8
        points = np.array([[divmod(order[int(p[1])], width) for p in row] for row in points], dtype=np.int64)
        flat = list(order)
        low, high = np.zeros(2, np.int64), points.reshape(-1, 2).max(axis=0)
    else:
        flat, width = [], 0
    shape = [min(int(high[axis] - low[axis]) + 1, SIDE) for axis in (0, 1)]
    held: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for lane in range(lanes):
        for register in range(registers):
            row, column = (int(part) for part in points[register, lane] - low)
            if row < shape[0] and column < shape[1]:
                held[row, column].append((lane, register))
    verb = {"st": "supplies", "cp": "copies"}.get(plan.instruction[:2], "receives")
    canvas.text(left, top + 34, f"the tile: lane.register that {verb} each element", "n")
    cells: list[list[Cell]] = [
        [
            (
                f"c{level_of(places[0][0], 0, lanes - 1)}" if places else "z",
                _label(places),
                f"{_where(names, int(low[0]) + row, int(low[1]) + column, flat, width)}: "
                + (", ".join(f"lane {lane} register {register}" for lane, register in places[:8]) or "not moved"),
            )
            for column, places in enumerate(held[row, column] for column in range(shape[1]))
        ]
        for row in range(shape[0])
    ]
    longest = max((len(label) for row in cells for _, label, _ in row), default=1)
    across = [] if flat else range(int(low[1]), int(low[1]) + shape[1])
    down = [flat[row * width] if flat else int(low[0]) + row for row in range(shape[0])]
    canvas.cells(left, top + 56, (7.0 * longest + 6, 18.0), cells, across=across, down=down)
    whole = [int(high[axis] - low[axis]) + 1 for axis in (0, 1)]
    if whole != shape:
        cut = f"the first {shape[0]} of {whole[0]} rows and {shape[1]} of {whole[1]} columns"
        canvas.text(left, canvas.height + 12, cut, "s")


def _where(names: tuple[str, ...], row: int, column: int, flat: list[int], width: int) -> str:
    if flat:
        at = row * width + column
        return f"flat {flat[at]}" if at < len(flat) else "nothing"
    return f"flat {column}" if not names[0] else f"{names[0]} {row}, {names[1]} {column}"


def _label(held: list[tuple[int, int]]) -> str:
    if not held:
        return ""
    lane, register = held[0]
    return f"{lane}.{register}" + (f" +{len(held) - 1}" if len(held) > 1 else "")


def _note(plan: AccessPlan) -> str:
    ideal = "" if plan.turns is None else ("free of bank conflicts" if plan.turns == plan.ideal else
                                           f"{plan.ideal} turns without conflicts")  # fmt: skip
    along = "" if plan.along is None else f"rows along dimension {plan.along}"
    return "; ".join(part for part in (along, ideal, "colour: the lane") if part)


@dataclass(frozen=True, slots=True)
class Reads:
    """What the descriptors of an operand read."""

    head: str  # the operand in words
    rows: int  # rows per instruction
    k: int  # elements along K per instruction
    bits: npt.NDArray[np.int64]  # bit address of every element, [mn, k]
    words: tuple[tuple[int, int, int], ...]  # (first row, first K, descriptor) of each instruction
    base: str  # what to add to the descriptors for the tile's base


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
    base = f"add base / 16; base aligned to {plan.align_bytes} bytes"
    return Reads(head, plan.rows, k, places, words, base)


@draw_value.register(OperandPlan | PartsPlan | Tcgen05Plan)
def draw_operand(plan: OperandPlan | PartsPlan | Tcgen05Plan, canvas: Canvas, top: float) -> bool:
    """Draw the tile split into instructions, and shared memory coloured by instruction."""
    reads = reads_of(plan)
    if reads is None:
        return False
    mn, k = reads.bits.shape
    count = len(reads.words)
    canvas.text(4, top + 14, f"{reads.head}: {count} x {reads.rows} x {reads.k}", "h")
    _instructions(canvas, reads, 60.0, top + 48)
    _memory(canvas, reads, WIDE + 130, top + 48)
    note = f"tile {mn} x {k}; numbers: instructions; colour: the K step (rows if there is only one), on both sides"
    canvas.text(4, canvas.height + 14, f"{note}; {reads.base}", "s")
    return True


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


def _instructions(canvas: Canvas, reads: Reads, left: float, top: float) -> None:
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


@draw_value.register(TmemPlan | TmemUse | TmemAllocation | TmemAccess)
def draw_tmem(value: TmemPlan | TmemUse | TmemAllocation | TmemAccess, canvas: Canvas, top: float) -> None:
    """Draw labelled boxes of lanes and columns."""
    boxes, head, note = _boxes(value)
    last = max((column + wide for _, _, column, wide, _, _ in boxes), default=0)
    shown = (
        COLUMNS if isinstance(value, (TmemUse, TmemAllocation)) else min(COLUMNS, max(32, 1 << (last - 1).bit_length()))
    )
    left, base, scale = 110.0, top + 46, TMEM_WIDE / shown
    tall = LANES * LANE_TALL
    canvas.text(4, top + 14, head, "h")
    canvas.box(left, base, shown * scale, tall, "z", f"tensor memory, columns 0 to {shown - 1}")
    step = max(1, shown // 16)
    for column in range(0, shown, step):
        canvas.text(left + column * scale, base - 6, column, "s m")
    canvas.text(left - 14, base - 6, "lanes / column", "s e")
    for warp in range(LANES // WARP_LANES):
        y = base + warp * WARP_LANES * LANE_TALL
        canvas.text(left - 6, y + 24, f"{warp * 32}..{warp * 32 + 31}", "s e")
        canvas.text(left - 6, y + 38, f"warp {warp}", "s e")
    fits = all(columns * scale >= 7 * len(words.split(":")[0]) for _, _, _, columns, _, words in boxes)
    for lane, lanes, column, columns, level, words in boxes:
        x, y = left + column * scale, base + lane * LANE_TALL
        style = f"c{level}"
        canvas.box(x, y, columns * scale, lanes * LANE_TALL, style, words)
        if columns * scale >= 4:
            canvas.frame(x, y, columns * scale, lanes * LANE_TALL)
        label = words.split(":")[0]
        if fits and lanes * LANE_TALL >= 14:
            canvas.text(x + columns * scale / 2, y + min(lanes * LANE_TALL / 2, 24) + 4, label, f"m t{level}")
    for warp in range(5):
        y = base + warp * WARP_LANES * LANE_TALL
        canvas.frame(left, y, shown * scale, 0.2)
    canvas.text(4, canvas.height + 14, note, "s")


def _boxes(value: Any) -> tuple[list[tuple[int, int, int, int, int, str]], str, str]:
    """(lane, lanes, column, columns, level, words) of every box, the head and the note."""
    if isinstance(value, TmemAccess):
        found = [(value.lane, value.lanes, value.column, value.width, 8, f"warp {value.warp}: {value}")]
        if value.split_columns:
            far = value.column + value.split_columns
            found.append((value.lane, value.lanes, far, value.width, 12, f"warp {value.warp}: the second half"))
        return (
            found,
            str(value),
            f"address {value.address:#x}: lane * 2^16 + column; {value.registers} registers per thread",
        )
    if isinstance(value, TmemPlan):
        lanes, wide = 32 if value.shape == "32x32b" else 16, _COLUMNS.get(value.shape, 1)
        most = max(1, len(value.places) - 1)
        found = [
            (
                lane, lanes, column, wide, level_of(number, 0, most),
                f"{number}: access {number} of warp {warp}, registers {held[0]} to {held[-1]}, at ({lane}, {column})",
            )
            for number, (held, points) in enumerate(zip(value.registers, value.places, strict=True))
            for warp, (lane, column) in enumerate(points)
        ]  # fmt: skip
        path = f" of data path layout {value.data_path}" if value.data_path else ""
        return (
            found,
            f"{len(value.places)} x tcgen05.ld.{value.shape}.x1{path}",
            "one box per access and warp, numbered and coloured in order",
        )
    live = (value,) if isinstance(value, TmemAllocation) else value.live
    found = [
        (
            0, LANES, each.start_column, each.columns, level_of(number, -1, len(live)),
            f"{each.columns} columns: allocation {number}, columns {each.start_column} to {each.end_column - 1}",
        )
        for number, each in enumerate(live)
    ]  # fmt: skip
    free = COLUMNS - sum(each.columns for each in live)
    note = f"{free} columns are free"
    if isinstance(value, TmemUse):
        note += "; the allocation permit was relinquished" if value.relinquished else ""
        note += f"; warp {value.warp} allocates, cta_group {value.cta_group}" if value.warp >= 0 else ""
    return found, f"tensor memory: {many(len(live), 'allocation')}", note
