"""Assign the moves of a tile to the dimensions (lines) of a map.

Notation: lines and moves as in ``lines``. A part is what one tile dimension adds to one line.

``layings`` enumerates every choice of one line per move whose stride divides the move's step: a row of the box, or a
line outside the box whose stride is the gcd of everything that moves along it. Under the tightest extents the engine's
test of a part is that it stays in its own range, widened by the ranges of the line's other parts. So another part on a
line never helps, and a partial choice is pruned as soon as some tile dimension has out-of-bounds coordinates that no
test can reject.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutalg.ground import clock
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import Box, Row
from layoutalg.synth.tensormap.lines import ALIGN, Line, Move, Moves
from layoutalg.synth.tensormap.sight import Form, Forms, Test
from layoutalg.targets.nvidia.tensormap import limits

Parts = dict[int, Form]
"""What each tile dimension adds to one line."""


@dataclass(frozen=True, slots=True)
class Laying:
    """The lines of a map, the moves along each, and what every tile dimension adds to it."""

    lines: tuple[Line, ...]
    moves: tuple[tuple[Move, ...], ...]
    parts: tuple[Parts, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """One assignment of the moves of one tile dimension."""

    targets: tuple[int | None, ...]  # per move a row, None (unassigned), or -1-k for the dimension's k-th own line
    own: int  # number of own lines
    parts: Parts  # what the dimension adds, by row or -1-k


@dataclass(slots=True)
class _Ways:
    """The ways of one tile dimension, each found when it is first needed."""

    source: Iterator[_Way]
    known: list[_Way] = field(default_factory=list)

    def __iter__(self) -> Iterator[_Way]:
        for at in itertools.count():
            if at == len(self.known):
                self.known.extend(itertools.islice(self.source, 1))
            if at == len(self.known):
                return
            yield self.known[at]


@dataclass(frozen=True, slots=True)
class _Group:
    """A line outside the box: the moves along it, what they add, whether its stride is 0, and its unit."""

    moves: tuple[Move, ...]
    parts: Parts
    stands: bool
    unit: int


@dataclass(frozen=True, slots=True)
class _Partial:
    """A laying under construction."""

    dims: tuple[int, ...]
    ways: tuple[_Way, ...]
    rows: tuple[Parts, ...]
    groups: tuple[_Group, ...]


def layings(
    forms: Forms, box: Box, moves: Moves, lines: tuple[Line, ...], ratio: int, wanted: str, plain: bool = False
) -> Iterator[Laying]:
    """Yield the layings that may reach a class, fewer lines first.

    Args:
        forms: The problem, and what its tile dimensions add.
        box: What one copy carries.
        moves: The moves of its copies.
        lines: The lines of its rows.
        ratio: Problem elements per map element.
        wanted: ``"exact"``, ``"weak"`` or ``"lost"``.
        plain: Whether the lines are the tensor's own dimensions: none has moves of several, and a line that alone
            carries one has its pitch.
    """
    problem = forms.problem
    free = [forms.guarded(dim, [], wanted) for dim in range(problem.rank)]
    room, least = limits.MAX_RANK - len(lines), max(0, free.count(False) - len(lines))
    if least > room:
        return  # too many dimensions need their own line
    ways = [_Ways(_ways(forms, box, lines, dim, mine, room, wanted, plain)) for dim, mine in enumerate(moves)]
    if any(next(iter(found), None) is None for found in ways):
        return
    order = sorted(range(problem.rank), key=lambda dim: (free[dim], len(moves[dim])))
    inner = frozenset(box.atoms[index].dim for index in box.rows[0].atoms)
    units = tuple(line.unit for line in lines)
    search = _Search(forms, wanted, ratio, plain, units, inner, tuple(order), ways, moves)
    start = _Partial((), (), ({},) * len(lines), ())
    for count in range(least, room + 1):
        for done in search.laid(start, count):
            extra = tuple(_group_line(group) for group in done.groups)
            laid = [
                pair
                for dim, way in zip(done.dims, done.ways, strict=True)
                for pair in zip(moves[dim], way.targets, strict=True)
            ]
            along = [tuple(move for move, target in laid if target == at) for at in range(len(lines))]
            along += [group.moves for group in done.groups]
            yield Laying((*lines, *extra), tuple(along), (*done.rows, *(group.parts for group in done.groups)))


def _along(problem: TensorMapProblem, box: Box, row: Row, dim: int) -> bool:
    """Whether a row walks a tile dimension, or whole dimensions that never move and that it continues."""
    walked = {box.atoms[index].dim for index in row.atoms}
    if dim in walked or row.step * row.count != problem.global_strides[dim]:
        return dim in walked
    moved = {box.atoms[index].dim for index in box.loops} | {at for at, m in enumerate(problem.origin_multiple) if m}
    return not walked & moved


def _ways(
    forms: Forms, box: Box, lines: tuple[Line, ...], dim: int, moves: list[Move], room: int, wanted: str, plain: bool
) -> Iterator[_Way]:
    """Yield the assignments of one tile dimension's moves that guard it where no other dimension moves its lines.

    Rows along the dimension come first, then its own lines, then other rows.
    """
    size = forms.problem.element_bytes
    along = [_along(forms.problem, box, row, dim) for row in box.rows]
    coarse = sorted(range(len(lines)), key=lambda at: -lines[at].stride_bytes)

    def lay(targets: tuple[int | None, ...], own: int) -> Iterator[tuple[tuple[int | None, ...], int]]:
        if len(targets) == len(moves):
            yield targets, own
            return
        move = moves[len(targets)]
        rows = [at for at in coarse if lines[at].carries(move, size)]
        groups = range(-1, -1 - min(own + 1, room), -1) if move.step * size % ALIGN == 0 else ()
        for at in (*[at for at in rows if along[at]], *groups, *[at for at in rows if not (along[at] or plain)]):
            yield from lay((*targets, at), max(own, -at))
        if move.step == 0 or (move.atom is None and forms.sights[move.dim].stays):
            yield from lay((*targets, None), own)

    for targets, own in lay((), 0):
        parts: Parts = {}
        for at in (*range(len(lines)), *(-1 - group for group in range(own))):
            mine = [move for move, target in zip(moves, targets, strict=True) if target == at]
            atoms = [move.atom for move in mine if move.atom is not None]
            if at >= 0:
                atoms += [index for index in box.rows[at].atoms if box.atoms[index].dim == dim]
            if not mine and not atoms:
                continue
            part = forms.form(box, dim, tuple(atoms), any(move.atom is None for move in mine))
            if part is None:
                break
            parts[at] = part
        else:
            tests = [(part, part.low, part.high) for part in parts.values()]
            if forms.inside(dim, tests) and forms.guarded(dim, tests, wanted):
                yield _Way(targets, own, parts)


@dataclass(frozen=True, slots=True)
class _Search:
    """Parameters of one search for layings."""

    forms: Forms  # the problem, and what its tile dimensions add
    wanted: str  # the class
    ratio: int  # problem elements per map element
    plain: bool  # whether the lines are the tensor's own dimensions
    units: tuple[int, ...]  # unit of one coordinate, per row of the box
    inner: frozenset[int]  # the tile dimensions that the innermost row walks
    order: tuple[int, ...]  # the order in which tile dimensions are assigned
    ways: list[_Ways]  # per tile dimension
    moves: Moves  # per tile dimension

    def laid(self, partial: _Partial, count: int) -> Iterator[_Partial]:
        """Yield the layings with ``count`` lines outside the box, one tile dimension at a time."""
        clock.check("the search for a map")
        left = self.order[len(partial.dims) :]
        if len(partial.groups) + sum(len(self.moves[dim]) for dim in left) < count:
            return
        if not left:
            yield partial
            return
        dim = left[0]
        stands = self.forms.problem.global_strides[dim] == 0
        size = self.forms.problem.element_bytes
        for way in self.ways[dim]:
            fitting = [not (self.plain or stands or group.stands) for group in partial.groups]
            for places in _places(way.own, fitting, count):
                pitch = abs(self.forms.problem.global_strides[dim]) * size
                own = self.plain and len(way.parts) == 1 and pitch % ALIGN == 0
                grown = _grow(partial, dim, way, self.moves[dim], places, stands, size, pitch if own else 0)
                if self.holds(grown):
                    yield from self.laid(grown, count)

    def holds(self, partial: _Partial) -> bool:
        """Whether the class is still reachable and the extents are within the limit after the latest tile dimension."""
        every = [*partial.rows, *(group.parts for group in partial.groups)]
        units = (*self.units, *(group.unit for group in partial.groups))
        latest = partial.dims[-1]
        changed = [(parts, unit) for parts, unit in zip(every, units, strict=True) if latest in parts]
        for parts, unit in changed:
            if sum(part.high - part.low for part in parts.values()) >= limits.MAX_DIM * unit * self.ratio:
                return False
        slack = alignment(self.forms.problem, every[0], self.ratio) if self.inner.issubset(partial.dims) else (0, 0)
        if slack == (0, 0) and all(len(parts) == 1 for parts, _ in changed):
            return True  # on lines of its own it is guarded as its way is, and the others as before
        return reaches(self.forms, partial.dims, every, slack, self.wanted)


def _places(own: int, fitting: list[bool], count: int) -> Iterator[tuple[int, ...]]:
    """Yield places for a tile dimension's own lines: distinct existing ones, or new ones in order."""

    def place(chosen: tuple[int, ...], new: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == own:
            yield chosen
            return
        if new < count:
            yield from place((*chosen, new), new + 1)
        for at, fits in enumerate(fitting):
            if fits and at not in chosen:
                yield from place((*chosen, at), new)

    yield from place((), len(fitting))


def _grow(
    partial: _Partial,
    dim: int,
    way: _Way,
    moves: list[Move],
    places: tuple[int, ...],
    stands: bool,
    size: int,
    pitch: int,
) -> _Partial:
    """Assign one more tile dimension; its own lines have this pitch, if any, or step as it moves."""
    rows = tuple({**parts, dim: way.parts[at]} if at in way.parts else parts for at, parts in enumerate(partial.rows))
    groups = list(partial.groups)
    for own, at in enumerate(places):
        mine = tuple(move for move, target in zip(moves, way.targets, strict=True) if target == -1 - own)
        unit = pitch or math.gcd(*(move.tile_step if stands else move.step * size for move in mine))
        part = {dim: way.parts[-1 - own]}
        if at < len(groups):
            joined = groups[at].parts | part
            groups[at] = _Group((*groups[at].moves, *mine), joined, stands, math.gcd(unit, groups[at].unit))
        else:
            groups.append(_Group(mine, part, stands, unit))
    return _Partial((*partial.dims, dim), (*partial.ways, way), rows, tuple(groups))


def reaches(forms: Forms, dims: tuple[int, ...], every: list[Parts], slack: tuple[int, int], wanted: str) -> bool:
    """Predict the class: guard tile dimensions one by one, each by lines shared only with guarded ones.

    Args:
        forms: The problem.
        dims: The tile dimensions to guard.
        every: What they add to each line.
        slack: Bytes by which alignment widens the innermost line below and above.
        wanted: The class.
    """
    guarded: set[int] = set()
    pending = list(dims)
    while pending and wanted != "lost":
        found = [dim for dim in pending if forms.guarded(dim, _tests(dim, guarded, every, slack), wanted)]
        if not found:
            return False
        guarded.update(found)
        pending = [dim for dim in pending if dim not in guarded]
    return True


def _tests(dim: int, guarded: set[int], every: list[Parts], slack: tuple[int, int]) -> list[Test]:
    """The tests of a tile dimension on lines it shares only with guarded dimensions."""
    tests = []
    for at, parts in enumerate(every):
        if dim not in parts or any(other != dim and other not in guarded for other in parts):
            continue
        spread = sum(part.high - part.low for other, part in parts.items() if other != dim)
        below, above = slack if at == 0 else (0, 0)
        tests.append((parts[dim], parts[dim].low - spread - below, parts[dim].high + spread + above))
    return tests


def alignment(problem: TensorMapProblem, inner: Parts, ratio: int) -> tuple[int, int]:
    """Return the bytes by which alignment widens the innermost line, below and above.

    Start coordinates are multiples of 16 bytes, map elements are whole, and rows of a store are whole chunks.
    """
    size = problem.element_bytes
    low, high = sum(part.low for part in inner.values()), sum(part.high for part in inner.values()) + size
    return low % ALIGN, -high % grain(problem, ratio)


def grain(problem: TensorMapProblem, ratio: int) -> int:
    """Return the bytes of which the innermost line ends at a multiple: a map element, or a chunk of a store."""
    return ratio * problem.element_bytes if problem.direction == "load" else ALIGN


def _group_line(group: _Group) -> Line:
    """The line outside the box for these moves; finer if its stride would exceed the limit."""
    if group.stands:
        return Line(0, 1, 1, group.moves[0].dim, group.unit)
    stride = group.unit
    if stride >= limits.STRIDE_LIMIT_BYTES:
        least = stride // limits.STRIDE_LIMIT_BYTES + 1
        fitting = (k for k in range(least, 64 * least) if stride % (k * ALIGN) == 0)
        stride //= next(fitting, 1)
    return Line(stride, 1, 1, None, stride)
