"""What must happen before what, so that nothing of docs/pipelines.md can go wrong.

If every obligation has a path for every instance, no violation comes first in time: the path to it would consist of
edges that hold until then, and says that it does not happen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.ground import clock
from layoutalg.proofs.pipeline.graph import ENDLESS, Graph, Instances
from layoutalg.proofs.pipeline.ops import ARRIVES, GENERIC
from layoutalg.proofs.pipeline.paths import Frame, Step, ends_frame, fixed_frame, numbers_frame, path

FARTHEST_END = 64
"""instances: at most this many at each end of a loop are looked at one by one"""


@dataclass(frozen=True, slots=True)
class End:
    """One side of an obligation: an event whose instances have numbers, as in ``Instances``.

    If it has one number in all iterations, ``first`` is the coordinate of the first, and ``last`` + N that of the last.
    """

    part: str
    event: int
    shift: int
    low: int
    high: int
    most: int = ENDLESS
    fixed: bool = False
    first: int = 0
    last: int = 0

    @property
    def runs(self) -> bool:
        """Whether its numbers are an interval."""
        return self.part in ("loop", "phase") and not self.fixed


@dataclass(frozen=True, slots=True)
class Obligation:
    """For all numbers j: the source at j happens before the target at j + ``apart``.

    Args:
        kind: The kind of violation if it does not.
        what: In words.
        ring: Barrier or buffer.
        source: First event.
        target: Second event.
        apart: Their numbers differ by this.
        use: The op that goes wrong.
        fence: Whether a proxy fence has to lie between them.
    """

    kind: str
    what: str
    ring: str
    source: End
    target: End
    apart: int
    use: Instances
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A family of instances of an obligation with its path."""

    obligation: Obligation
    frame: Frame
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Ring:
    """A barrier or a buffer with the ops on it, and what they owe each other."""

    graph: Graph
    name: str
    slots: int

    @property
    def uses(self) -> list[Instances]:
        return self.graph.uses.get(self.name, [])

    def order(
        self,
        what: str,
        first: End,
        second: End,
        use: Instances,
        *,
        apart: int = 0,
        kind: str = "race",
        fence: bool = False,
    ) -> Obligation:
        """Return that the first comes before the second of the number ``apart`` more."""
        return Obligation(kind, what, self.name, first, second, apart, use, fence)

    def start(self, use: Instances) -> End:
        return self._end(use, use.start)

    def done(self, use: Instances) -> End:
        return self._end(use, use.done)

    def _end(self, use: Instances, event: int) -> End:
        known = self.graph.events[event]
        if known.what == "last":
            return End("post", event, use.shift, use.low, 0, ENDLESS, True)
        ends = (known.low, known.high - 1) if use.part == "loop" and use.fixed else (0, 0)
        return End(use.part, event, use.shift, use.low, use.high, ENDLESS, use.fixed, *ends)


def obligations(graph: Graph, policy: str) -> Iterator[Obligation]:
    """Yield all obligations."""
    for name, barrier in graph.pipeline.barriers:
        yield from _phases(_Ring(graph, name, barrier.slots))
    for name, buffer in graph.pipeline.buffers:
        yield from _accesses(_Ring(graph, name, buffer.slots), policy)


def alternatives(graph: Graph) -> Iterator[list[Obligation]]:
    """Yield lists of obligations one of which has to hold.

    Some arrival of its phase comes after each ``expect``. A copy into the part of a slot that another op writes
    directly starts before that, or after a proxy fence. Of an ``mma_write`` and another write of its index one is done
    before the other starts.
    """
    for name, buffer in graph.pipeline.buffers:
        ring = _Ring(graph, name, buffer.slots)
        for one, other in itertools.combinations([use for use in ring.uses if use.writes], 2):
            if "mma_write" in (one.op.op, other.op.op) and not in_order(one, other):
                what = "may meet another write of its index"
                pairs = (one, other), (other, one)
                yield [ring.order(what, ring.done(before), ring.start(after), after) for before, after in pairs]
        for write in [use for use in ring.uses if use.writes and use.op.op in GENERIC]:
            for copy in [use for use in ring.uses if use.copies]:
                what = "overwrites a generic write of its index with no proxy fence in between"
                yield [
                    ring.order(what, ring.start(copy), ring.start(write), copy),
                    ring.order(what, ring.done(write), ring.start(copy), copy, fence=True),
                ]
    for name, barrier in graph.pipeline.barriers:
        ring = _Ring(graph, name, barrier.slots)
        arrivals = [use for use in ring.uses if use.op.op in ARRIVES]
        for use in ring.uses:
            if use.op.op == "expect":
                what = "its phase may complete before it"
                yield [
                    ring.order(what, ring.start(use), ring.start(other), use, kind="ub")
                    for other in arrivals
                    if other.part == use.part and other.low <= use.low and other.high >= use.high
                ]


