"""Pipelines in time: what each role does when, when slots are filled and read, which arrivals let which waits pass.

A proof gives the earliest times that its event graph allows, with round numbers for what an op takes; they show the
order, not measured times. A refutation gives its run, one event per step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.explore import Run
from layoutalg.proofs.pipeline.graph import Graph, Instances
from layoutalg.proofs.pipeline.machine import Event as Step
from layoutalg.proofs.pipeline.machine import Machine, State, Task
from layoutalg.proofs.pipeline.ops import COMMITS, GROUP_WAITS, GROUPED, GROUPS, PARTS, WRITES, Op
from layoutalg.proofs.pipeline.proving import Proof

LASTS: Final = {"tma_load": 5, "dsmem_copy": 3, "mma": 4, "mma_write": 4, "tma_store": 4, "cp_async": 4}
"""Steps from the start of an asynchronous op to its end; every other op takes one."""
ITERATIONS: Final = 10
"""Most iterations of a proof that are drawn."""

Node: TypeAlias = "tuple[int, int]"
"""An event and its coordinate; 0 for one before or after the loops."""
Edge: TypeAlias = "tuple[Node, Node, int]"
"""Two instances of events, and the steps between them."""


@dataclass(slots=True)
class Mark:
    """An op in the lane of its role; ops of one kind on one slot that follow each other share a mark."""

    role: int
    part: str
    k: int
    ops: tuple[Op, ...]
    slot: int | None
    phase: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fill:
    """An index in a slot of a buffer: its writes start, they are done, the last of its reads is done."""

    buffer: str
    slot: int
    index: int
    start: int
    full: int
    empty: int


@dataclass(frozen=True, slots=True)
class Passing:
    """A phase that completes, and a wait that it lets pass."""

    barrier: str
    slot: int  # its slot
    source: int | str  # the role whose op was the last that the phase needed, or the buffer if that was a copy
    start: int  # when the phase completes
    role: int  # the role that waits
    end: int  # when its wait passes


@dataclass(slots=True)
class Timeline:
    """What a picture of a pipeline shows."""

    pipeline: Pipeline
    trips: int  # N
    marks: list[Mark] = field(default_factory=list)  # ops
    fills: list[Fill] = field(default_factory=list)  # what the slots hold
    passings: list[Passing] = field(default_factory=list)  # what lets waits pass
    wrong: list[Mark] = field(default_factory=list)  # the marks of what goes wrong
    spot: tuple[str, int, int] | None = None  # buffer, slot and step where it goes wrong

    @property
    def end(self) -> int:
        """The last step of all."""
        return max([mark.end for mark in self.marks] + [fill.full for fill in self.fills], default=0)


def of_proof(proof: Proof) -> Timeline:
    """Return the first iterations at the earliest times that the edges of the proof allow.

    Example:
        >>> from layoutalg.proofs.pipeline import Builder, verify
        >>> block = Builder(stages=2)
        >>> tiles = block.ring("tiles", A=16384)
        >>> load, math = block.role("load"), block.role("math")
        >>> tiles.acquire(load).load().commit()
        >>> tiles.wait(math).mma().release()
        >>> timeline = of_proof(verify(block.pipeline()).subject[2])
        >>> [(fill.slot, fill.index, fill.start, fill.full, fill.empty) for fill in timeline.fills]
        [(0, 0, 2, 7, 12), (1, 1, 5, 10, 19), (0, 2, 16, 21, 26), (1, 3, 23, 28, 33)]
    """
    graph = proof.graph
    pipeline = graph.pipeline
    depth = max([slots for slots in pipeline.rings.values() if slots > 1], default=1)
    trips = max(pipeline.least, min(depth + 2, ITERATIONS))
    edges = list(_edges(graph, trips))
    times = _earliest(graph, edges)
    found = Timeline(pipeline, trips)
    for number, role in enumerate(pipeline.roles):
        found.marks += _lane(graph, times, number, role.name, max(0, trips + role.trip))
    for name, _ in pipeline.buffers:
        found.fills += _fills(name, _accesses(graph, times, name, trips))
    found.passings += _passings(graph, times, edges)
    return found


def _passings(graph: Graph, times: dict[Node, int], edges: list[Edge]) -> Iterator[Passing]:
    pipeline = graph.pipeline
    places = {role.name: number for number, role in enumerate(pipeline.roles)}
    adding = [edge for edge in edges if not _is_phase(graph, edge[0])]
    before = {node: found for node, found in _before(adding).items() if _is_phase(graph, node)}
    for source, target in dict.fromkeys((source, target) for source, target, _ in edges):
        if source in before and not _is_phase(graph, target):
            barrier, waiting = graph.events[source[0]].owner, graph.events[target[0]]
            made = graph.events[_last_needed(times, before[source])[0]]
            op = graph.op(made)
            by: int | str = op.buf if made.what == "done" and op.buf else places[made.owner]
            slot = source[1] % pipeline.rings[barrier]
            yield Passing(barrier, slot, by, times[source], places[waiting.owner], times[target])


def _is_of(graph: Graph, node: Node, role: str) -> bool:
    return graph.events[node[0]].owner == role and not _is_phase(graph, node)


def _is_phase(graph: Graph, node: Node) -> bool:
    return graph.events[node[0]].part == "phase"


def _nodes(graph: Graph, trips: int) -> set[Node]:
    """Return the instances of all events."""
    found: set[Node] = set()
    for number, event in graph:
        if event.part == "pre" or (event.part == "post" and trips >= event.low):
            found.add((number, 0))
        elif not event.once:
            found |= {(number, x) for x in range(event.low, min(trips + event.high, event.most))}
    return found


def _edges(graph: Graph, trips: int) -> Iterator[Edge]:
    """Yield (before, after, steps between them) for all instances."""
    nodes = _nodes(graph, trips)

    def at(event: int, x: int) -> Node:
        return event, 0 if graph.events[event].once else x

    for number, x in sorted(nodes):
        takes = _takes(graph, number)
        pairs = [(after, x + far) for after, far in graph.steps[number]]
        pairs += [(after, y) for first, after, y in graph.heads[number] if at(number, first) == (number, x)]
        for last, up_to, after, y in graph.tails[number]:
            if at(number, trips + last) == (number, x) or (up_to and x <= trips + last):
                pairs.append((after, trips + y))
        for after, y in pairs:
            if at(after, y) in nodes:
                own = after == number + 1 and graph.events[after].what == "done"
                yield (number, x), at(after, y), LASTS.get(graph.op(graph.events[number]).op, 0) if own else takes
    for before, after in graph.crossings:
        if {(before, 0), (after, 0)} <= nodes:
            yield (before, 0), (after, 0), _takes(graph, before)


def _takes(graph: Graph, number: int) -> int:
    """Return the steps of an op before that which follows it: 0 inside a mark, and for events that are no ops."""
    event = graph.events[number]
    if event.part == "phase":
        return 0
    ops: tuple[Op, ...] = getattr(next(one for one in graph.pipeline.roles if one.name == event.owner), event.part)
    op = ops[event.place]
    if op.op in COMMITS or (event.what == "done" and op.op != "wait"):
        return 0
    following = ops[event.place + 1] if event.place + 1 < len(ops) else None
    return int(following is None or not _together(graph.pipeline, op, following))


def _together(pipeline: Pipeline, one: Op, other: Op) -> bool:
    """Return whether two ops that follow each other share a mark: they do the same to equal slots."""
    same = (one.op, one.off, one.idx_abs) == (other.op, other.off, other.idx_abs)
    same = same and (one.first, one.last) == (other.first, other.last)
    return bool(one.buf) and same and pipeline.rings[one.buf] == pipeline.rings[other.buf]


def _before(edges: Iterable[Edge]) -> dict[Node, list[tuple[Node, int]]]:
    found: dict[Node, list[tuple[Node, int]]] = {}
    for source, target, steps in edges:
        found.setdefault(target, []).append((source, steps))
    return found


def _earliest(graph: Graph, edges: list[Edge]) -> dict[Node, int]:
    """Return the earliest time of every node: the longest path to it. There are no cycles, by the proof."""
    before = _before(edges)
    found: dict[Node, int] = {}
    todo = [node for edge in edges for node in edge[:2]] + [(number, 0) for number, event in graph if event.once]
    while todo:
        node = todo[-1]
        missing = [source for source, _ in before.get(node, ()) if source not in found]
        if node in found or not missing:
            found.setdefault(node, max([found[one] + steps for one, steps in before.get(node, ())], default=0))
            todo.pop()
        else:
            todo += missing
    return found


def _last_needed(times: dict[Node, int], before: list[tuple[Node, int]]) -> Node:
    """Return the event that a phase was waiting for; among events of one time the end of a copy."""
    return max(before, key=lambda pair: (times[pair[0]] + pair[1], pair[1] == 0))[0]


def _lane(graph: Graph, times: dict[Node, int], number: int, role: str, trip: int) -> list[Mark]:
    """Return the ops of a role in order; after its loop k is ``trip``."""
    found: list[Mark] = []
    instances = [(times[node], node) for node in times if _is_of(graph, node, role)]
    rings = graph.pipeline.rings
    order = {node: (PARTS.index(graph.events[node[0]].part), node[1], node[0]) for _, node in instances}
    ends = 0
    for start, node in sorted(instances, key=lambda pair: order[pair[1]]):
        event = graph.events[node[0]]
        op = graph.op(event)
        if event.what != "start" or op.op in COMMITS:
            continue
        k = trip if event.part == "post" else node[1]
        index = op.index(k)
        ring = rings.get(op.buf or op.bar)
        slot = None if ring is None else index % ring
        phase = None if not op.bar else index // rings[op.bar] + op.ph
        if (
            found
            and (found[-1].part, found[-1].k) == (event.part, k)
            and found[-1].slot == slot
            and _together(graph.pipeline, found[-1].ops[-1], op)
        ):
            found[-1].ops += (op,)
            continue
        stop = times[node[0] + 1, node[1]] + 1 if op.op == "wait" else start + 1
        begin = ends if op.op in GROUP_WAITS and found else start  # it was waiting since the op before
        found.append(Mark(number, event.part, k, (op,), slot, phase, min(begin, start), stop))
        ends = stop
    return found


Access: TypeAlias = "tuple[int, int, bool, int, int]"
"""Slot, index, whether it writes, start and end."""


def _accesses(graph: Graph, times: dict[Node, int], name: str, trips: int) -> Iterator[Access]:
    slots = graph.pipeline.rings[name]
    for use in graph.uses.get(name, ()):
        for index, x in _coordinates(graph, use, trips):
            if (use.start, x) in times:
                later = use.start + 1 if graph.events[use.done].what == "last" else use.done
                start, done = times[use.start, x], times[later, x]
                end = done if later != use.start else start + 1
                yield index % slots, index, use.writes, start, end


def _coordinates(graph: Graph, use: Instances, trips: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of an op with the coordinates of its events."""
    if use.part == "loop" and use.fixed:
        event = graph.events[use.start]
        yield from [(use.shift, x) for x in range(event.low, trips + event.high)]
    else:
        yield from [(number, number - use.shift if use.runs else 0) for number in use.numbers(trips)]


