"""Conversions through shared memory where a layout is no map of bits: elements are placed, not columns.

Main definitions: ``listed``.

Mathematically: of the places that hold an element one stores it, the first by register; every thread loads what it
wants. A placement gives each element an offset: by its number, or by the place that stores or first loads it, registers
or threads fastest, and with some elements left out after every row of a period. Registers whose offsets are neighbours
in all threads move together. Placements are counted by the bank models, and the few of fewest cycles are compared with
all that their addresses cost; that no other placement is better is not said.

Main statements: where every element is loaded once and moves alone, some placement is free of conflicts. The elements
are the edges of a bipartite graph between the groups of lanes that are served together, of stores and of loads; a group
has no more lanes than there are columns of banks, and a colouring of as many colours (König) puts no two elements of a
group into one column. Its addresses have no formula, so that it is one of the placements that are compared.

Implementation notes: where every warp holds all that it wants, each stores its own elements, and a barrier of the warp
is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion_steps import Step, Take, Through
from layoutalg.proofs.listed_access import OUT, UNCOUNTED, ListedAccess
from layoutalg.proofs.swizzling import instruction_name, widths
from layoutalg.proofs.thread_formulas import strides
from layoutalg.synth.factor.shuffles import by_paths
from layoutalg.synth.paddings.turns import turns_of
from layoutalg.targets.bank_model import bank_model

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
WORD_BITS, LINE_BYTES, ALIGN_BYTES = 32, 128, 16
VECTORS = (128, 64, 32, 16, 8)
FEW = 4
"""Placements whose addresses are costed."""
MOST_PERIODS = 6
MOST_COLOURED = 1 << 12
"""Elements of a graph that is coloured."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where elements lie: the steps of a plan, and what to say of it.

    Args:
        steps: The steps.
        told: Words for the placement.
        tried: How many placements were counted.
    """

    steps: tuple[Step, ...]
    told: str
    tried: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """One side's labels by thread and register, and which of them move: stores and loads."""

    stored: IntArray
    storing: BoolArray
    loaded: IntArray
    back: tuple[int, ...]
    labels: int
    numbers: IntArray
    local: bool


@dataclass(frozen=True, slots=True)
class _Side:
    """An access under a placement: registers in the order in which they move, byte addresses, turns."""

    order: tuple[int, ...]
    elements: int
    instruction: str
    rows: IntArray
    turns: int
    ideal: int
    estimate: float