def in_order(one: Instances, other: Instances) -> bool:
    """Whether these writes are carried out in the order in which they start."""
    return one.op.op == other.op.op == "mma_write" and one.role == other.role


def _phases(ring: _Ring) -> Iterator[Obligation]:
    """Yield what the ops on a barrier owe its phases."""
    phase = ring.graph.events[ring.graph.phases[ring.name]]
    phases = End("phase", ring.graph.phases[ring.name], 0, phase.low, phase.high, phase.most)
    for use in ring.uses:
        adds = use.op.on_barrier
        what = "meets an earlier phase than its own" if adds else "may pass by the parity of an earlier phase"
        yield ring.order(what, phases, ring.start(use), use, apart=ring.slots, kind="ub")
        if not adds:
            what = "may still wait when the next phase completes"
            yield ring.order(what, ring.done(use), phases, use, apart=ring.slots, kind="ub")


def _accesses(ring: _Ring, policy: str) -> Iterator[Obligation]:
    """Yield what the reads and writes of a buffer owe each other."""
    writes = [use for use in ring.uses if use.writes]
    reads = [use for use in ring.uses if not use.writes]
    for write in writes:
        generic = write.op.op in GENERIC
        for read in reads:
            written, starts = ring.done(write), ring.start(read)
            yield ring.order("may read before the write of its index is done", written, starts, read)
            if generic and read.op.op not in GENERIC and ring.name not in ring.graph.pipeline.unfenced:
                what = "reads a generic write with no proxy fence in between"
                yield ring.order(what, written, starts, read, fence=True)
            freed, again = ring.done(read), ring.start(write)
            yield ring.order("may overwrite what is still to be read", freed, again, write, apart=ring.slots)
            if write.copies and read.op.op == "read" and policy == "strict":
                what = "overwrites after a generic read with no proxy fence in between"
                yield ring.order(what, freed, again, write, apart=ring.slots, fence=True)
        for other in writes:
            before = ring.start(write) if in_order(write, other) else ring.done(write)
            again = ring.start(other)
            yield ring.order("may overwrite a slot that is still written", before, again, other, apart=ring.slots)
            if generic and other.copies:
                what = "overwrites a generic write with no proxy fence in between"
                yield ring.order(what, ring.done(write), again, other, apart=ring.slots, fence=True)


def show(graph: Graph, obligation: Obligation) -> list[Shown] | None:
    """Return paths for all instances of an obligation, or None."""
    found: list[Shown] = []
    for family in _instances(graph.pipeline.least, obligation):
        shown = None if family is None else _show(graph, obligation, *family)
        if shown is None:
            return None
        found += shown
    return found


def show_parts(graph: Graph, obligation: Obligation) -> list[Shown] | None:
    """Return paths from all that adds to a phase, for with the last of it the phase completes; None without a phase."""
    ring = _Ring(graph, obligation.ring, 0)
    parts = [ring.done(use) for use in ring.uses if use.op.on_barrier] if obligation.source.part == "phase" else []
    shown = [show(graph, replace(obligation, source=part)) for part in parts]
    return list(itertools.chain(*filter(None, shown))) if shown and None not in shown else None


