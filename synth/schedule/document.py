"""The pipeline document of a modulo schedule: barriers from its rings, the ops of each role in order of their times.

A role whose ops lie S stages apart runs N + S - 1 iterations; an op of stage s works on iteration k - s and is guarded
at both ends. Commits of groups and waits for them are not guarded, so that the groups between them can be counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from layoutalg.proofs.pipeline.document import Barrier, Buffer, Pipeline, Role
from layoutalg.proofs.pipeline.ops import GROUPS, Op
from layoutalg.synth.schedule.solving import Placed
from layoutalg.synth.schedule.work import Dependence, Work, WorkOp

READS = {"tma": "tma_store", "tensor": "mma"}
"""How ops of a unit read a slot; others by ordinary loads."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """The start or the end of an op in its role: the stage, and the time within an iteration."""

    op: WorkOp
    what: Literal["start", "end"]
    stage: int
    row: int


def pipeline_of(work: Work, found: Placed, anchored: bool = False) -> Pipeline:
    """Return the pipeline of a schedule; nothing is proved about it.

    Args:
        work: The work.
        found: Its schedule.
        anchored: Whether iterations in which a role would run nothing get a fence: the order of what is before and
            after them is then part of the event graph.

    Example:
        >>> from layoutalg.synth.schedule.work import WorkOp, WorkRing, WorkRole
        >>> work = Work("copy", (WorkOp("load", "tma", 30, 500), WorkOp("use", "tensor", 64, 80)),
        ...     (Dependence("load", "use", ring="tile"),), (WorkRing("tile", 4096),),
        ...     (WorkRole("producer"), WorkRole("consumer")))
        >>> roles = {"load": "producer", "use": "consumer"}
        >>> print(pipeline_of(work, Placed(100, {"load": 0, "use": 500}, roles, {"tile": 6})))
        pipeline of 6 stages, N >= 0
          barriers  tile.full: 1 arrival, tile.empty: 1 arrival
          buffers   tile
          producer  loop: wait tile.empty[k], phase -1; arrive_tx tile.full[k], 4096 bytes; tma_load tile[k], \