def listed(
    have: IntArray, want: IntArray, element_bits: int, target: str, smem_bytes: int, cycles: Callable[..., float]
) -> Placement | str:
    """Return steps through shared memory, or why there are none.

    Args:
        have: The element of every place of the source: int64[warp, lane, register].
        want: The same of the destination; the source holds all of it.
        element_bits: Bits of an element.
        target: The target.
        smem_bytes: Most bytes of shared memory.
        cycles: The cycles of steps.
    """
    size = element_bits // 8
    asked = _asked(have, want, smem_bytes // size)
    least = asked.labels * size
    if least > smem_bytes:
        return f"the elements take {least} bytes, more than the {smem_bytes} there are; without maps of bits no passes"
    lanes = have.shape[1]
    found: list[tuple[float, int, str, tuple[_Side, _Side]]] = []

    def tried(told: str, offsets: IntArray) -> None:
        if (int(offsets.max()) + 1) * size > smem_bytes:
            return
        store = _side(offsets[asked.stored], asked.storing, "store", element_bits, target, lanes)
        load = _side(offsets[asked.loaded], np.ones_like(asked.loaded, dtype=bool), "load", element_bits, target, lanes)
        found.append((store.estimate + load.estimate, len(found), told, (store, load)))

    for told, offsets in _placements(asked, element_bits):
        tried(told, offsets)
    found.sort(key=lambda each: each[:2])
    if found and any(side.turns > side.ideal for side in found[0][3]):
        coloured = _coloured(asked, element_bits, target, lanes)
        if coloured is not None:
            tried("by a colouring of the groups of lanes", coloured)
            found.sort(key=lambda each: each[:2])
    best: tuple[float, str, tuple[Step, ...]] | None = None
    for _, _, told, sides in found[:FEW]:
        steps = _steps(asked, sides, element_bits)
        cost = cycles(steps)
        if best is None or cost < best[0]:
            best = (cost, told + _conflicts(sides), steps)
    if best is None:  # the elements fit only as they come, which is the first placement
        return f"no placement fits into {smem_bytes} bytes"
    return Placement(best[2], best[1], len(found))


def _conflicts(sides: tuple[_Side, _Side]) -> str:
    """What conflicts remain, where turns are known."""
    if any(side.turns == UNCOUNTED for side in sides):
        return ""
    turns, ideal = (sum(getattr(side, name) for side in sides) for name in ("turns", "ideal"))
    return " (no conflicts)" if turns == ideal else f" ({turns} turns, {ideal} without conflicts)"


def _asked(have: IntArray, want: IntArray, most: int) -> _Asked:
    """Labels 0, 1, ... of the elements that are wanted; of each warp its own where warps need nothing of others."""
    warps, lanes, registers = have.shape
    threads = warps * lanes
    local = all(np.isin(want[warp], have[warp]).all() for warp in range(warps))
    values = np.unique(want)
    if local and warps * len(values) > most:
        local = False
    wanted, back = np.unique(want.reshape(threads, -1), axis=1, return_inverse=True)
    owner = np.arange(threads)[:, None] // lanes * len(values) * local
    flat = have.reshape(threads, registers)
    near = np.minimum(np.searchsorted(values, flat), len(values) - 1)
    stored = near + owner
    held = values[near] == flat
    loaded = np.searchsorted(values, wanted) + owner
    needed = np.zeros(len(values) * (warps if local else 1), dtype=bool)
    needed[loaded] = True
    storing = held & needed[stored]
    by_register = np.where(storing, stored, -1).T.reshape(-1)
    _, first = np.unique(by_register, return_index=True)
    chosen = np.zeros(len(by_register), dtype=bool)
    chosen[first] = True
    storing &= chosen.reshape(registers, threads).T
    numbers = (values - values[0])[None, :] + np.zeros((len(needed) // len(values), 1), dtype=np.int64)
    numbers = numbers + np.arange(len(numbers))[:, None] * (int(values[-1] - values[0]) + 1)
    return _Asked(
        stored, storing, loaded, tuple(back.reshape(-1).tolist()), len(needed), numbers.reshape(-1), local
    )  # fmt: skip


def _placements(asked: _Asked, element_bits: int) -> Iterator[tuple[str, IntArray]]:
    """Yield placements as offsets of labels."""
    plain: list[tuple[str, IntArray]] = [("in the order of their numbers", np.arange(asked.labels))]
    if int(asked.numbers.max()) < 2 * asked.labels:
        plain.append(("at their numbers", asked.numbers))
    for who, labels, live in (
        ("stores", asked.stored, asked.storing),
        ("loads", asked.loaded, np.ones_like(asked.loaded, dtype=bool)),
    ):
        for how, turned in (("threads", True), ("registers", False)):
            rows, alive = (labels.T, live.T) if turned else (labels, live)
            rows, alive = rows[alive.any(axis=1)], alive[alive.any(axis=1)]
            flat, at = rows.reshape(-1), np.flatnonzero(alive.reshape(-1))
            known, first = np.unique(flat[at], return_index=True)
            if len(known) < asked.labels:  # of warps' own elements some are not wanted
                continue
            offsets = at[first]
            if int(offsets.max()) >= 2 * asked.labels:
                offsets = np.argsort(np.argsort(offsets))
            plain.append((f"in the order of the {who}, {how} fastest", offsets))
    known_ones: set[bytes] = set()
    size = element_bits // 8
    for told, offsets in plain:
        offsets = offsets - offsets.min()
        key = offsets.tobytes()
        if key in known_ones:
            continue
        known_ones.add(key)
        yield told, offsets
        for period in _periods(asked, offsets, size):
            for amount in sorted({max(1, each // size) for each in (4, 8, 16)}):
                yield f"{told}, {amount} left out after every {period}", offsets + offsets // period * amount


def _coloured(asked: _Asked, element_bits: int, target: str, lanes: int) -> IntArray | None:
    """Offsets under which no lanes of a group meet in a bank; None where groups are not known or too big."""
    size = max(element_bits, WORD_BITS) // 8
    ends = []
    for kind, labels, live in (
        ("store", asked.stored, asked.storing),
        ("load", asked.loaded, np.ones_like(asked.loaded, dtype=bool)),
    ):
        try:
            model = bank_model(target, instruction_name(target, kind, element_bits))
        except RepresentabilityError:
            return None
        columns = model.banks * 4 // size
        if max(map(len, model.groups)) > columns:
            return None
        of_lane = np.zeros(lanes, dtype=np.int64)
        for number, group in enumerate(model.groups):
            of_lane[list(group)] = number
        thread, register = np.nonzero(live)
        group_of = (register * len(labels) // lanes + thread // lanes) * len(model.groups) + of_lane[thread % lanes]
        place = np.full(asked.labels, -1, dtype=np.int64)
        place[labels[thread, register][::-1]] = group_of[::-1]
        ends.append((place, columns))
    (stores, columns), (loads, other) = ends
    if columns != other or asked.labels > MOST_COLOURED:
        return None
    moved = np.flatnonzero((stores >= 0) & (loads >= 0))
    edges = [(int(stores[label]), int(loads[label]), 0, 0) for label in moved]
    colours = np.array(by_paths(edges, int(max(stores.max(), loads.max())) + 1, columns))
    rows = np.zeros(len(edges), dtype=np.int64)
    for colour in range(columns):
        mine = np.flatnonzero(colours == colour)
        rows[mine] = np.arange(len(mine))
    offsets = np.zeros(asked.labels, dtype=np.int64)
    offsets[moved] = (rows * columns + colours) * (size * 8 // element_bits)
    return offsets


def _periods(asked: _Asked, offsets: IntArray, size: int) -> list[int]:
    """Rows after which elements may be left out: steps between neighbouring threads or registers, lines of banks."""
    found = {LINE_BYTES // size: 0}
    for labels in (asked.stored, asked.loaded):
        at = offsets[labels]
        for steps in (np.diff(at[: 2 * 64], axis=0).reshape(-1), np.diff(at[:1], axis=1).reshape(-1)):
            for step, count in zip(*np.unique(np.abs(steps), return_counts=True), strict=True):
                if step > 1 and 2 * step <= offsets.max():
                    found[int(step)] = found.get(int(step), 0) + int(count)
    return sorted(found, key=lambda period: (-found[period], period))[:MOST_PERIODS]


def _side(
    offsets: IntArray, live: BoolArray, kind: str, element_bits: int, target: str, lanes: int
) -> _Side:  # fmt: skip
    """The access of a side by the widest vectors that the placement allows."""
    known = widths(target, kind, element_bits)
    tried = (*known, *(bits for bits in VECTORS if bits >= element_bits and bits not in known))
    kept = [int(register) for register in np.flatnonzero(live.any(axis=0))]
    for bits in tried:
        vector = bits // element_bits
        heads = _grouped(offsets, live, kept, vector)
        if heads is None:
            continue
        order = tuple(register for head in heads for register in head)
        firsts = [head[0] for head in heads]
        rows = np.where(live[:, firsts], offsets[:, firsts] * (element_bits // 8), OUT).T
        name = instruction_name(target, kind, bits)
        by_warp = rows.reshape(-1, lanes)
        by_warp = by_warp[(by_warp != OUT).any(axis=1)]
        turns, ideal = _turns(target, name, by_warp)
        least = int(np.count_nonzero(by_warp != OUT)) * bits // 8 / LINE_BYTES
        tables = _tables(rows) * (len(rows[0]) // lanes)
        estimate = (least if turns == UNCOUNTED else turns) + tables
        return _Side(order, vector, name, rows, turns, ideal, estimate)
    raise AssertionError("single elements always move")


def _tables(rows: IntArray) -> int:
    """About as many tables as addresses need: rows that are no sum of digits, each kind once."""
    live = rows != OUT
    kinds: dict[bytes, int] = {}
    for row, active in zip(rows, live, strict=True):
        kinds.setdefault((row - row[active][0] * active).tobytes(), int(strides(row, active) is None))
    return sum(kinds.values())


def _turns(target: str, name: str, rows: IntArray) -> tuple[int, int]:
    try:
        model = bank_model(target, name)
    except RepresentabilityError:
        return UNCOUNTED, UNCOUNTED
    turns, ideal = turns_of(model, rows, rows != OUT)
    return int(turns.sum()), int(ideal.sum())


def _grouped(offsets: IntArray, live: BoolArray, kept: list[int], vector: int) -> list[list[int]] | None:
    """Registers in groups that are neighbours in all threads, the first aligned; None where some are in no group."""
    if len(kept) % vector:
        return None
    if vector == 1:
        return [[register] for register in kept]
    at = {}
    for register in kept:
        at[np.where(live[:, register], offsets[:, register], OUT).tobytes()] = register
    groups = []
    for register in kept:
        mine = live[:, register]
        if (offsets[mine, register] % vector).any():
            continue
        keys = [np.where(mine, offsets[:, register] + place, OUT).tobytes() for place in range(vector)]
        if any(key not in at for key in keys):
            return None
        groups.append([at[key] for key in keys])
    return groups if len(groups) * vector == len(kept) else None


def _steps(asked: _Asked, sides: tuple[_Side, _Side], element_bits: int) -> tuple[Step, ...]:
    natural, size = max(1, WORD_BITS // element_bits), element_bits // 8
    accesses = []
    for side in sides:
        listed_rows = tuple(tuple(row) for row in side.rows.tolist())
        access = ListedAccess(side.instruction, side.elements, listed_rows, side.turns)
        accesses.append(access)
    store, load = accesses
    reach = max(int(side.rows.max()) + side.elements * size for side in sides)
    smem = -(-reach // ALIGN_BYTES) * ALIGN_BYTES
    steps: list[Step] = [Through(smem, "warp" if asked.local else "block", 1, store, load)]
    if sides[0].order != tuple(range(asked.stored.shape[1])):
        steps.insert(0, Take(sides[0].order, natural, natural))
    placed = {register: place for place, register in enumerate(sides[1].order)}
    after = tuple(placed[register] for register in asked.back)
    if after != tuple(range(len(sides[1].order))):
        steps.append(Take(after, natural, natural))
    return tuple(steps)
