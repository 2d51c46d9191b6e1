"""Draw a warp's accesses to shared memory: the address of each lane, and the register that receives each element."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.draw.memory import LINE_BYTES, Unit, draw_memory, ranges
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.tile_map import cute_extents
from layoutalg.synth.lds import LdsPlan

SIDE = 32
"""Most rows and columns of the tile drawn."""
BANK = 4


def draw_access(canvas: Canvas, plan: AccessPlan, top: float) -> None:
    """Draw the bytes that a warp's first instruction accesses, by lane, and the lane and register of each element."""
    turns = "" if plan.turns is None else f", {plan.turns} bank turns in total"
    canvas.text(4, top + 14, f"{plan.count} x {plan.instruction} per warp{turns}: the first instruction", "h")
    places = _table(plan.addresses, 2)[:, 0]
    asked = _table(plan.requested, 3)[:, :, 0]
    bits = plan.element_bits
    unit_bytes = max(1, asked.size * bits // 8 // max(1, len(places)))
    units = _lanes(places.tolist(), 1 << (unit_bytes.bit_length() - 1))
    many = LINE_BYTES // _grain(unit_bytes)
    longest = max(len(unit.label) for unit in units.values())
    wide = many * max(14.0 if many > 8 else 24.0, 7.0 * longest + 6)
    left = 48.0
    canvas.text(left, top + 34, "shared memory, lines of 128 bytes (all banks)", "n")
    red = "; red: lanes of one group with a bank conflict" if _red(units) else ""
    canvas.text(left, top + 48, f"L: the lane that supplies the address{red}", "s")
    draw_memory(canvas, left, top + 56, units, _grain(unit_bytes), whole=False)
    bottom = canvas.height
    columns = _columns(plan)
    beside = wide + 32.0 * columns < 900
    _held(canvas, plan, max(left + wide, left + 330.0) + 60 if beside else left, top if beside else bottom)
    canvas.height = max(canvas.height, bottom)
    canvas.text(4, canvas.height + 14, _note(plan), "s")


def draw_lds(canvas: Canvas, plan: LdsPlan, top: float) -> None:
    """Draw the bytes that a wave's first access takes, by lane."""
    turns = "turns unknown" if plan.turns is None else f"{plan.turns} bank turns in total"
    canvas.text(4, top + 14, f"{len(plan.addresses)} x {plan.instruction}, {turns}: the first access", "h")
    size = next(
        (int(part[1:]) // 8 for part in plan.instruction.split("_") if part[1:].isdigit() and part[0] == "b"), 4
    )
    first = plan.addresses[0]
    units = _lanes(first, size)
    canvas.text(48, top + 34, "LDS, lines of 128 bytes; L: the lane that supplies the address", "n")
    draw_memory(canvas, 48, top + 44, {at: _plain(unit) for at, unit in units.items()}, _grain(size), whole=False)
    active = sum(address is not None for address in first)
    canvas.text(4, canvas.height + 14, f"{active} lanes access {size} bytes each", "s")


def _plain(unit: Unit) -> Unit:
    """Drop the conflict mark: each AMD instruction defines its own phases."""
    return Unit(unit.label, unit.style, unit.title)


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
        title = f"lane{'s' if len(lanes) > 1 else ''} {ranges(lanes)}"
        bank = unit * grain // BANK % 32
        where = f"bank {bank}" if grain == BANK else f"banks {bank} to {bank + grain // BANK - 1}"
        style = f"c{level_of(lanes[0], 0, last)}"
        found[unit] = Unit(label, style, f"{title}, {where}{', a conflict' if clash else ''}", "w" if clash else "")
    return found


def _red(units: dict[int, Unit]) -> bool:
    return any(unit.mark == "w" for unit in units.values())


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


def _held(canvas: Canvas, plan: AccessPlan, left: float, top: float) -> None:
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
    labels = [[_label(held[row, column]) for column in range(shape[1])] for row in range(shape[0])]
    longest = max((len(label) for row in labels for label in row), default=1)
    size = (7.0 * longest + 6, 18.0)
    styles = [
        [
            f"c{level_of(held[row, column][0][0], 0, lanes - 1)}" if held[row, column] else "z"
            for column in range(shape[1])
        ]
        for row in range(shape[0])
    ]
    titles = [
        [
            f"{_where(names, int(low[0]) + row, int(low[1]) + column, flat, width)}: "
            + (", ".join(f"lane {lane} register {register}" for lane, register in held[row, column][:8]) or "not moved")
            for column in range(shape[1])
        ]
        for row in range(shape[0])
    ]
    for column in range(shape[1]) if not flat else ():
        canvas.text(left + column * size[0] + size[0] / 2, top + 52, int(low[1]) + column, "s m")
    for row in range(shape[0]):
        text = flat[row * width] if flat else int(low[0]) + row
        canvas.text(left - 4, top + 56 + row * size[1] + 13, text, "s e")
    canvas.cells(left, top + 56, size, styles, labels, titles)
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