def _fills(name: str, accesses: Iterable[Access]) -> list[Fill]:
    by: dict[tuple[int, int], list[Access]] = {}
    for access in accesses:
        by.setdefault(access[:2], []).append(access)
    found = []
    for (slot, index), mine in by.items():
        writes = [(start, end) for _, _, writing, start, end in mine if writing]
        if writes:
            full = max(end for _, end in writes)
            empty = max([full, *(end for _, _, writing, _, end in mine if not writing)])
            found.append(Fill(name, slot, index, min(start for start, _ in writes), full, empty))
    return sorted(found, key=lambda fill: (fill.start, fill.slot))


def of_run(run: Run) -> Timeline:
    """Return a run that ends in a violation, one event per step."""
    found, state, ends = _steps(run.machine, run.events)
    wrong, end = run.violation, len(run.events)
    task = wrong.task
    if wrong.kind == "deadlock":
        stuck = [tasks[at] for at, tasks in zip(state[0], run.machine.tasks, strict=True) if at < len(tasks)]
        found.marks += [_mark(run.machine, one, ends[one.role], end + 1) for one in stuck]
        found.wrong = found.marks[len(found.marks) - len(stuck) :]
    else:  # the op that goes wrong, or that started what goes wrong
        found.wrong = [mark for mark in found.marks if mark.ops[0] is task.op and mark.k == task.k][-1:]
        if task.buf >= 0:
            found.spot = *run.machine.slots[task.buf], max(0, end - 1)
    return found


