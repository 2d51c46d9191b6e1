"""How fast a proved pipeline can be: the event graph as a networkx graph, and the cycle that bounds an iteration.

Every cycle of the graph takes the sum of its latencies for as many iterations as its distances add up to. So an
iteration takes on average at least the largest ratio of latency to distance, and roles that do everything as soon as it
may happen need no longer. What units, memory or instruction issue cannot do at the same time is not in the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.record import Record
from layoutalg.proofs.pipeline.certificate import turns
from layoutalg.proofs.pipeline.document import MOST_SLOTS, Pipeline
from layoutalg.proofs.pipeline.graph import Graph, graph_of
from layoutalg.proofs.pipeline.ops import CHECK, LATER, OPS
from layoutalg.proofs.pipeline.proving import Proof, prove

if TYPE_CHECKING:
    import networkx

Latency: TypeAlias = "int | float | Fraction | tuple[int | float | Fraction, int | float | Fraction]"
"""Time until an op is done; as a pair, also the time until its role goes on."""
Edge: TypeAlias = "tuple[int, int, int, Fraction]"
"""Two nodes, the distance and the latency between them."""


@dataclass(frozen=True, slots=True)
class Throughput(Record, code="LA970", schema="layoutalg/throughput/1"):
    """What bounds the time of an iteration.

    Args:
        period: The least average time of an iteration.
        latency: Time around the critical cycle.
        distance: Iterations around it.
        cycle: Its events in order.
        depth: For each barrier on it, the least number of slots from which on more do not help.
        deeper: The least average time with so many.
    """

    period: Fraction
    latency: Fraction
    distance: int
    cycle: tuple[str, ...]
    depth: Mapping[str, int] = field(hash=False)
    deeper: Fraction

    def __str__(self) -> str:
        lines = [
            f"{self.period} per iteration: {self.latency} in {self.distance} iteration{'s' * (self.distance != 1)}"
        ]
        lines += [f"  {event}" for event in self.cycle]
        if self.depth and self.deeper < self.period:
            slots = ", ".join(f"{name} {slots}" for name, slots in self.depth.items())
            lines.append(f"{self.deeper} per iteration from these slots on: {slots}")
        elif self.depth:
            lines.append("more slots do not help")
        return "\n".join(lines)


def throughput(pipeline: object, latencies: Mapping[str, Latency], policy: str = "strict") -> Throughput:
    """Return the least average time of an iteration that the order of events allows, and the cycle that takes it.

    Mathematically: the maximum over the cycles of the event graph of latency / distance, exact. Of a cluster, the graph
    is that of its expansion, where a multicast copy is started once for each destination.

    Args:
        pipeline: A proved pipeline, or its document.
        latencies: Times by op (``"tma_load"``), or by one op of a role (``"math.loop[1]"``), in any unit; 0 for others.
            An asynchronous op lets its role go on at once, others when they are done; a pair (done, goes on) states
            both. A wait takes its time when its phase has completed, an arrival until the barrier has it.
        policy: As for ``verify``.

    Raises:
        MalformedError: LA970: a latency is negative or of no op.
        RepresentabilityError: LA971: the pipeline is not proved.

    Example:
        >>> from layoutalg.proofs.pipeline import Builder
        >>> block = Builder(stages=4)
        >>> tiles = block.ring("tiles", A=16384)
        >>> load, math = block.role("load"), block.role("math")
        >>> tiles.acquire(load).load().commit()
        >>> tiles.wait(math).mma().release()
        >>> found = throughput(block.pipeline(), {"tma_load": 600, "mma": 128, "wait": 20, "arrive": 12})
        >>> print(found)
        195 per iteration: 780 in 4 iterations
          load.loop[0] wait tiles.empty
          load.loop[2] tma_load tiles.A is done
          tiles.full completes
          math.loop[0] wait tiles.full
          math.loop[1] mma tiles.A is done
          math.loop[4] arrive tiles.empty
          tiles.empty completes
        160 per iteration from these slots on: tiles.full 5, tiles.empty 5
    """
    proof = _proved(pipeline, policy)
    times = _Times(proof.graph.pipeline, latencies)
    cycle, latency, distance = critical(len(proof.graph.events), list(_recurring(proof.graph, times)))
    period = latency / max(1, distance)
    on_it = dict.fromkeys(name for name, phase in proof.graph.phases.items() if phase in cycle)
    depth, deeper = _enough(proof.graph, times, list(on_it), period)
    return Throughput(period, latency, distance, tuple(_told(proof.graph, times, cycle)), depth, deeper)


def event_graph(
    pipeline: object, latencies: Mapping[str, Latency] | None = None, policy: str = "strict"
) -> networkx.MultiDiGraph[int]:
    """Return the events of the loops and of the barriers of a proved pipeline as a networkx graph.

    A node has its ``owner`` (a role, or a barrier for the completion of its phases), ``part``, ``place``, ``what``
    (``"start"``, ``"done"`` or ``"phase"``) and ``label``. An edge (u, v) with ``distance`` d says that u in iteration
    k precedes v in iteration k + d; phase f of slot s of D slots is that of iteration s + f D.

    Args:
        pipeline: A proved pipeline, or its document.
        latencies: As for ``throughput``; gives edges their ``latency``.
        policy: As for ``verify``.

    Raises:
        MalformedError: LA970: a latency is negative or of no op.
        RepresentabilityError: LA971: the pipeline is not proved.
    """
    import networkx as nx

    graph = _proved(pipeline, policy).graph
    made: networkx.MultiDiGraph[int] = nx.MultiDiGraph()
    for number, event in graph:
        if not event.once:
            entries = {"owner": event.owner, "part": event.part, "place": event.place, "what": event.what}
            made.add_node(number, **entries, label=_label(graph, number))
    for source, target, distance, latency in _recurring(graph, _Times(graph.pipeline, latencies or {})):
        made.add_edge(source, target, distance=distance, latency=latency)
    return made


def _proved(pipeline: object, policy: str) -> Proof:
    value = pipeline if isinstance(pipeline, Pipeline) else Pipeline.from_json(pipeline)
    proof = prove(value, policy)
    if not isinstance(proof, Proof):
        raise RepresentabilityError(Diagnostic("LA971", "a pipeline that is not proved", because=proof.reason))
    return proof


class _Times:
    """Latencies of edges."""

    def __init__(self, pipeline: Pipeline, given: Mapping[str, Latency]) -> None:
        places = [role.where(part, place) for role in pipeline.roles for part, place, _ in role.ops()]
        self.pairs: dict[str, tuple[Fraction, Fraction]] = {}
        for name, latency in given.items():
            if name not in OPS and name not in places:
                raise CHECK.malformed("latencies", "must be of ops, or of places such as 'math.loop[1]'", name)
            pair = latency if isinstance(latency, tuple) else (latency,)
            if not 1 <= len(pair) <= 2 or not all(_is_time(time) for time in pair):
                raise CHECK.malformed(f"latency of {name}", "must be a number from 0 on, or a pair of such", latency)
            self.pairs[name] = Fraction(pair[0]), Fraction(pair[-1])
        self.single = {name for name, latency in given.items() if not isinstance(latency, tuple)}

    def edge(self, graph: Graph, source: int, target: int) -> Fraction:
        """Return the latency of the edges from one event to another."""
        event, then = graph.events[source], graph.events[target]
        if event.part == "phase":
            return Fraction(0)
        op = graph.op(event)
        place = f"{event.owner}.{event.part}[{event.place}]"
        name = place if place in self.pairs else op.op
        done, goes_on = self.pairs.get(name, (Fraction(0), Fraction(0)))
        same = (then.owner, then.part, then.place) == (event.owner, event.part, event.place)
        if op.op in LATER:
            goes_on = Fraction(0) if name in self.single else goes_on
            ends = same and then.what == "done"
            return done if ends else goes_on if event.what == "start" and then.part != "phase" else Fraction(0)
        if op.op == "wait" and event.what == "start":
            return Fraction(0)
        return done if then.part == "phase" else goes_on


def _is_time(value: object) -> bool:
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    return number and 0 <= value < float("inf")  # type: ignore[operator]


def _recurring(graph: Graph, times: _Times) -> Iterator[Edge]:
    """Yield the edges of the part of an event graph that recurs, with their distances and latencies."""
    for number, event in graph:
        for after, distance in graph.steps[number] if not event.once else ():
            if not graph.events[after].once:
                yield number, after, distance, times.edge(graph, number, after)


def critical(count: int, edges: list[Edge]) -> tuple[list[int], Fraction, int]:
    """Return the nodes of a cycle with the largest ratio of latency to distance, its latency and its distance.

    Starts from the ratio 0 and takes any cycle with a larger one until there is none: nothing if no cycle takes time.
    """
    whole = math.lcm(*[latency.denominator for *_, latency in edges])
    best: list[Edge] = []
    while True:
        latency = sum([edge[3] for edge in best], Fraction(0))
        distance = sum([edge[2] for edge in best])
        ratio = latency / max(1, distance) * whole
        slack = [ratio.numerator * d - int(time * whole) * ratio.denominator for _, _, d, time in edges]
        cycle = _negative(count, edges, slack)
        if not cycle:
            return [source for source, *_ in best], latency, distance
        best = cycle


def _negative(count: int, edges: list[Edge], weights: list[int]) -> list[Edge]:
    """Return the edges of a cycle whose weights add up to less than 0, or nothing (Bellman and Ford)."""
    found, came = [0] * count, [-1] * count
    while True:
        moved = False
        for place, ((source, target, _, _), weight) in enumerate(zip(edges, weights, strict=True)):
            if found[source] + weight < found[target]:
                found[target], came[target], moved = found[source] + weight, place, True
        if not moved:
            return []
        seen = [-1] * count
        for start in range(count):  # a cycle of edges that events were reached by has a negative sum
            event = start
            while seen[event] < 0 <= came[event]:
                seen[event] = start
                event = edges[came[event]][0]
            if seen[event] == start and came[event] >= 0:
                cycle = [edges[came[event]]]
                while cycle[-1][0] != event:
                    cycle.append(edges[came[cycle[-1][0]]])
                return cycle[::-1]


def _enough(graph: Graph, times: _Times, names: list[str], period: Fraction) -> tuple[dict[str, int], Fraction]:
    """Return the least slots of some barriers from which on more do not help, and the time of an iteration then."""
    barriers = dict(graph.pipeline.barriers)
    if not names:
        return {}, period

    def ratio(more: int) -> Fraction:
        """Return the time of an iteration with so many slots more."""
        rings = [
            (name, replace(ring, slots=ring.slots + more * (name in names))) for name, ring in graph.pipeline.barriers
        ]
        deeper = graph_of(replace(graph.pipeline, barriers=tuple(rings)), turns(graph))
        _, latency, distance = critical(len(deeper.events), list(_recurring(deeper, times)))
        return latency / max(1, distance)

    low, high = 0, MOST_SLOTS - max([barriers[name].slots for name in names])
    least = ratio(high)
    if least == period:
        high = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if ratio(middle) == least else (middle + 1, high)
    return {name: barriers[name].slots + high for name in names}, least


def _label(graph: Graph, number: int) -> str:
    event = graph.events[number]
    if event.part == "phase":
        return f"{event.owner} completes"
    op = graph.op(event)
    ends = " is done" * (event.what == "done" and op.op != "wait")
    ring = f" {op.buf or op.bar}" * bool(op.buf or op.bar)
    return f"{event.owner}.{event.part}[{event.place}] {op.op}{ring}{ends}"


def _told(graph: Graph, times: _Times, cycle: list[int]) -> Iterator[str]:
    """Yield the events of a cycle that take time, or where it enters or leaves a role or a barrier."""
    order = {role.name: place for place, role in enumerate(graph.pipeline.roles)}
    keys = [(order.get(graph.events[number].owner, len(order)), graph.events[number].place) for number in cycle]
    first = keys.index(min(keys)) if keys else 0
    cycle = cycle[first:] + cycle[:first]
    for place, number in enumerate(cycle):
        before, after = cycle[place - 1], cycle[(place + 1) % len(cycle)]
        event, then, earlier = (graph.events[one] for one in (number, after, before))
        if (then.owner, then.part, then.place) == (event.owner, event.part, event.place) and event.what == "start":
            continue  # the next event tells that it is done
        ended = event.what == "done" and graph.op(event).op in LATER and times.edge(graph, before, number)
        if {then.owner, earlier.owner} != {event.owner} or times.edge(graph, number, after) or ended:
            yield _label(graph, number)