def _instances(least: int, one: Obligation) -> Iterator[tuple[Frame, int, int] | None]:
    """Yield the families of instances: a frame, and the coordinates of both events in it; None if there is no frame.

    An end that has one number in all iterations is reached if its first instance is, and left behind with its last.
    """
    source, target, apart = one.source, one.target, one.apart
    if source.part == "loop" and source.fixed:
        number = source.shift + apart
        if (target.fixed and number != target.shift) or (target.runs and not target.low <= number < target.most):
            return
        if target.part == "post" and target.fixed:
            yield ends_frame(max(least, source.low, target.low)), source.last, 0
        else:
            yield None
    elif source.runs and target.runs:
        low = max(source.low, target.low - apart)
        high = min(source.high, target.high - apart) - 1
        yield Frame(low, high, max(least, low - high)), -source.shift, apart - target.shift
    elif source.runs or target.runs:
        loop, once = (source, target) if source.runs else (target, source)
        number = once.shift + (-apart if source.runs else apart)  # of the loop's event, minus N unless fixed
        at = number - loop.shift
        if once.fixed:
            if loop.low <= number < loop.most:
                frame = numbers_frame(max(least, once.low, number - loop.high + 1))
                yield frame, *((at, once.first) if source.runs else (once.first, at))
        elif number < loop.high:
            frame = ends_frame(max(least, once.low, loop.low - number))
            yield frame, *((at, 0) if source.runs else (0, at))
    elif source.fixed == target.fixed:
        if source.shift + apart == target.shift:
            most = max(least, source.low, target.low)
            yield numbers_frame(most) if source.fixed else ends_frame(most), 0, target.first
    else:
        trips = (source.shift + apart - target.shift) * (1 if source.fixed else -1)
        if trips >= max(least, source.low, target.low):
            yield fixed_frame(trips), 0, target.first


def _show(graph: Graph, one: Obligation, frame: Frame, source: int, target: int) -> list[Shown] | None:
    """Return paths for one family, splitting off its ends where they need paths of their own."""
    clock.check("the paths of a pipeline")
    first, second = (one.source.event, source), (one.target.event, target)
    found = _shown(graph, one, frame, first, second)
    if found is not None:
        return [found]
    if frame.heads and frame.tails is not None:
        return None
    if frame.heads or frame.tails is not None:
        return _by_size(graph, one, frame, source, target)
    free = path(graph, Frame(ENDLESS, -ENDLESS, frame.least), first, second, one.fence)
    if free is None:
        return None
    events = graph.events
    head = max([0, *(events[event].low - at - frame.low for event, at in free)])
    tail = max([0, *(frame.high + at - events[event].high + 1 for event, at in free)])
    if max(head, tail) > FARTHEST_END:
        return None
    shown = [Shown(one, Frame(frame.low + head, frame.high - tail, frame.least + head + tail), free)]
    for number in range(frame.low, frame.low + head):
        each = numbers_frame(max(frame.least, number - frame.high))
        more = _show(graph, one, each, source + number, target + number)
        if more is None:
            return None
        shown += more
    for back in range(frame.high - tail + 1, frame.high + 1):
        each = ends_frame(max(frame.least, frame.low - back))
        more = _show(graph, one, each, source + back, target + back)
        if more is None:
            return None
        shown += more
    return shown


def _by_size(graph: Graph, one: Obligation, frame: Frame, source: int, target: int) -> list[Shown] | None:
    """Return a path for all N from some size on, and one for each N below."""
    first, second = (one.source.event, source), (one.target.event, target)
    small: list[Shown] = []
    for trips in range(frame.least, frame.least + FARTHEST_END):
        base = trips if frame.tails is not None else 0
        starts = [(event, at if graph.events[event].once else at + base) for event, at in (first, second)]
        fixed = fixed_frame(trips)
        found = path(graph, fixed, starts[0], starts[1], one.fence)
        if found is None:
            return None
        small.append(Shown(one, fixed, found))
        larger = _shown(graph, one, (numbers_frame if frame.heads else ends_frame)(trips + 1), first, second)
        if larger is not None:
            return [*small, larger]
    return None


def _shown(graph: Graph, one: Obligation, frame: Frame, first: Step, second: Step) -> Shown | None:
    """Return a path in a frame; between events without a coordinate also one at the ends of loops."""
    frames = [frame]
    if frame.heads and frame.tails is None and graph.events[first[0]].once and graph.events[second[0]].once:
        frames.append(ends_frame(frame.least))
    for known in frames:
        found = path(graph, known, first, second, one.fence)
        if found is not None:
            return Shown(one, known, found)
    return None