def in_turn(pipeline: Pipeline, policy: str) -> Timeline:
    """Return a run in which the first role that can go on does."""
    depth = max([slots for slots in pipeline.rings.values() if slots > 1], default=1)
    machine = Machine(pipeline, max(pipeline.least, min(depth + 1, ITERATIONS)), policy)
    steps: list[Step] = []
    state: State | None = machine.start()
    while state is not None and not machine.finished(state):
        step = next(machine.events(state), None)
        if step is None:
            break
        steps.append(step)
        state = machine.after(state, step)[0]
    return _steps(machine, steps)[0]


def _steps(machine: Machine, steps: Iterable[Step]) -> tuple[Timeline, State, dict[int, int]]:
    """Return events at 0, 1, 2, ..., the last state, and for each role the end of its last event."""
    found = Timeline(machine.pipeline, machine.trips)
    state, end, ends = machine.start(), 0, dict.fromkeys(range(len(machine.tasks)), 0)
    passed: dict[int, tuple[int | str, int]] = {}
    running: dict[int, tuple[Task, int]] = {}
    accesses: list[tuple[Task, int, int]] = []
    for now, (actor, task) in enumerate(steps):
        end = now + 1
        following = machine.after(state, (actor, task))[0]
        if actor >= 0:
            found.marks.append(_mark(machine, task, now, end))
            ends[actor] = end
            if task.op.op == "wait" and task.bar in passed:
                found.passings.append(Passing(*machine.barriers[task.bar], *passed[task.bar], actor, now))
            if task.buf >= 0 and following is not None:
                running[id(task)] = task, now
        if following is None:
            break
        for place, (old, new) in enumerate(zip(state[1], following[1], strict=True)):
            if old[0] != new[0]:
                passed[place] = task.op.buf if actor < 0 and task.op.buf else task.role, end
        for one, start in [pair for pair in running.values() if _has_ended(machine, following, *pair, end)]:
            accesses.append((one, start, end))
            del running[id(one)]
        state = following
    accesses += [(task, start, end) for task, start in running.values()]
    started = {id(task) for task, _, _ in accesses}
    later = [task for tasks in machine.tasks for task in tasks if task.buf >= 0 and id(task) not in started]
    accesses += [(task, end, end) for task in later if task.op.op not in WRITES]  # so its slot stays full until then
    for name, _ in machine.pipeline.buffers:
        mine = [
            (machine.slots[task.buf][1], task.index, task.op.op in WRITES, start, stop)
            for task, start, stop in accesses
            if task.op.buf == name
        ]
        found.fills += _fills(name, mine)
    return found, state, ends


def _mark(machine: Machine, task: Task, start: int, end: int) -> Mark:
    slot = machine.slots[task.buf][1] if task.buf >= 0 else machine.barriers[task.bar][1] if task.bar >= 0 else None
    phase = task.phase if task.bar >= 0 else None
    return Mark(task.role, _part(machine, task), task.k, (task.op,), slot, phase, start, end)


def _part(machine: Machine, task: Task) -> str:
    """Return the part of its role in which a task is, by the values of its op."""
    role = machine.pipeline.roles[task.role]
    if any(task.op is op for op in role.loop):
        return "loop"
    return "pre" if any(task.op is op for op in role.pre) else "post"


def _has_ended(machine: Machine, state: State, task: Task, start: int, now: int) -> bool:
    """Return whether an access that has started has ended in a state."""
    kind = GROUPED.get(task.op.op)
    if kind is not None:
        mine = state[3][task.role][list(GROUPS).index(kind)]
        return task in machine.running[task.role][kind][:mine]
    return now > start and task not in state[4]
