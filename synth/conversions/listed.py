"""Conversions through shared memory for layouts that are not linear over F2: elements are placed one by one.

Of the places that hold an element, one stores it, the first by register; every thread loads what it needs. A placement
gives each element an offset: its number, or the place that stores or first loads it (registers or threads fastest),
with some padding after every row of a period. Registers with adjacent offsets in all threads move together. Placements
are ranked by the bank models, and the best few are compared including the cost of their addresses; no claim is made
that the winner is optimal.

If every element is loaded once and moves alone, some placement is conflict-free: the elements are the edges of a
bipartite graph between the lane groups of stores and of loads that are served together; a group has at most as many
lanes as there are bank columns, so an edge colouring with that many colours (König) puts no two elements of a group
into one column. Its addresses have no formula, so it is just one of the placements compared.

If registers split into groups that exchange elements only within the group, passes reuse the same bytes.

Implementation notes: if every warp holds all it needs, each stores its own elements, and a warp barrier is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion_steps import WORD_BITS, Step, Through, taken_by
from layoutalg.proofs.listed_access import OUT, UNCOUNTED, ListedAccess, strides
from layoutalg.proofs.swizzling import instruction_name, widths
from layoutalg.synth.factor.shuffles import by_paths
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.banks import bank_model

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ALIGN_BYTES = 16
VECTORS = (128, 64, 32, 16, 8)
FEW = 4
"""Number of best placements compared with the cost of their addresses."""
MOST_PERIODS = 6
MOST_COLOURED = 1 << 12
"""Largest graph that is coloured, in elements."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Element labels by thread and register, for stores and loads, and which of them move."""

    stored: IntArray
    storing: BoolArray
    loaded: IntArray
    labels: int
    numbers: IntArray
    local: bool


@dataclass(frozen=True, slots=True)
class Side:
    """An access under a placement: register order, byte addresses, turns."""

    order: tuple[int, ...]
    elements: int
    instruction: str
    rows: IntArray
    turns: int
    ideal: int
    estimate: float


