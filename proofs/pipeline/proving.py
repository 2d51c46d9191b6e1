"""Prove a pipeline safe for every N by its event graph: counts, times of events, a path for each obligation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.pipeline.counting import Miscount, completed, left_running, unwritten
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.expansion import expanded
from layoutalg.proofs.pipeline.graph import Graph, Instances, Turns, graph_of
from layoutalg.proofs.pipeline.machine import Machine
from layoutalg.proofs.pipeline.obligations import Obligation, Shown, alternatives, obligations, show, show_parts
from layoutalg.proofs.pipeline.schedule import times

TURNED: Final = 4
"""waits with ``flip``: the most for which both readings are tried"""


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a pipeline is safe: the graph, a time for each event, and a path for every instance of each obligation."""

    graph: Graph
    pace: int
    times: tuple[tuple[int, int], ...]
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no proof."""

    reason: str
    miscount: Miscount | None = None
    obligation: Obligation | None = None


def prove(pipeline: Pipeline, policy: str) -> Proof | Gap:
    """Return a proof for every N, or the first thing that is missing."""
    pipeline = expanded(pipeline)
    if pipeline.reset:
        again = _carried(pipeline)
        if again is None:
            return Gap(f"counters that start again every {pipeline.reset} iterations, with barriers that go on")
        pipeline = again
    first: Gap | None = None
    for turned in _turns(pipeline):
        try:
            found = _prove(pipeline, policy, turned)
        except RepresentabilityError as error:
            found = Gap(f"{error.diagnostic.where[0]}: {error.diagnostic.because}")
        if isinstance(found, Proof):
            return found
        first = first or found
    return first or Gap("too many waits with flip")


def _turns(pipeline: Pipeline) -> Iterator[Turns]:
    """Yield the readings of waits with ``flip``: as waits of the phase before, or the phase after, of equal parity."""
    flipped = [(role.name, part, place) for role in pipeline.roles for part, place, op in role.ops() if op.flip]
    if len(flipped) <= TURNED:
        for choice in itertools.product((-1, 1), repeat=len(flipped)):
            yield dict(zip(flipped, choice, strict=True))


def _carried(pipeline: Pipeline) -> Pipeline | None:
    """Return the pipeline with counters that go on, if every slot and parity is the same; None if one is not."""
    moving = [op for role in pipeline.roles for op in role.loop if op.idx_abs is None]
    rounds = {2 * pipeline.rings[op.bar] for op in moving if op.bar}
    rounds |= {pipeline.rings[name] for op in moving for name in (op.buf, op.src) if name}
    if any(op.needs_index and op.off < 0 for op in moving) or any(pipeline.reset % size for size in rounds):
        return None
    return replace(pipeline, reset=0)


def _prove(pipeline: Pipeline, policy: str, turned: Turns) -> Proof | Gap:
    graph = graph_of(pipeline, turned)
    for name, barrier in pipeline.barriers:
        found = completed(graph, name)
        if isinstance(found, Miscount):
            return Gap(found.what, found)
        waits = [use for use in graph.uses.get(name, ()) if use.op.op == "wait"]
        if any(_first(use, pipeline.least) < -barrier.slots for use in waits):
            return Gap(f"a wait for a phase of {name} before the last that had passed at first")
        event = graph.phases[name]
        graph.events[event] = replace(graph.events[event], high=found[0], most=found[1])
    for wrong in _uncounted(graph):
        if wrong is not None:
            return Gap(wrong.what, wrong)
    if policy == "strict" and _stores_left(pipeline):
        return Gap("a store reads its slot when the block ends")
    schedule = times(graph)
    if schedule is None:
        return Gap("some events wait for each other")
    shown: list[Shown] = []
    for one in obligations(graph, policy):
        paths = show(graph, one)
        paths = show_parts(graph, one) if paths is None else paths
        if paths is None:
            return Gap(f"{one.use.role}: {one.use.op} {one.what}", obligation=one)
        shown += paths
    for several in alternatives(graph):
        either = next((found for found in (show(graph, one) for one in several) if found is not None), None)
        if either is None:
            what = several[0].what if several else "expected bytes that no arrival of the phase follows"
            return Gap(what, obligation=next(iter(several), None))
        shown += either
    return Proof(graph, schedule[0], tuple(schedule[1]), tuple(shown))


def _first(use: Instances, least: int) -> int:
    """Return the least number of an op."""
    if use.runs:
        return use.low
    return use.shift + (0 if use.fixed else max(least, use.low))


def _uncounted(graph: Graph) -> Iterator[Miscount | None]:
    for name, _ in graph.pipeline.buffers:
        yield unwritten(graph, name)
    for name, _ in graph.pipeline.barriers:
        yield left_running(graph, name)


def _stores_left(pipeline: Pipeline) -> bool:
    """Return whether some store is not covered by a wait of its role, for an N: its last few iterations decide."""
    roles = tuple([role for role in pipeline.roles if any(op.op == "tma_store" for _, _, op in role.ops())])
    if not roles:
        return False
    pipeline = replace(pipeline, roles=roles)
    ops = pipeline.ops()
    open_ = max([op.n for op in ops if op.op == "bulk_wait"], default=0)
    far = open_ + max([abs(op.off) + op.first + op.last for op in ops]) + max(abs(role.trip) for role in roles)
    for trips in range(pipeline.least, pipeline.least + far + 3):
        machine = Machine(pipeline, trips, "strict")
        for tasks, running in zip(machine.tasks, machine.running, strict=True):
            covered = max([task.covers for task in tasks if task.op.op == "bulk_wait"], default=0)
            if covered < len(running["tma_store"]):
                return True
    return False
