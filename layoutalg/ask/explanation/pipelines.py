"""The ledger of a pipeline: what each phase of a barrier is owed, who fills and reads each buffer, what orders them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from layoutalg.ask.facts import Fact, said
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.pipeline.decision import Proved, Refuted, verify
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.expansion import expanded
from layoutalg.proofs.pipeline.graph import Graph, Instances, graph_of
from layoutalg.proofs.pipeline.obligations import Shown
from layoutalg.proofs.pipeline.ops import GROUP_WAITS
from layoutalg.proofs.pipeline.proving import Proof

End: TypeAlias = "tuple[bool, int]"
"""An end of an interval of indices: a constant, or N plus it."""


def ledger(pipeline: Pipeline, target: str) -> tuple[list[Fact], Mapping[str, object]]:
    """Return the facts of a pipeline, the first of which holds if it is proved, and the same as data.

    Example:
        >>> from layoutalg.proofs.pipeline import Builder
        >>> block = Builder(stages=4)
        >>> tiles = block.ring("tiles", A=16384)
        >>> load, math = block.role("load"), block.role("math")
        >>> tiles.acquire(load).load().commit()
        >>> tiles.wait(math).mma().release(behind=1)
        >>> facts, _ = ledger(block.pipeline(), "sm_90a")
        >>> print(facts[0].lines)
        ('safe for every N >= 0',)
        >>> for fact in facts[2:]:
        ...     print(fact.name, *fact.lines, sep="\\n  ")
        tiles.full
          index j is phase j div 4 of slot j mod 4; a phase takes 1 arrival
          0 <= j < N: 1 arrival and 16384 bytes of 16384 by load.loop[1] arrive_tx, load.loop[2] tma_load
          math.loop[0] waits in iteration k for j = k
        tiles.empty
          index j is phase j div 4 of slot j mod 4; a phase takes 1 arrival
          0 <= j < N-1: 1 arrival by math.loop[4] arrive
          j = N-1: 1 arrival by math.post[1] arrive
          load.loop[0] waits in iteration k for j = k-4, at once for j < 0
        tiles.A
          written by load.loop[2] tma_load, read by math.loop[1] mma
          before the read: load.loop[2] tma_load done, tiles.full completes, math.loop[0] wait passes, \
math.loop[1] mma
          before the next write: math.loop[1] mma done, math.loop[3] mma_wait (k+1), math.loop[4] arrive (k+1), \
