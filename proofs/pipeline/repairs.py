"""Single changes of a pipeline that make it provable, each proved again before it is offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from layoutalg.ground.errors import Repair
from layoutalg.proofs.pipeline.document import Pipeline, Role
from layoutalg.proofs.pipeline.expansion import ranks, senders
from layoutalg.proofs.pipeline.ops import COPIES, GROUP_WAITS, GROUPS, Op, Part
from layoutalg.proofs.pipeline.proving import Proof, prove

MOST = 3
"""repairs: offered at a time"""
TRIES = 400
"""changes: proved at a time"""


@lru_cache(maxsize=64)
def repairs(pipeline: Pipeline, policy: str) -> tuple[Repair, ...]:
    """Return up to three single changes with which the pipeline is safe for every N, the mildest first."""
    found: list[Repair] = []
    seen = {pipeline}
    for tried, (name, detail, changed) in enumerate(_changes(pipeline)):
        if tried == TRIES or len(found) == MOST:
            break
        if changed in seen:
            continue
        seen.add(changed)
        if isinstance(prove(changed, policy), Proof):
            found.append(Repair(name, detail, changed.to_json()))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Place:
    """An op of a pipeline."""

    pipeline: Pipeline
    role: Role
    part: Part
    place: int
    op: Op

    def __str__(self) -> str:
        return f"{self.role.where(self.part, self.place)}, {self.op}"

    def put(self, *ops: Op) -> Pipeline:
        """Return the pipeline with other ops in its place."""
        old = self.role.part(self.part)
        return _put(self.pipeline, _part(self.role, self.part, (*old[: self.place], *ops, *old[self.place + 1 :])))

    def replaced(self, **entries: Any) -> Pipeline:
        """Return the pipeline with other entries of this op."""
        return self.put(replace(self.op, **entries))


def _changes(pipeline: Pipeline) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield (what to do, where, the changed pipeline)."""
    places = [_Place(pipeline, role, *one) for role in pipeline.roles for one in role.ops()]
    for one in places:
        op = one.op
        if op.flip:
            yield "use the plain parity", str(one), one.replaced(flip=False)
        if one.part == "loop" and op.idx_abs is not None and not one.role.threads_of:
            yield "follow the iteration", str(one), one.replaced(idx_abs=None)
        if op.op in GROUP_WAITS:
            for least in range(op.n - 1, -1, -1):
                told = f"leave at most {least} open" if least else "wait for all groups"
                yield told, str(one), one.replaced(n=least)
    for one in places:
        yield from _bytes(one)
    yield from _counts(pipeline)
    for one in places:
        at = f"{one.role.name}.{one.part}, before {one.op}"
        if one.op.op in ("arrive", *COPIES, "tma_store", "mma"):
            yield "fence the proxies", at, one.put(Op("proxy_fence"), one.op)
        if one.op.op == "read" and one.op.buf in pipeline.registers:
            yield "wait for all groups", at, one.put(Op("mma_wait"), one.op)
    arrivals = [one for one in places if one.op.op == "arrive"]
    for one in arrivals:
        ops = one.role.part(one.part)
        for after in range(one.place + 1, len(ops)):
            later = (*ops[: one.place], *ops[one.place + 1 : after + 1], one.op, *ops[after + 1 :])
            where = f"{one.role.name}.{one.part}: {one.op} after {ops[after]}"
            yield "arrive later", where, _put(pipeline, _part(one.role, one.part, later))
    for one in arrivals:
        if one.op.idx_abs is None:
            for off in (one.op.off - 1, one.op.off + 1):
                yield f"arrive for {one.op.bar}{replace(one.op, off=off).at}", str(one), one.replaced(off=off)
    for one in places:
        if one.op.bar:
            for phase in (one.op.ph - 1, one.op.ph + 1):
                yield f"use phase {phase}", str(one), one.replaced(ph=phase)
    for role in pipeline.roles:
        if role.trip:
            yield "run as often as the others", role.name, _put(pipeline, replace(role, trip=0))
    for one in places:
        if one.op.op in ("arrive", "mma_arrive") and len(ranks(one.op, 0)) < pipeline.cluster:
            yield "arrive in all CTAs", str(one), one.replaced(to=(tuple(range(pipeline.cluster)),))
    yield from _missing(pipeline)
    for place, (name, buffer) in enumerate(pipeline.buffers):
        if buffer.slots < pipeline.stages:
            rings = list(pipeline.buffers)
            rings[place] = (name, replace(buffer, slots=pipeline.stages))
            yield f"give {name} {pipeline.stages} slots", name, replace(pipeline, buffers=tuple(rings))
    yield "add a stage", f"{pipeline.stages + 1} stages", _deeper(pipeline)


