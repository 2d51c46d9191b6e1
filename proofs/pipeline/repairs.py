"""Single changes of a pipeline that make it provable, each proved again before it is offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutalg.ground.errors import Repair
from layoutalg.proofs.pipeline.document import Pipeline, Role
from layoutalg.proofs.pipeline.expansion import ranks, senders
from layoutalg.proofs.pipeline.ops import COPIES, GROUP_WAITS, GROUPS, Op
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


def _changes(pipeline: Pipeline) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield (what to do, where, the changed pipeline)."""
    places = [(role, part, place, op) for role in pipeline.roles for part, place, op in role.ops()]
    for role, part, place, op in places:
        where = f"{role.name}.{part}[{place}], {op}"
        if op.flip:
            yield "use the plain parity", where, _with(pipeline, role, part, place, [replace(op, flip=False)])
        if part == "loop" and op.idx_abs is not None and not role.threads_of:
            yield "follow the iteration", where, _with(pipeline, role, part, place, [replace(op, idx_abs=None)])
        if op.op in GROUP_WAITS:
            for least in range(op.n - 1, -1, -1):
                told = f"leave at most {least} open" if least else "wait for all groups"
                yield told, where, _with(pipeline, role, part, place, [replace(op, n=least)])
    yield from _bytes(pipeline)
    yield from _counts(pipeline)
    for role, part, place, op in places:
        at = f"{role.name}.{part}, before {op}"
        fence = [Op("proxy_fence"), op]
        if op.op in ("arrive", *COPIES, "tma_store", "mma"):
            yield "fence the proxies", at, _with(pipeline, role, part, place, fence)
        if op.op == "read" and op.buf in pipeline.registers:
            yield "wait for all groups", at, _with(pipeline, role, part, place, [Op("mma_wait"), op])
    for role, part, place, op in places:
        if op.op == "arrive":
            without = _with(pipeline, role, part, place, [])
            later = next(one for one in without.roles if one.name == role.name)
            ops = getattr(later, part)
            for after in range(place + 1, len(ops) + 1):
                where = f"{role.name}.{part}: {op} after {ops[after - 1]}"
                yield "arrive later", where, _put(without, _part(later, part, (*ops[:after], op, *ops[after:])))
    for role, part, place, op in places:
        if op.op == "arrive" and op.idx_abs is None:
            for step in (-1, 1):
                moved = replace(op, off=op.off + step)
                where = f"{role.name}.{part}[{place}], {op}"
                yield f"arrive for {moved.bar}{moved.at}", where, _with(pipeline, role, part, place, [moved])
    for role, part, place, op in places:
        if op.bar:
            for step in (-1, 1):
                where = f"{role.name}.{part}[{place}], {op}"
                changed = _with(pipeline, role, part, place, [replace(op, ph=op.ph + step)])
                yield f"use phase {op.ph + step}", where, changed
    for role in pipeline.roles:
        if role.trip:
            yield "run as often as the others", role.name, _put(pipeline, replace(role, trip=0))
    for role, part, place, op in places:
        if pipeline.cluster > 1 and op.op in ("arrive", "mma_arrive") and len(ranks(op, 0)) < pipeline.cluster:
            where = f"{role.name}.{part}[{place}], {op}"
            everywhere = replace(op, to=(tuple(range(pipeline.cluster)),))
            yield "arrive in all CTAs", where, _with(pipeline, role, part, place, [everywhere])
    yield from _missing(pipeline)
    for place, (name, buffer) in enumerate(pipeline.buffers):
        if buffer.slots < pipeline.stages:
            rings = list(pipeline.buffers)
            rings[place] = (name, replace(buffer, slots=pipeline.stages))
            yield f"give {name} {pipeline.stages} slots", name, replace(pipeline, buffers=tuple(rings))
    yield "add a stage", f"{pipeline.stages + 1} stages", _deeper(pipeline)


def _bytes(pipeline: Pipeline) -> Iterator[tuple[str, str, Pipeline]]:
    """Yield expectations of what the copies of a role on the same barrier deliver."""
    sizes = {name: buffer.bytes for name, buffer in pipeline.buffers}
    for role in pipeline.roles:
        for part, place, op in role.ops():
            if op.op in ("expect", "arrive_tx", "arrive"):
                ops = getattr(role, part)
                copies = [one for one in ops if one.op in COPIES and one.bar == op.bar]
                size = {one: sizes[one.buf] if one.bytes is None else one.bytes for one in copies}
                total = sum([senders(pipeline, role, one) * size[one] for one in copies])
                where = f"{role.name}.{part}[{place}], {op}"
                if not total:
                    continue
                if op.op == "arrive" and op.n == 1:
                    changed = replace(op, op="arrive_tx", n=0, bytes=total)
                    yield f"expect {total} bytes", where, _with(pipeline, role, part, place, [changed])
                elif op.op == "expect":
                    changed = replace(op, op="arrive_tx", bytes=total)
                    yield f"expect {total} bytes and arrive", where, _with(pipeline, role, part, place, [changed])
                if op.op != "arrive":
                    changed = replace(op, bytes=total)
                    yield f"expect {total} bytes", where, _with(pipeline, role, part, place, [changed])


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
            yield (
                "add an op",
                f"{op} at the end of {role.name}.loop",
                _put(pipeline, replace(role, loop=(*role.loop, op))),
            )
            last = replace(op, off=-1) if op.bar else op
            detail = f"{last} at the end of {role.name}.post"
            yield "add an op", detail, _put(pipeline, replace(role, post=(*role.post, last)))
        for name, _ in pipeline.barriers:
            for phase in (0, -1):
                op = Op("wait", bar=name, ph=phase)
                detail = f"{op} at the start of {role.name}.loop"
                yield "add an op", detail, _put(pipeline, replace(role, loop=(op, *role.loop)))


def _deeper(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with one more slot in every ring of the default depth."""
    stages = pipeline.stages + 1
    barriers = [(name, replace(one, slots=one.slots + (one.slots == stages - 1))) for name, one in pipeline.barriers]
    buffers = [(name, replace(one, slots=one.slots + (one.slots == stages - 1))) for name, one in pipeline.buffers]
    return replace(pipeline, stages=stages, barriers=tuple(barriers), buffers=tuple(buffers))


def _with(pipeline: Pipeline, role: Role, part: str, place: int, ops: list[Op]) -> Pipeline:
    """Return the pipeline with other ops at one place."""
    old = getattr(role, part)
    return _put(pipeline, _part(role, part, (*old[:place], *ops, *old[place + 1 :])))


def _part(role: Role, part: str, ops: tuple[Op, ...]) -> Role:
    """Return the role with other ops in one part."""
    changed: Any = {part: ops}
    return replace(role, **changed)


def _put(pipeline: Pipeline, role: Role) -> Pipeline:
    return replace(pipeline, roles=tuple([role if one.name == role.name else one for one in pipeline.roles]))