tiles.empty completes, load.loop[0] wait passes (k+4), load.loop[2] tma_load (k+4)
    """
    found = verify(pipeline, target)
    pipeline = expanded(pipeline)
    proof = found.subject[2] if isinstance(found, Proved) and found.subject is not None else None
    facts = [said("verdict", _verdict(pipeline, found), holds=proof is not None), said("pipeline", str(pipeline))]
    data: dict[str, object] = {"verdict": found.to_json(), "pipeline": pipeline.to_json()}
    try:
        graph = graph_of(pipeline, {}) if proof is None else proof.graph
        because = f"counters start again every {pipeline.reset} iterations" if pipeline.reset and proof is None else ""
    except RepresentabilityError as error:
        because = f"{error.diagnostic.where[0]}: {error.diagnostic.because}"
    if because:
        return [*facts, said("ledger", f"not given for every N: {because}")], data
    barriers: dict[str, object] = {}
    buffers: dict[str, object] = {}
    for name, _ in pipeline.barriers:
        lines, barriers[name] = _barrier(graph, name)
        facts.append(said(name, lines))
    for name, _ in pipeline.buffers:
        lines, buffers[name] = _buffer(graph, name, proof)
        facts.append(said(name, lines))
    return facts, {**data, "barriers": barriers, "buffers": buffers}


def _verdict(pipeline: Pipeline, found: Proved | Refuted | Unknown) -> list[str]:
    if isinstance(found, Unknown):
        return [f"unknown: {found.reason}"]
    if isinstance(found, Proved):
        return [f"safe for every N >= {pipeline.least}"]
    return [f"{found.kind}: {found.witness.get('what', '')}", "la.pipeline.verify gives the run and the repairs"]


def _named(use: Instances) -> str:
    return f"{use.role}.{use.part}[{use.place}] {use.op.op}"


def _barrier(graph: Graph, name: str) -> tuple[list[str], dict[str, object]]:
    """Return what arrives, is expected and delivered for each index, and who waits for it."""
    ring = dict(graph.pipeline.barriers)[name]
    uses = graph.uses.get(name, [])
    adds = [use for use in uses if use.op.on_barrier]
    arrivals = f"{ring.count} arrival{'s' * (ring.count != 1)}"
    lines = [f"index j is phase j div {ring.slots} of slot j mod {ring.slots}; a phase takes {arrivals}"]
    phases: list[dict[str, object]] = []
    for (low, high), here in _segments(adds, graph.pipeline.least):
        owed = [graph.pipeline.owed(use.op) for use in here]
        came, expected, delivered = (sum(column) for column in zip(*owed, strict=True))
        told = f"{came} arrival{'s' * (came != 1)}" + (f" of {ring.count}" if came != ring.count else "")
        if expected or delivered:
            told += f" and {delivered} bytes of {expected}"
        lines.append(f"{_interval(low, high)}: {told} by {', '.join(map(_named, here))}")
        entry: dict[str, object] = {"from": _end(low), "until": _end(high), "arrivals": came}
        by = [
            {"op": _named(use), "arrivals": a, "expected_bytes": e, "delivered_bytes": d}
            for use, (a, e, d) in zip(here, owed, strict=True)
        ]
        phases.append(entry | {"expected_bytes": expected, "delivered_bytes": delivered, "by": by})
    waits = []
    for use in uses:
        if not use.op.on_barrier:
            index = _shifted("k", use.shift) if use.runs else _end((not use.fixed, use.shift))
            place = f"{use.role}.{use.part}[{use.place}] waits{' in iteration k' * use.runs}"
            lines.append(f"{place} for j = {index}{', at once for j < 0' * (use.low < 0)}")
            waits.append({"op": _named(use), "index": index})
    return lines, {"count": ring.count, "slots": ring.slots, "phases": phases, "waits": waits}


def _segments(uses: list[Instances], least: int) -> Iterator[tuple[tuple[End, End], list[Instances]]]:
    """Yield the intervals of indices to which the same ops add, for all large N."""
    fixed = {end for use in uses for end in use.ends()[0]}
    moving = {end for use in uses for end in use.ends()[1]}
    trips = max([least, *fixed]) + max([0, *(-end for end in moving)]) + 2
    ends: list[End] = [(False, end) for end in sorted(fixed)] + [(True, end) for end in sorted(moving)]
    for low, high in itertools.pairwise(ends):
        here = [use for use in uses if low[1] + trips * low[0] in use.numbers(trips)]
        if here:
            yield (low, high), here


def _shifted(name: str, by: int) -> str:
    return f"{name}{by:+d}" if by else name


def _end(end: End) -> str:
    return _shifted("N", end[1]) if end[0] else str(end[1])


def _interval(low: End, high: End) -> str:
    if high == (low[0], low[1] + 1):
        return f"j = {_end(low)}"
    return f"{_end(low)} <= j < {_end(high)}"


def _buffer(graph: Graph, name: str, proof: Proof | None) -> tuple[list[str], dict[str, object]]:
    """Return who writes and reads a buffer, and the paths of the proof that order them."""
    uses = graph.uses.get(name, [])
    writers = [_named(use) for use in uses if use.writes]
    readers = [_named(use) for use in uses if not use.writes]
    lines = [f"written by {', '.join(writers) or 'nobody'}, read by {', '.join(readers) or 'nobody'}"]
    orders: list[dict[str, object]] = []
    owners = {use.start: use for use in uses} | {use.done: use for use in uses}
    families = list(_families(proof, name))
    fenced = {_pair(shown) for shown in families if shown.obligation.fence}
    for shown in families:
        one = shown.obligation
        source, target = owners[one.source.event], owners[one.target.event]
        before = "the read" if not target.writes else "the next write"
        if source.writes and target.writes and not one.fence:
            continue  # the next write waits for the reads, which wait for this one
        if _pair(shown) in fenced and not one.fence:
            continue  # the path through the fence says as much
        path = _path(graph, shown)
        fence = ", through a proxy fence" * one.fence
        lines.append(f"before {before}{fence}: {', '.join(path)}")
        orders.append({"before": _named(target), "after": _named(source), "fence": one.fence, "path": path})
    return lines, {"written_by": writers, "read_by": readers, "orders": orders}


def _pair(shown: Shown) -> tuple[int, int]:
    return shown.obligation.source.event, shown.obligation.target.event


def _families(proof: Proof | None, name: str) -> Iterator[Shown]:
    """Yield one family of instances per obligation: that of the middle of the loop where there is one."""
    if proof is None:
        return
    seen: dict[int, list[Shown]] = {}
    for shown in proof.shown:
        if shown.obligation.ring == name:
            seen.setdefault(id(shown.obligation), []).append(shown)
    for families in seen.values():
        yield min(families, key=lambda shown: (shown.frame.heads, shown.frame.tails is not None))


def _path(graph: Graph, shown: Shown) -> list[str]:
    """Return the events of a path where it enters and leaves a role or a barrier."""
    steps = shown.steps
    start = steps[0][1]
    found = []
    for place, (event, x) in enumerate(steps):
        known = graph.events[event]
        inside = 0 < place < len(steps) - 1
        if inside and {graph.events[steps[place + way][0]].owner for way in (-1, 1)} == {known.owner}:
            op = "" if known.part == "phase" else graph.op(known).op
            if op not in GROUP_WAITS and not (op == "proxy_fence" and shown.obligation.fence):
                continue
        if known.part == "phase":
            found.append(f"{known.owner} completes")
            continue
        op = graph.op(known).op
        if op == "wait" and known.what == "start":
            continue
        ends = {"wait": " passes"}.get(op, " done") if known.what in ("done", "last") else ""
        away = f" ({_shifted('k', x - start)})" if x != start and not known.once else ""
        found.append(f"{known.owner}.{known.part}[{known.place}] {op}{ends}{away}")
    return found