def listed(
    have: IntArray, want: IntArray, element_bits: int, target: str, smem_bytes: int, cycles: Callable[..., float]
) -> tuple[tuple[Step, ...], str] | str:
    """Return steps that bring elements, int64[warp, lane, register], to where they are wanted, or why none.

    With the steps comes the placement in words.
    """
    size, (warps, lanes, before) = element_bits // 8, have.shape
    columns, back = np.unique(want.reshape(warps * lanes, -1), axis=1, return_inverse=True)  # each is loaded once
    passes = _passes(have, columns.reshape(warps, lanes, -1), smem_bytes // size)
    if isinstance(passes, int):
        return f"a pass needs at least {passes * size} bytes, but only {smem_bytes} are available"
    found: list[_Found] = []

    def tried(told: str, offsets: list[IntArray]) -> None:
        if max(-(-(int(each.max()) + 1) * size // ALIGN_BYTES) * ALIGN_BYTES for each in offsets) <= smem_bytes:
            sides = _sides(passes, offsets, element_bits, target, lanes)
            if sides is not None:
                found.append(_Found(sides[0].estimate + sides[1].estimate, len(found), told, sides))

    moved = sum(int(np.count_nonzero(each.asked.storing)) + each.asked.loaded.size for each in passes)
    others: list[dict[str, IntArray]] = []
    for told, offsets in _placements(passes[0].asked, element_bits):
        others = others or [dict(_placements(each.asked, element_bits)) for each in passes[1:]]
        if all(told in each for each in others):
            tried(told, [offsets, *(each[told] for each in others)])
        if found and found[-1].estimate <= moved * size / TURN_BYTES:  # every bank busy in every turn, no table
            break
    found.sort(key=lambda each: (each.estimate, each.number))
    if found and any(side.turns > side.ideal for side in found[0].sides):
        coloured = [_coloured(each.asked, element_bits, target, lanes) for each in passes]
        if not any(each is None for each in coloured):
            tried("by colouring the lane groups", [each for each in coloured if each is not None])
            found.sort(key=lambda each: (each.estimate, each.number))
    best: tuple[float, str, tuple[Step, ...]] | None = None
    for each in found[:FEW]:
        steps = _steps(passes, each.sides, element_bits, before, back.reshape(-1).tolist())
        cost = cycles(steps)
        if best is None or cost < best[0]:
            best = (cost, each.told + _conflicts(each.sides), steps)
    if best is None:
        return f"no placement of {max(each.asked.labels for each in passes) * size} bytes fits into {smem_bytes}"
    return best[2], f"{best[1]}, the best of {len(found)} placements"


@dataclass(frozen=True, slots=True)
class _Pass:
    """The source and destination registers of one pass."""

    source: tuple[int, ...]
    wanted: tuple[int, ...]
    asked: _Asked


@dataclass(frozen=True, slots=True)
class _Found:
    """A placement and its estimated cost; ties go to the earlier one."""

    estimate: float
    number: int
    told: str
    sides: tuple[Side, Side]


def _passes(have: IntArray, want: IntArray, most: int) -> tuple[_Pass, ...] | int:
    """The fewest passes whose elements fit; if none fit, the number of elements in the smallest pass."""
    registers, wanted = tuple(range(have.shape[2])), tuple(range(want.shape[2]))
    whole = _asked(have, want, most)
    if whole.labels <= most:
        return (_Pass(registers, wanted, whole),)
    least = whole.labels
    groups = _apart(have, want)
    if len({(len(mine), len(theirs)) for mine, theirs in groups}) == 1:
        for count in range(2, len(groups) + 1):
            if len(groups) % count:
                continue
            each = len(groups) // count
            passes = []
            for number in range(count):
                joined = groups[number * each : (number + 1) * each]
                mine, theirs = (tuple(sorted(sum((group[end] for group in joined), ()))) for end in (0, 1))
                passes.append(_Pass(mine, theirs, _asked(have[:, :, list(mine)], want[:, :, list(theirs)], most)))
            least = max(one.asked.labels for one in passes)
            if least <= most:
                return tuple(passes)
    return least


def _apart(have: IntArray, want: IntArray) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Group source and destination registers: two are together if they share an element."""
    registers = have.shape[2]
    values, places = np.unique(have, return_inverse=True)
    holders = np.zeros((len(values), registers), dtype=bool)
    holders[places.reshape(-1), np.broadcast_to(np.arange(registers), have.shape).reshape(-1)] = True
    at = np.searchsorted(values, want).reshape(-1, want.shape[2])
    sets = [(set(np.flatnonzero(holders[at[:, register]].any(axis=0)).tolist()), {register})
            for register in range(want.shape[2])]  # fmt: skip
    joined: list[tuple[set[int], set[int]]] = []
    for mine, theirs in sets:
        for other in [each for each in joined if each[0] & mine]:
            joined.remove(other)
            mine, theirs = mine | other[0], theirs | other[1]
        joined.append((mine, theirs))
    return [(tuple(sorted(mine)), tuple(sorted(theirs))) for mine, theirs in joined]


def _sides(
    passes: tuple[_Pass, ...], offsets: list[IntArray], element_bits: int, target: str, lanes: int
) -> tuple[Side, Side] | None:
    """The accesses of all passes; None if passes need different instructions."""
    ends: list[list[Side]] = [[], []]
    for each, places in zip(passes, offsets, strict=True):
        asked = each.asked
        every = np.ones_like(asked.loaded, dtype=bool)
        store = side_of(places[asked.stored], asked.storing, "store", element_bits, target, lanes)
        ends[0].append(replace(store, order=tuple(each.source[register] for register in store.order)))
        ends[1].append(side_of(places[asked.loaded], every, "load", element_bits, target, lanes))
    if any(len({(side.instruction, side.rows.shape) for side in sides}) > 1 for sides in ends):
        return None
    store, load = (
        replace(
            sides[0], rows=np.concatenate([side.rows for side in sides]),
            order=tuple(register for side in sides for register in side.order),
            turns=UNCOUNTED if sides[0].turns == UNCOUNTED else sum(side.turns for side in sides),
            ideal=sum(side.ideal for side in sides), estimate=sum(side.estimate for side in sides),
        )
        for sides in ends
    )  # fmt: skip
    return store, load


def _conflicts(sides: tuple[Side, Side]) -> str:
    """The remaining conflicts, if turns are known."""
    if any(side.turns == UNCOUNTED for side in sides):
        return ""
    turns, ideal = (sum(getattr(side, name) for side in sides) for name in ("turns", "ideal"))
    return " (no conflicts)" if turns == ideal else f" ({turns} turns, {ideal} without conflicts)"


def _asked(have: IntArray, want: IntArray, most: int) -> _Asked:
    """Labels 0, 1, ... of the needed elements; separate labels per warp if no warp needs another's elements."""
    warps, lanes, registers = have.shape
    threads = warps * lanes
    local = all(np.isin(want[warp], have[warp]).all() for warp in range(warps))
    values = np.unique(want)
    if local and warps * len(values) > most:
        local = False
    owner = np.arange(threads)[:, None] // lanes * len(values) * local
    flat = have.reshape(threads, registers)
    near = np.minimum(np.searchsorted(values, flat), len(values) - 1)
    stored = near + owner
    held = values[near] == flat
    loaded = np.searchsorted(values, want.reshape(threads, -1)) + owner
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
    return _Asked(stored, storing, loaded, len(needed), numbers.reshape(-1), local)


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
            if len(known) < asked.labels:  # some labels of a warp are not needed
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
                yield f"{told}, {amount} skipped after every {period}", offsets + offsets // period * amount


def _coloured(asked: _Asked, element_bits: int, target: str, lanes: int) -> IntArray | None:
    """Offsets that put no two lanes of a group into one bank; None if groups are unknown or too large."""
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
    """Candidate row lengths for padding: strides between neighbouring threads or registers, and lines of banks."""
    found = {TURN_BYTES // size: 0}
    for labels in (asked.stored, asked.loaded):
        at = offsets[labels]
        for steps in (np.diff(at[: 2 * 64], axis=0).reshape(-1), np.diff(at[:1], axis=1).reshape(-1)):
            for step, count in zip(*np.unique(np.abs(steps), return_counts=True), strict=True):
                if step > 1 and 2 * step <= offsets.max():
                    found[int(step)] = found.get(int(step), 0) + int(count)
    return sorted(found, key=lambda period: (-found[period], period))[:MOST_PERIODS]


def side_of(offsets: IntArray, live: BoolArray, kind: str, element_bits: int, target: str, lanes: int) -> Side:
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
        least = int(np.count_nonzero(by_warp != OUT)) * bits // 8 / TURN_BYTES
        tables = _tables(rows) * (len(rows[0]) // lanes)
        estimate = (least if turns == UNCOUNTED else turns) + tables
        return Side(order, vector, name, rows, turns, ideal, estimate)
    raise AssertionError("single elements always move")


def _tables(rows: IntArray) -> int:
    """Estimate of the address tables needed: rows that are not a sum of strided digits, equal ones counted once."""
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
    turns, ideal = model.group_turns(rows, rows != OUT)
    return int(turns.sum()), int(ideal.sum())


def _grouped(offsets: IntArray, live: BoolArray, kept: list[int], vector: int) -> list[list[int]] | None:
    """Registers in groups adjacent in all threads, the first aligned; None if some are in no group."""
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


def _steps(
    passes: tuple[_Pass, ...], sides: tuple[Side, Side], element_bits: int, before: int, back: Sequence[int]
) -> tuple[Step, ...]:
    """The steps of all passes; ``back`` maps each final register to the loaded one it copies."""
    natural, size = max(1, WORD_BITS // element_bits), element_bits // 8
    store, load = (
        ListedAccess(side.instruction, side.elements, tuple(tuple(row) for row in side.rows.tolist()), side.turns)
        for side in sides
    )
    reach = max(int(side.rows.max()) + side.elements * size for side in sides)
    smem = -(-reach // ALIGN_BYTES) * ALIGN_BYTES
    local = all(each.asked.local for each in passes)
    step = Through(smem, "warp" if local else "block", len(passes), store, load)
    each = len(sides[1].order) // len(passes)
    at: dict[int, int] = {}
    for number, one in enumerate(passes):
        placed = {register: place for place, register in enumerate(sides[1].order[number * each : (number + 1) * each])}
        at |= {register: number * each + placed[place] for place, register in enumerate(one.wanted)}
    after = taken_by([at[column] for column in back], len(sides[1].order), natural)
    return (*taken_by(sides[0].order, before, natural), step, *after)
