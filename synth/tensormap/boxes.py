"""Enumerate the boxes that a tile allows: the parts of shared memory that one copy fills, for any map dimensions.

Notation: an atom is a digit of one tile dimension; one count of it moves ``step`` global elements (negative for a
negative stride) and ``stride`` shared elements. A row of a box walks one atom, a part of one, or several that continue
each other both in global and in shared memory.

One copy fills shared memory without gaps (rows at the swizzle span), so a box is a prefix of the atoms in shared-memory
order, each row starting where the previous ones end. The last row may be a part of an atom, and its copies may overlap.
The rest becomes issues; ``views`` chooses the map dimensions that carry them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.ground import clock
from layoutalg.ground.digits import merge, placed
from layoutalg.ground.limits import TILE_ISSUES
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

ALIGN = limits.GLOBAL_ALIGN_BYTES
THIN_BYTES = 64


@dataclass(frozen=True, slots=True)
class Atom:
    """A digit of a tile dimension: tile coordinates, shared elements and global elements per count, and its extent."""

    dim: int
    place: int
    extent: int
    stride: int
    step: int


@dataclass(frozen=True, slots=True)
class Row:
    """A dimension of the box: its atoms, fastest first, its element count and the global step between elements."""

    atoms: tuple[int, ...]
    count: int
    step: int


@dataclass(frozen=True, slots=True)
class Box:
    """What one copy carries, innermost row first, and what is left to loops of issues.

    Args:
        atoms: The atoms of the tile in shared-memory order; split ones count as two.
        rows: The dimensions of the box.
        loops: The atoms that no row walks.
        starts: Starts of the copies on the last row's last atom (counts); ``(0,)`` if one copy carries all of it.
    """

    atoms: tuple[Atom, ...]
    rows: tuple[Row, ...]
    loops: tuple[int, ...]
    starts: tuple[int, ...] = (0,)

    @property
    def issues(self) -> int:
        """Copies per tile."""
        return len(self.starts) * math.prod(self.atoms[index].extent for index in self.loops)

    @property
    def own(self) -> bool:
        """Whether each row walks a tile dimension of its own, so that a map may have the tensor's dimensions."""
        dims = [{self.atoms[index].dim for index in row.atoms} for row in self.rows]
        return all(len(mine) == 1 for mine in dims) and len(set().union(*dims)) == len(dims)

    def thin(self, swizzle: str, element_bytes: int) -> bool:
        """Whether the innermost row is a small part of a longer one: fewer issues, but slower copies."""
        count = self.rows[0].count
        longer = any(atom.stride == count and atom.step == count for atom in self.atoms)
        whole = THIN_BYTES if swizzle == "NONE" else min(THIN_BYTES, hardware.swizzle_span_bytes(swizzle))
        return longer and count * element_bytes < whole


@dataclass(frozen=True, slots=True)
class _State:
    """A box under construction: ``following`` is the next atom, ``filled`` the shared stride it must have."""

    atoms: tuple[Atom, ...]
    rows: tuple[Row, ...]
    following: int
    filled: int


def tile_atoms(problem: TensorMapProblem) -> tuple[Atom, ...]:
    """Return the atoms of a tile in shared-memory order."""
    atoms = [
        Atom(dim, place, extent, stride, place * problem.element_strides[dim] * problem.global_strides[dim])
        for dim, modes in enumerate(problem.smem_modes)
        for place, extent, stride in placed(merge(modes))
    ]
    return tuple(sorted(atoms, key=lambda atom: (atom.stride, abs(atom.step), atom.dim)))


def boxes(problem: TensorMapProblem, swizzle: str, ratio: int) -> Iterator[Box]:
    """Yield the boxes of a tile in map elements of ``ratio`` problem elements."""
    atoms = tile_atoms(problem)
    size = problem.element_bytes
    if not atoms or atoms[0].stride != 1 or atoms[0].step != 1:
        return
    pending = []
    for box, state in _inner(atoms, swizzle, ratio, size):
        if box is not None and _aligned(box, size):
            yield box
        if state is not None:
            pending.append(state)
    while pending:
        clock.check("the search for a box")
        state = pending.pop()
        yield from (box for box in _stops(state, size) if _aligned(box, size))
        pending.extend(_grown(state, size))


