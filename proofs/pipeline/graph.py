"""The event graph of a pipeline, folded over the loop: events, and edges with iteration distances.

An event is the start of an op, the end of an asynchronous one, the passing of a wait, or the completion of a phase of a
barrier. Events of loops and barriers have a coordinate: the iteration, or the **number** of a phase, which is its
slot plus the number of slots times its index (so phase f of slot s is number s + f D, and -D .. -1 have passed at
first). An event exists for coordinates from ``low`` to N + ``high`` - 1; events before and after the loops exist once.

An edge says that one event happens before another in every run that meets no violation earlier: program order, start
before end, contributions before the phase that they complete, a phase before the next of its slot, a phase before its
waits, asynchronous reads before the wait that covers their group. See docs/pipelines.md for how they prove a pipeline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.proofs.pipeline.document import Pipeline, Role
from layoutalg.proofs.pipeline.expansion import expanded
from layoutalg.proofs.pipeline.ops import COPIES, GROUPED, GROUPS, LATER, SIGNALS, WRITES, Op, Part

ENDLESS: Final = 1 << 60
What: TypeAlias = Literal["start", "done", "phase", "last"]
Place: TypeAlias = "Part | Literal['phase']"
Turns: TypeAlias = "Mapping[tuple[str, Part, int], int]"
"""For waits with ``flip``, by role, part and place: the phases to add so that the parity fits (1 or -1)."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Args:
        owner: Its role, or the barrier of a phase.
        part: The part of the role; ``"phase"`` for phases of a barrier.
        place: Its op in the part.
        what: ``"start"``, or ``"done"``: an asynchronous op has ended, a wait has passed; or ``"last"``: an
            asynchronous op that adds to one index in all iterations has ended in all of them.
        low: Least coordinate; for an op after the loops the least N for which its index is not negative, for
            ``"last"`` the least N that runs the op.
        high: Coordinates are below N + this.
        most: Coordinates are also below this: phases of a barrier that no loop uses.
    """

    owner: str
    part: Place
    place: int
    what: What
    low: int = 0
    high: int = 0
    most: int = ENDLESS

    @property
    def once(self) -> bool:
        """Whether it is before or after the loops, or the last of all iterations, and has no coordinate."""
        return self.part in ("pre", "post") or self.what == "last"


@dataclass(frozen=True, slots=True)
class Instances:
    """The instances of an op on a ring: loop ops have numbers from ``low`` to N + ``high`` - 1, others one number.

    A loop op with an absolute index has one number too, in all its iterations.

    Args:
        role: Its role.
        part: Its part.
        place: Its place there.
        op: The op.
        shift: Number minus coordinate; for ops with one number that number, minus N unless ``fixed``.
        start: Its event when it starts.
        done: Its event when it is done, in all iterations if they have one number; the same as ``start`` for an op that
            is done at once.
        low: First number of a loop op; for an op with one number the least N that runs it.
        high: End of the numbers of a loop op, minus N.
        fixed: Whether it has one number, which does not depend on N.
        is_source: Whether the ring is what a copy reads.
    """

    role: str
    part: Part
    place: int
    op: Op
    shift: int
    start: int
    done: int
    low: int = 0
    high: int = 0
    fixed: bool = False
    is_source: bool = False

    @property
    def writes(self) -> bool:
        """Whether it writes the ring."""
        return self.op.op in WRITES and not self.is_source

    @property
    def copies(self) -> bool:
        """Whether it writes the ring by a copy whose end a barrier knows."""
        return self.op.op in COPIES and not self.is_source

    @property
    def runs(self) -> bool:
        """Whether its numbers are an interval."""
        return self.part == "loop" and not self.fixed

    def numbers(self, trips: int) -> range:
        """Return the numbers when N is ``trips``."""
        if self.runs:
            return range(self.low, max(self.low, trips + self.high))
        if trips < self.low:
            return range(0)
        number = self.shift + (0 if self.fixed else trips)
        return range(number, number + 1)

    def ends(self) -> tuple[list[int], list[int]]:
        """Return the fixed ends of the numbers, and those that move with N (minus N)."""
        if self.runs:
            return [self.low], [self.high]
        return ([self.shift, self.shift + 1], []) if self.fixed else ([], [self.shift, self.shift + 1])


@dataclass(slots=True)
class Graph:
    """Events, edges and the instances of each ring.

    Edges of ``steps`` lead from an event at x to one at x + distance. Those of ``heads`` start or end before the loops:
    (x, event, y) from the event at x to another at y. Those of ``tails`` start or end after them, with coordinates
    minus N; a third kind of source is "any x of at most this".
    """

    pipeline: Pipeline
    events: list[Event] = field(default_factory=list)
    steps: list[list[tuple[int, int]]] = field(default_factory=list)
    heads: list[list[tuple[int, int, int]]] = field(default_factory=list)
    tails: list[list[tuple[int, bool, int, int]]] = field(default_factory=list)
    crossings: list[tuple[int, int]] = field(default_factory=list)
    phases: dict[str, int] = field(default_factory=dict)
    uses: dict[str, list[Instances]] = field(default_factory=dict)
    fences: set[int] = field(default_factory=set)

    def add(self, event: Event) -> int:
        """Add an event and return its number."""
        self.events.append(event)
        self.steps.append([])
        self.heads.append([])
        self.tails.append([])
        return len(self.events) - 1

    def link(self, part: Part, before: int, after: int) -> None:
        """Let one event precede another of the same role and part, in loops of the same iteration."""
        if part == "loop":
            self.steps[before].append((after, 0))
        elif part == "pre":
            self.heads[before].append((0, after, 0))
        else:
            self.tails[before].append((0, False, after, 0))

    def op(self, event: Event) -> Op:
        """Return the op of an event of a role."""
        role = next(role for role in self.pipeline.roles if role.name == event.owner)
        found: Op = getattr(role, event.part)[event.place]
        return found

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        return enumerate(self.events)


def outside(reason: str, where: str) -> RepresentabilityError:
    """Return the error for a pipeline that has no graph."""
    return RepresentabilityError(Diagnostic("LA971", "outside of what can be proved for every N", (where,), reason))


def graph_of(pipeline: Pipeline, turned: Turns) -> Graph:
    """Return the graph.

    Raises: RepresentabilityError: LA971: an op has no shift from k.
    """
    pipeline = expanded(pipeline)
    graph = Graph(pipeline)
    for name, _ in pipeline.barriers:
        graph.phases[name] = graph.add(Event(name, "phase", 0, "phase", 0, ENDLESS))
    for role in pipeline.roles:
        ops = [_add_op(graph, role, part, place, op, turned) for part, place, op in role.ops()]
        _program_order(graph, role, ops)
        _groups(graph, role, ops)
        _lasts(graph, role)
    for name, barrier in pipeline.barriers:
        phase = graph.phases[name]
        graph.steps[phase].append((phase, barrier.slots))
        for use in graph.uses.get(name, ()):
            _to_phase(graph, use, phase)
    return graph


Ordered: TypeAlias = tuple[Part, int, Op, int, int]
"""An op of a role: part, place, op, and its first and last event."""


def _add_op(graph: Graph, role: Role, part: Part, place: int, op: Op, turned: Turns) -> Ordered:
    """Add the events of an op and its use of a barrier or a buffer."""
    pipeline = graph.pipeline
    where = f"{role.where(part, place)}, {op}"
    index, fixed = op.index(0), op.is_fixed(part)
    together = part == "loop" and fixed and op.op == "mma_write"
    if part == "loop" and fixed and (op.on_barrier or (op.op in WRITES and not together)):
        raise outside("an absolute index that every iteration adds to", where)
    low, high = op.first, role.trip - op.last
    if part == "post" and (op.bar or op.buf) and not fixed:
        if pipeline.least + role.trip < 0:
            raise outside(f"an index after a loop that may run N{role.trip:+d} < 0 times", where)
        index += role.trip
        low = 0 if op.op == "wait" else max(0, -index)
    if part == "loop" and op.needs_index and not fixed:
        low = max(low, -index)  # an op with a negative index is left out
    start = graph.add(Event(role.name, part, place, "start", low, high))
    done = start
    if op.op == "wait" or op.op in LATER:
        done = graph.add(Event(role.name, part, place, "done", low, high))
        graph.link(part, start, done)
    if op.op == "proxy_fence":
        graph.fences.add(start)
    least = max(0, low - high + 1)  # the N that run the op of a loop
    whole = graph.add(Event(role.name, part, place, "last", least)) if together else done
    for ring in (op.bar, op.buf, op.src):
        if ring and not op.is_left_out(part):
            shift = index
            if ring == op.bar:
                turn = op.ph + turned.get((role.name, part, place), 0)
                shift += turn * dict(pipeline.barriers)[ring].slots
            numbers = (low, 0)
            if part == "loop":
                numbers = (least, 0) if fixed else (low + shift, high + shift)
            use = Instances(role.name, part, place, op, shift, start, whole, *numbers, fixed, ring == op.src)
            graph.uses.setdefault(ring, []).append(use)
    last = done if op.op == "wait" else start
    return part, place, op, start, last


def _program_order(graph: Graph, role: Role, ops: list[Ordered]) -> None:
    """Add the order of the ops of one role; an op that some iterations, or small N, leave out is bypassed."""
    pre, loop, post = ([entry for entry in ops if entry[0] == part] for part in ("pre", "loop", "post"))
    full = [graph.events[start].low == 0 and graph.events[start].high == role.trip for *_, start, _ in loop]
    for place, (_, _, _, start, _) in enumerate(loop):
        for back in range(1, len(loop) + 1):
            before = (place - back) % len(loop)
            graph.steps[loop[before][4]].append((start, int(place - back < 0)))
            if full[before]:
                break
    for one, following in itertools.pairwise(pre):
        graph.heads[one[4]].append((0, following[3], 0))
    opening = []  # the ops after the loop of which one is the first, whatever N is
    for place, (_, _, _, start, _) in enumerate(post):
        for _, _, _, before, last in reversed(post[:place]):
            graph.tails[last].append((0, False, start, 0))
            if graph.events[before].low == 0:
                break
        else:
            opening.append(start)
    for _, _, _, start, last in loop:
        if pre:
            graph.heads[pre[-1][4]].append((0, start, graph.events[start].low))
        for after in opening:
            graph.tails[last].append((graph.events[start].high - 1, True, after, 0))
    if pre:
        graph.crossings += [(pre[-1][4], after) for after in opening]


def _groups(graph: Graph, role: Role, ops: list[Ordered]) -> None:
    """Add the edges from asynchronous accesses to the waits that cover their groups, and to arrivals after them."""
    for kind, (commit, wait) in GROUPS.items():
        reads = [entry for entry in ops if GROUPED.get(entry[2].op) == kind]
        commits = [entry for entry in ops if entry[2].op == commit]
        waits = [entry for entry in ops if entry[2].op == wait]
        if reads and any(entry[2].first or entry[2].last for entry in commits):
            raise outside(f"a guarded {commit}", role.name)
        each = sum([entry[0] == "loop" for entry in commits])
        whole = sum([entry[0] == "pre" for entry in commits])

        def before(entry: Ordered, commits: list[Ordered] = commits) -> int:
            """Return the commits in the same part before an op."""
            return sum([other[0] == entry[0] and other[1] < entry[1] for other in commits])

        signals = [entry for entry in ops if SIGNALS.get(entry[2].op) == kind]
        for read in reads:
            done = read[3] + 1
            for signal in signals:
                _signalled(graph, role, read, signal)
            for cover in waits:
                needed = cover[2].n + 1 + before(read) - before(cover)  # commits between them, less whole iterations
                match read[0], cover[0]:
                    case "loop", "loop" if each:
                        graph.steps[done].append((cover[3], max(0, -(-needed // each))))
                    case ("loop", "loop") | ("pre", "pre") | ("post", "post"):
                        if needed <= 0:
                            graph.link(read[0], done, cover[3])
                    case "pre", "loop":
                        needed -= whole
                        if each or needed <= 0:
                            first = max(0, -(-needed // each)) if each else 0
                            graph.heads[done].append((0, cover[3], max(first, graph.events[cover[3]].low)))
                    case "pre", "post" if needed <= whole + each * max(0, graph.pipeline.least + role.trip):
                        graph.crossings.append((done, cover[3]))
                    case "loop", "post":
                        if each or needed <= 0:
                            back = max(1, -(-needed // each)) if each else 1
                            graph.tails[done].append((role.trip - back, True, cover[3], 0))


def _lasts(graph: Graph, role: Role) -> None:
    """Add the edges from the last end of an op that adds to one index in all iterations: those of its last iteration.

    What covers that one covers the others too; of what may cover it, the first and the last one of the loop are enough.
    """
    for event, known in graph:
        if known.owner == role.name and known.what == "last":
            done = event - 1
            at = graph.events[done].high - 1
            follow = []
            for after, far in graph.steps[done]:
                follow += [(after, y) for y in {at + far, graph.events[after].high - 1} if y >= at + far]
            follow += [(after, y) for x, below, after, y in graph.tails[done] if x == at or (below and at < x)]
            graph.tails[event] += [(0, False, after, y) for after, y in follow]


def _signalled(graph: Graph, role: Role, read: Ordered, signal: Ordered) -> None:
    """Add the edge from the end of an asynchronous access to that of an op that arrives after it."""
    done, end = read[3] + 1, signal[3] + 1
    match read[0], signal[0]:
        case "loop", "loop":
            far = int(read[1] > signal[1])
            graph.steps[done].append((end, far))
            if graph.events[end].low:  # the first ones are left out, and the next arrives after them too
                graph.steps[done].append((end, far + 1))
        case ("pre", "pre") | ("post", "post"):
            if read[1] < signal[1]:
                graph.link(read[0], done, end)
        case "pre", "loop":
            graph.heads[done].append((0, end, graph.events[end].low))
            graph.tails[done].append((0, False, end, graph.events[end].high - 1))
        case "pre", "post":
            graph.crossings.append((done, end))
        case "loop", "post":
            graph.tails[done].append((role.trip - 1, True, end, 0))


def _to_phase(graph: Graph, use: Instances, phase: int) -> None:
    """Add the edges between an op on a barrier and its phase."""
    if use.op.on_barrier:
        for event in {use.start, use.done}:
            if use.runs:
                graph.steps[event].append((phase, use.shift))
            elif use.fixed:
                graph.heads[event].append((0, phase, use.shift))
            else:
                graph.tails[event].append((0, False, phase, use.shift))
    elif use.runs:
        graph.steps[phase].append((use.done, -use.shift))
    elif use.fixed:
        if use.shift >= 0:  # earlier phases have passed at first
            graph.heads[phase].append((use.shift, use.done, graph.events[use.done].low if use.part == "loop" else 0))
    else:
        graph.tails[phase].append((use.shift, False, use.done, 0))
