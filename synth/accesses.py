"""Cover a tile, or given registers, with copies of one shared-memory instruction: a division by the instruction.

*Whole tiles*: a row of an instruction is an aligned run of tile elements along one dimension; a matrix is the rows at
an aligned run of 8 (or 16) coordinates along the other. A line of n elements splits into runs of e in only one way, so
checking every run and their number decides; nothing is searched.

*Registers*: let c be the shared-memory bit address of one register, by lane. If an instruction has it in a slot (bit b,
row r), its row starts at c - b - (bit of the lane), a multiple of the row size; so b = c mod row in lane 0, which fixes
the rows and the registers in the other slots of these rows. Registers thus split uniquely into sets with the same rows.
A set is valid iff lanes that share a row agree on its address and every slot of the rows is filled. Any grouping of
valid sets into whole instructions is correct and has the same size; the order of the first registers is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.certify import conditions
from layoutalg.targets.nvidia.accesses import AccessForm

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moved:
    """Instructions."""

    addresses: IntArray  # byte addresses, [instruction, warp, lane]
    slots: IntArray  # flat tile coordinate of the element in each slot, [instruction, warp, lane, slot]
    parts: IntArray  # which part of its element each slot holds, indexed like ``slots``; 0 for whole elements
    order: tuple[tuple[int, ...], ...] = ()  # per instruction, the register of each slot; empty for a whole tile
    along: int = -1  # dimension of the rows; -1 for registers


def unfit(form: AccessForm, bits: int, *, whole: bool) -> Broken | None:
    """Return why elements of this width cannot be moved; None if they can."""
    wide = form.unit_bits
    small, large = sorted((bits, wide))
    if form.element_bits not in (0, bits):
        because = f"{form.name} moves elements of {form.element_bits} bits, not {bits}"
        evidence = conditions.one_of(bits, form.element_bits)
    elif large % small:
        because = f"elements of {bits} bits do not fill units of {wide} bits"
        evidence = conditions.multiple(large, small)
    elif whole and ".trans" in form.name and wide == 16 and bits != 16:
        because = f"{form.name} transposes 16-bit elements, not {bits}-bit ones"
        evidence = conditions.one_of(bits, 16)
    elif whole and bits > wide and not form.matrix_rows:
        because = f"{form.name} moves {wide} bits, not {bits}-bit ones"
        evidence = conditions.multiple(wide, bits)
    else:
        return None
    return Broken("ACCESS_ELEMENT", because, {}, evidence)


def whole_tile(form: AccessForm, places: IntArray, bits: int) -> Moved | Broken:
    """Return the instructions that move a whole tile, given the bit address of every element.

    Example:
        >>> from layoutalg.targets.nvidia.accesses import access_form
        >>> whole_tile(access_form("ldmatrix.x1"), 16 * np.arange(64).reshape(8, 8), 16).addresses.tolist()
        [[[0, 16, 32, 48, 64, 80, 96, 112]]]
    """
    if (broken := unfit(form, bits, whole=True)) is not None:
        return broken
    if form.matrix_rows and places.ndim < 2:
        because = f"{form.name} moves matrices; the tile has one dimension"
        return Broken("ACCESS_TILE", because, {}, conditions.one_of(1, 2))
    last = places.ndim - 1
    found = along_dimension(form, places, bits, last)
    if isinstance(found, Broken) and form.matrix_rows and ".trans" in form.name:
        other = along_dimension(form, places, bits, last - 1)
        return found if isinstance(other, Broken) else other
    return found


def along_dimension(form: AccessForm, places: IntArray, bits: int, along: int) -> Moved | Broken:
    """Return the instructions that move a whole tile in rows along one of its last two dimensions, or why not."""
    coordinates = np.arange(places.size, dtype=np.int64).reshape(places.shape, order="F")
    last, run, high = places.ndim - 1, form.moved_bits // bits, max(1, form.matrix_rows)
    if along != last:
        places, coordinates = places.swapaxes(last - 1, last), coordinates.swapaxes(last - 1, last)
    lines, columns = math.prod(places.shape[:-1]), places.shape[-1]
    slow = places.shape[-2] if places.ndim > 1 else 1
    width = f"{form.moved_bits // 8} bytes" if form.moved_bits % 8 == 0 else f"{form.moved_bits} bits"
    if columns % run:
        return Broken("ACCESS_TILE", f"{columns} elements along dimension {along} do not divide into rows of {width}")
    if slow % high:
        return Broken("ACCESS_TILE", f"{slow} rows of {width} do not divide into matrices of {high} rows")
    rows = places.reshape(lines, columns // run, run)
    names = coordinates.reshape(rows.shape)
    shape = coordinates.shape if along == last else (*coordinates.shape[:-2], columns, slow)

    def witness(wrong: npt.NDArray[np.bool_], needed: IntArray) -> dict[str, object]:
        line, part, step = (int(x) for x in np.unravel_index(int(wrong.argmax()), wrong.shape))
        at = np.unravel_index(int(names[line, part, step]), shape, order="F")
        size = 8 if bits % 8 == 0 else 1
        unit = "byte" if size == 8 else "bit"
        return {
            "coordinate": tuple(int(x) for x in at),
            unit: int(rows[line, part, step]) // size,
            f"needed_{unit}": int(needed[line, part, step]) // size,
        }

    needed = rows[..., :1] + bits * np.arange(run)
    if (rows != needed).any():
        at = witness(rows != needed, needed)
        because = f"{width} along dimension {along} are not contiguous; first at {at['coordinate']}"
        return Broken("ACCESS_CONTIGUOUS", because, at)
    starts = rows[..., 0]
    if (starts % form.row_bits).any():
        wrong = (rows % form.row_bits != 0) & (np.arange(run) == 0)
        at = witness(wrong, rows - rows % form.row_bits)
        because = f"the {width} at {at['coordinate']} do not start at a multiple of {form.row_bits // 8} bytes"
        return Broken("ACCESS_ALIGNED", because, at)
    turned = (lines // high, high, columns // run)
    blocks = starts.reshape(turned).transpose(0, 2, 1).reshape(-1)
    held = names.reshape(*turned, run).transpose(0, 2, 1, 3).reshape(-1, run)
    if len(blocks) % form.addresses:
        kind = "matrices" if form.matrix_rows else "vectors"
        many = len(blocks) // high
        because = f"{form.name} moves {form.addresses // high} {kind} at a time, and {many} is not a multiple of that"
        return Broken("ACCESS_TILE", because, {kind: many})
    count = len(blocks) // form.addresses
    slot_bits, slot_rows = form.slots(bits)
    lane_bits, lane_rows = form.lanes()
    runs = held.reshape(count, form.addresses, run)
    inside = lane_bits[:, None] + slot_bits
    slots = runs[:, lane_rows[:, None] + slot_rows, inside // bits][:, None]
    parts = np.broadcast_to(inside % bits // min(bits, form.unit_bits), slots.shape)
    return Moved(blocks.reshape(count, 1, form.addresses) // 8, slots, parts, along=along)


def divided(form: AccessForm, places: IntArray, held: IntArray, bits: int) -> Moved | Broken:
    """Return the instructions that move exactly the given registers, or the first register and lane that prevents it.

    Args:
        form: The instruction.
        places: Shared-memory bit address of every register, [warp, lane, register].
        held: Flat tile coordinate of every register, indexed like ``places``.
        bits: Bits of an element.

    Example:
        >>> from layoutalg.targets.nvidia.accesses import access_form
        >>> at = 32 * np.arange(64).reshape(1, 32, 2)
        >>> divided(access_form("ld.shared.v2.b32"), at, at // 32, 32).order
        ((0, 1),)
        >>> print(divided(access_form("ld.shared.v4.b32"), at, at // 32, 32).rule)
        ACCESS_LANES
    """
    if (broken := unfit(form, bits, whole=False)) is not None:
        return broken
    pieces = bits // min(bits, form.unit_bits)
    columns = _columns(places, bits, pieces)
    lane_bits, lane_rows = form.lanes()
    slot_bits, slot_rows = form.slots(bits)
    inner = [int(bit) for bit in slot_bits[slot_rows == slot_rows[0]]]
    suppliers = [int(np.flatnonzero(lane_rows == row)[0]) for row in lane_rows]
    rows_of_part = sorted(set(slot_rows.tolist()))
    sets: dict[bytes, tuple[IntArray, dict[int, int]]] = {}
    for piece, column in columns:
        register = piece // pieces
        clock.check("a division of registers by an instruction")
        base = column - lane_bits
        rest = int(base[0, 0]) % form.row_bits
        if rest not in inner:
            return _misplaced("ACCESS_ALIGNED", form, register, (0, 0), base[0, 0], base[0, 0] - rest, bits)
        starts = base - rest
        wrong = np.argwhere(starts % form.row_bits)
        if len(wrong):
            warp, lane = (int(x) for x in wrong[0])
            needed = column[warp, lane] - starts[warp, lane] % form.row_bits
            return _misplaced("ACCESS_LANES", form, register, (warp, lane), column[warp, lane], needed, bits)
        wrong = np.argwhere(starts != starts[:, suppliers])
        if len(wrong):
            warp, lane = (int(x) for x in wrong[0])
            needed = starts[warp, suppliers[lane]] + rest + lane_bits[lane]
            return _misplaced("ACCESS_LANES", form, register, (warp, lane), column[warp, lane], needed, bits)
        rows = np.ascontiguousarray(starts[:, sorted(set(suppliers))])
        sets.setdefault(rows.tobytes(), (rows, {}))[1][rest] = piece
    for rows, filled in sets.values():
        missing = [bit for bit in inner if bit not in filled]
        if missing:
            register = min(filled.values()) // pieces
            at = int(rows[0, 0]) + missing[0]
            place = f"byte {at // 8}" if at % 8 == 0 else f"bit {at}"
            because = f"{form.name} also moves {place} to lane 0 with register {register}, but no register maps to it"
            return Broken("ACCESS_REGISTERS", because, {"register": register, "lane": 0, "warp": 0, "bit": at})
    good = list(sets.values())
    parts = len(rows_of_part)
    if len(good) % parts:
        many = len(good) * form.addresses // parts
        because = f"{form.name} moves {form.addresses} rows at a time, but the registers span {many}"
        return Broken("ACCESS_TILE", because, {"rows": many, "needed": form.addresses})
    return _assembled(form, good, rows_of_part, held, bits)


def _columns(places: IntArray, bits: int, pieces: int) -> list[tuple[int, IntArray]]:
    """Return the registers with distinct addresses, split into pieces if an element is wider than a unit."""
    seen: dict[bytes, tuple[int, IntArray]] = {}
    for register in range(places.shape[2]):
        for piece in range(pieces):
            column = np.ascontiguousarray(places[:, :, register] + piece * bits // pieces)
            seen.setdefault(column.tobytes(), (register * pieces + piece, column))
    return list(seen.values())


def _misplaced(
    rule: str, form: AccessForm, register: int, at: tuple[int, int], got: object, needed: object, bits: int
) -> Broken:
    warp, lane = at
    size, unit = (8, "byte") if bits % 8 == 0 else (1, "bit")
    one, other = int(got) // size, int(needed) // size  # type: ignore[call-overload]
    because = f"register {register} of lane {lane}, warp {warp}, is at {unit} {one}; {form.name} needs {unit} {other}"
    if rule == "ACCESS_ALIGNED":
        because = f"register {register} of lane {lane}, warp {warp}, is at {unit} {one}, which is not an offset that "
        because += f"{form.name} gives lane {lane} in an aligned row of {form.row_bits // 8} bytes"
        return Broken(rule, because, {"register": register, "lane": lane, "warp": warp, unit: one})
    return Broken(rule, because, {"register": register, "lane": lane, "warp": warp, unit: one, f"needed_{unit}": other})


def _assembled(
    form: AccessForm, good: list[tuple[IntArray, dict[int, int]]], rows_of_part: list[int], held: IntArray, bits: int
) -> Moved:
    lane_rows = form.lanes()[1]
    slot_bits, slot_rows = form.slots(bits)
    pieces = bits // min(bits, form.unit_bits)
    suppliers = sorted({int(np.flatnonzero(lane_rows == row)[0]) for row in lane_rows})
    count, parts = len(good) // len(rows_of_part), len(rows_of_part)
    addresses = np.zeros((count, held.shape[0], form.addresses), dtype=np.int64)
    order = []
    for place, (rows, _) in enumerate(good):
        addresses[place // parts][:, rows_of_part[place % parts] + lane_rows[suppliers]] = rows // 8
    for one in range(count):
        filled = [good[one * parts + rows_of_part.index(int(row))][1] for row in slot_rows]
        order.append(tuple(each[int(bit)] for each, bit in zip(filled, slot_bits, strict=True)))
    taken = np.array(order, dtype=np.int64)
    slots = np.stack([held[:, :, registers] for registers in taken // pieces])
    which = np.broadcast_to((taken % pieces)[:, None, None], slots.shape)
    return Moved(addresses, slots, which, tuple(tuple(registers) for registers in (taken // pieces).tolist()))


def overlapping(places: IntArray, held: IntArray) -> Broken | None:
    """Return two tile elements that a store would write to the same address; None if there are none."""
    order = np.argsort(places.reshape(-1), kind="stable")
    place, name = places.reshape(-1)[order], held.reshape(-1)[order]
    wrong = np.flatnonzero((place[1:] == place[:-1]) & (name[1:] != name[:-1]))
    if not len(wrong):
        return None
    at = int(wrong[0])
    because = f"a store would write tile elements {int(name[at])} and {int(name[at + 1])} to bit {int(place[at])}"
    both = (int(name[at]), int(name[at + 1]))
    return Broken("ACCESS_OVERLAP", because, {"elements": both, "bit": int(place[at])}, conditions.distinct)