tile.full[k]
          consumer  loop: wait tile.full[k]; mma tile[k]; mma_commit; mma_wait 0; arrive tile.empty[k]
    """
    barriers: list[tuple[str, Barrier]] = []
    for ring in work.rings:
        readers = {found.roles[edge.consumer] for edge in work.uses(ring.name)}
        barriers.append((f"{ring.name}.full", Barrier(1, found.depths[ring.name])))
        barriers.append((f"{ring.name}.empty", Barrier(len(readers), found.depths[ring.name])))
    buffers = [(ring.name, Buffer(found.depths[ring.name], ring.bytes)) for ring in work.rings if ring.bytes]
    used = [role.name for role in work.roles if role.name in found.roles.values()]
    roles = tuple([_role(work, found, name, anchored) for name in used])
    return Pipeline(max([1, *found.depths.values()]), tuple(barriers), tuple(buffers), roles)


def _role(work: Work, found: Placed, name: str, anchored: bool) -> Role:
    """Return a role; its iterations begin with its earliest op."""
    mine = [op for op in work.ops if found.roles[op.name] == name]
    origin = min(found.starts[op.name] for op in mine)
    moments = []
    for op in mine:
        start = found.starts[op.name] - origin
        moments.append(_Moment(op, "start", *divmod(start, found.ii)))
        moments.append(_Moment(op, "end", *divmod(start + op.latency, found.ii)))
    moments = [moment for moment in moments if moment.what == "start" or _ends(work, moment.op)]
    moments.sort(key=lambda moment: (moment.row, moment.what == "start"))  # what ends may be what the next start needs
    last = max(moment.stage for moment in moments)
    ops: list[Op] = []
    for place, moment in enumerate(moments):
        until = last - moment.stage
        emitted = _begin(work, found, moment) if moment.what == "start" else _end(work, found, moments, place)
        for one, (first, skipped) in emitted:
            if one.bar or one.buf:
                low, high = moment.stage + first, until + skipped
                one = dataclasses.replace(one, off=one.off - moment.stage, first=low, last=high)
            ops.append(one)
    if anchored and all(op.first or op.last for op in ops):
        ops.append(Op("proxy_fence"))
    return Role(name, loop=tuple(ops), trip=last)


def _ends(work: Work, op: WorkOp) -> bool:
    """Whether the role notices the end of an op."""
    reads = any(edge.ring and edge.consumer == op.name for edge in work.dependences)
    fills = any(edge.ring and edge.producer == op.name for edge in work.dependences)
    return reads or (fills and op.unit != "tma")


_Emitted: TypeAlias = Iterator[tuple[Op, tuple[int, int]]]
"""Ops with the iterations that leave them out: first ones, last ones."""


def _begin(work: Work, found: Placed, moment: _Moment) -> _Emitted:
    """Yield what starts an op: waits for the slots that it reads and fills, and the accesses."""
    name, read = moment.op.name, READS.get(moment.op.unit, "read")
    for ring in work.rings:
        mine = [edge for edge in work.uses(ring.name) if edge.consumer == name]
        for edge in sorted(mine, key=lambda edge: -edge.distance):
            if edge == _first(work, found, edge):
                yield Op("wait", f"{ring.name}.full", off=-edge.distance), (edge.distance, 0)
    for edge in work.dependences:
        if edge.ring and edge.consumer == name and work.sizes[edge.ring]:
            yield Op(read, buf=edge.ring, off=-edge.distance), (edge.distance, 0)
    if any(edge.ring and edge.consumer == name for edge in work.dependences) and read in GROUPS:
        yield Op(GROUPS[read][0]), (0, 0)
    for filled, skips in _filled(work, name):
        full, size = f"{filled}.full", work.sizes[filled]
        yield Op("wait", f"{filled}.empty", ph=-1), (0, skips)
        if moment.op.unit == "tma":
            yield Op("arrive_tx", full, bytes=size), (0, skips)
            yield Op("tma_load", full, filled), (0, skips)
        elif size:
            yield Op("write", buf=filled), (0, skips)


def _end(work: Work, found: Placed, moments: list[_Moment], place: int) -> _Emitted:
    """Yield what ends an op: the wait for its group, and the arrivals."""
    moment = moments[place]
    name, read = moment.op.name, READS.get(moment.op.unit, "read")
    reads = [edge for edge in work.dependences if edge.ring and edge.consumer == name]
    if reads and read in GROUPS:
        yield Op(GROUPS[read][1], n=_younger(work, moments, place)), (0, 0)
    filled = [] if moment.op.unit == "tma" else _filled(work, name)
    released = [edge for edge in reads if edge == _last(work, found, edge)]
    sized = [edge.ring for edge in reads if read == "read"] + [ring for ring, _ in filled]
    if any(work.sizes[ring] for ring in sized):
        yield Op("proxy_fence"), (0, 0)
    for ring, skips in filled:
        yield Op("arrive", f"{ring}.full", n=1), (0, skips)
    for edge in released:
        yield Op("arrive", f"{edge.ring}.empty", off=-edge.distance, n=1), (edge.distance, 0)


def _younger(work: Work, moments: list[_Moment], place: int) -> int:
    """Return the groups of the role that are committed after that of an op and before its end."""
    unit, end = moments[place].op.unit, moments[place]
    commits = [
        (at, moment)
        for at, moment in enumerate(moments)
        if moment.what == "start" and moment.op.unit == unit and _ends(work, moment.op)
    ]
    begun, start = next(pair for pair in commits if pair[1].op == end.op)
    between = (end.stage - start.stage) * len(commits)
    return between + sum([at < place for at, _ in commits]) - sum([at <= begun for at, _ in commits])


def _filled(work: Work, name: str) -> list[tuple[str, int]]:
    """Return the rings that an op fills, and how many of the last slots nobody reads."""
    rings = dict.fromkeys(edge.ring for edge in work.dependences if edge.producer == name and edge.ring)
    return [(ring, min(edge.distance for edge in work.uses(ring))) for ring in rings]


def _first(work: Work, found: Placed, edge: Dependence) -> Dependence:
    """Return the dependence through the same ring, into the same role and over the same distance, that is met first."""
    alike = [one for one in _mates(work, found, edge) if one.distance == edge.distance]
    return min(alike, key=lambda one: found.starts[one.consumer])


def _last(work: Work, found: Placed, edge: Dependence) -> Dependence:
    """Return the dependence through the same ring into the same role that ends last."""

    def end(one: Dependence) -> int:
        return found.starts[one.consumer] + work.by_name[one.consumer].latency + one.distance * found.ii

    return max(reversed(_mates(work, found, edge)), key=end)


def _mates(work: Work, found: Placed, edge: Dependence) -> list[Dependence]:
    """Return the dependences through the same ring into the same role, in the order in which equal times are met."""
    role, order = found.roles[edge.consumer], list(work.by_name)
    mates = [one for one in work.uses(edge.ring) if found.roles[one.consumer] == role]
    return sorted(mates, key=lambda one: order.index(one.consumer))