def _inner(atoms: tuple[Atom, ...], swizzle: str, ratio: int, size: int) -> Iterator[tuple[Box | None, _State | None]]:
    """Yield the innermost rows: whole atoms that continue each other, a divisor of one, or parts that overlap."""
    span = None if swizzle == "NONE" else hardware.swizzle_span_bytes(swizzle) // size
    limit = limits.MAX_BOX * ratio if span is None else min(limits.MAX_BOX * ratio, span)
    grain = math.lcm(ratio, ALIGN // math.gcd(ALIGN, size))
    count = 1
    for index, atom in enumerate(atoms):
        if atom.stride != count or atom.step != count:
            return
        walked = tuple(range(index))
        whole = count * atom.extent
        if whole <= limit:
            if whole % grain == 0:
                row = Row((*walked, index), whole, 1)
                yield None, _State(atoms, (row,), index + 1, whole if span is None else span)
            count = whole
            continue
        for part in _divisors(atom.extent, limit // count):
            if count * part % grain == 0:
                cut = _cut(atoms, index, part)
                row = Row((*walked, index), count * part, 1)
                yield None, _State(cut, (row,), index + 1, count * part if span is None else span)
        if span is None and not walked:
            for part, starts in _overlapping(atom.extent, limit, size):
                if part % grain == 0:
                    yield Box(atoms, (Row((0,), part, 1),), tuple(range(1, len(atoms))), starts), None
                    break
        return


def _divisors(extent: int, limit: int) -> list[int]:
    """Proper divisors of an extent, the largest first."""
    return [part for part in range(min(limit, extent // 2), 1, -1) if extent % part == 0]


def _cut(atoms: tuple[Atom, ...], index: int, part: int) -> tuple[Atom, ...]:
    """Cut an atom in two."""
    atom = atoms[index]
    below = replace(atom, extent=part)
    above = replace(
        atom, place=atom.place * part, extent=atom.extent // part, stride=atom.stride * part, step=atom.step * part
    )
    return (*atoms[:index], below, above, *atoms[index + 1 :])


def _overlapping(extent: int, limit: int, pitch_bytes: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return equal parts that cover an extent from aligned starts, fewest first; the last part ends at its end."""
    grain = limits.SMEM_DESTINATION_ALIGN_BYTES // math.gcd(limits.SMEM_DESTINATION_ALIGN_BYTES, pitch_bytes)
    parts = [part for part in range(limit, grain - 1, -1) if (extent - part) % grain == 0]
    turns = {part: -(-(extent - part) // (part // grain * grain)) + 1 for part in parts}
    return [
        (part, tuple(min(turn * (part // grain * grain), extent - part) for turn in range(turns[part])))
        for part in sorted(parts, key=lambda part: (turns[part], part))
        if turns[part] <= TILE_ISSUES
    ]


def _grown(state: _State, size: int) -> Iterator[_State]:
    """Also carry the next atom: in the last row if it continues it, or in its own row, whole or in part."""
    if state.following == len(state.atoms):
        return
    atom, last = state.atoms[state.following], state.rows[-1]
    if atom.stride != state.filled:
        return
    joins = len(state.rows) > 1 and atom.step == last.step * last.count
    if joins and last.count * atom.extent <= limits.MAX_BOX:
        row = Row((*last.atoms, state.following), last.count * atom.extent, last.step)
        yield _State(state.atoms, (*state.rows[:-1], row), state.following + 1, state.filled * atom.extent)
    if not _row_ok(state, atom, size):
        return
    longest = _longest(atom, size)
    parts = [atom.extent] if atom.extent <= longest else _divisors(atom.extent, longest)
    for part in parts:
        atoms = state.atoms if part == atom.extent else _cut(state.atoms, state.following, part)
        row = Row((state.following,), part, atom.step)
        yield _State(atoms, (*state.rows, row), state.following + 1, state.filled * part)


def _row_ok(state: _State, atom: Atom, size: int) -> bool:
    return len(state.rows) < limits.MAX_RANK and atom.step >= 0 and atom.step * size % ALIGN == 0


def _longest(atom: Atom, size: int) -> int:
    """Maximum elements of a row of this atom; a pitch past the limit is walked by an element stride."""
    for step in range(1, limits.MAX_ELEMENT_STRIDE + 1):
        if atom.step * size % (step * ALIGN) == 0 and atom.step * size // step < limits.STRIDE_LIMIT_BYTES:
            return (limits.MAX_BOX - 1) // step + 1
    return 0


def _stops(state: _State, size: int) -> Iterator[Box]:
    """End the box here, or with overlapping parts of the next atom if no row carries all of it."""
    loops = tuple(range(state.following, len(state.atoms)))
    yield Box(state.atoms, state.rows, loops)
    if not loops:
        return
    atom = state.atoms[state.following]
    longest = _longest(atom, size)
    if atom.stride != state.filled or not _row_ok(state, atom, size) or not 1 < longest < atom.extent:
        return
    for part, starts in _overlapping(atom.extent, longest, atom.stride * size)[:1]:
        yield Box(state.atoms, (*state.rows, Row((state.following,), part, atom.step)), loops[1:], starts)


def _aligned(box: Box, size: int) -> bool:
    """Whether every issue starts at an aligned shared address and their number is within the limit."""
    last = box.atoms[box.rows[-1].atoms[-1]]
    offsets = [box.atoms[index].stride for index in box.loops] + [start * last.stride for start in box.starts]
    return box.issues <= TILE_ISSUES and not any(
        offset * size % limits.SMEM_DESTINATION_ALIGN_BYTES for offset in offsets
    )