def _bytes(one: _Place) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield expectations of what the copies of a role on the same barrier deliver."""
    if one.op.op in ("expect", "arrive_tx", "arrive"):
        copies = [copy for copy in one.role.part(one.part) if copy.op in COPIES and copy.bar == one.op.bar]
        total = sum([senders(one.pipeline, one.role, copy) * one.pipeline.size(copy) for copy in copies])
        if total and one.op.op == "arrive" and one.op.n == 1:
            yield f"expect {total} bytes", str(one), one.replaced(op="arrive_tx", n=0, bytes=total)
        if total and one.op.op == "expect":
            yield f"expect {total} bytes and arrive", str(one), one.replaced(op="arrive_tx", bytes=total)
        if total and one.op.op != "arrive":
            yield f"expect {total} bytes", str(one), one.replaced(bytes=total)


def _counts(pipeline: Pipeline) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield barriers that count the arrivals of one iteration."""
    for place, (name, barrier) in enumerate(pipeline.barriers):
        loops = [(role, op) for role in pipeline.roles for op in role.loop if op.bar == name]
        came = [(role, op) for role, op in loops if op.op in ("arrive", "arrive_tx")]
        arrivals = sum([senders(pipeline, role, op) * op.arrivals for role, op in came])
        if arrivals and arrivals != barrier.count:
            rings = list(pipeline.barriers)
            rings[place] = (name, replace(barrier, count=arrivals))
            yield f"count {arrivals} arrival{'s' * (arrivals != 1)}", name, replace(pipeline, barriers=tuple(rings))


def _missing(pipeline: Pipeline) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield an op more: a wait, a commit or an arrival, in a loop or after it."""
    for role in [role for role in pipeline.roles if not role.threads_of]:
        waited = {op.bar for _, _, op in role.ops() if op.op == "wait"}
        # a role that arrives where it waits itself would only stop waiting for the others
        more = [Op("arrive", bar=name, n=1) for name, _ in pipeline.barriers if name not in waited]
        for kind, (commit, wait) in GROUPS.items():
            if any(op.op == kind for _, _, op in role.ops()):
                more += [Op(commit), Op(wait)]
        for op in more:
            last = replace(op, off=-1) if op.bar else op
            for part, added in (("loop", op), ("post", last)):
                made = _part(role, part, (*getattr(role, part), added))
                yield "add an op", f"{added} at the end of {role.name}.{part}", _put(pipeline, made)
        for name, _ in pipeline.barriers:
            for phase in (0, -1):
                op = Op("wait", bar=name, ph=phase)
                detail = f"{op} at the start of {role.name}.loop"
                yield "add an op", detail, _put(pipeline, replace(role, loop=(op, *role.loop)))


def _deeper(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with one more slot in every ring of the default depth."""
    stages = pipeline.stages
    barriers = [(name, replace(one, slots=one.slots + (one.slots == stages))) for name, one in pipeline.barriers]
    buffers = [(name, replace(one, slots=one.slots + (one.slots == stages))) for name, one in pipeline.buffers]
    return replace(pipeline, stages=stages + 1, barriers=tuple(barriers), buffers=tuple(buffers))


def _part(role: Role, part: str, ops: tuple[Op, ...]) -> Role:
    """Return the role with other ops in one part."""
    changed: Any = {part: ops}
    return replace(role, **changed)


def _put(pipeline: Pipeline, role: Role) -> Pipeline:
    return replace(pipeline, roles=tuple([role if one.name == role.name else one for one in pipeline.roles]))
