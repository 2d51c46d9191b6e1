"""What must happen before what, so that nothing of docs/pipelines.md can go wrong.

If every obligation has a path for every instance, no violation comes first in time: the path to it would consist of
edges that hold until then, and says that it does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutalg.proofs.pipeline.document import GENERIC, WRITES
from layoutalg.proofs.pipeline.graph import ENDLESS, Graph, Instances
from layoutalg.proofs.pipeline.paths import Frame, Step, ends_frame, exists, fixed_frame, numbers_frame, path

FARTHEST_END = 64
"""instances: at most this many at each end of a loop are looked at one by one"""


@dataclass(frozen=True, slots=True)
class End:
    """One side of an obligation: an event whose instances have numbers, as in ``Instances``."""

    part: str
    event: int
    shift: int
    low: int
    high: int
    most: int = ENDLESS


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


def obligations(graph: Graph, policy: str) -> Iterator[Obligation]:
    """Yield all obligations."""
    for name, barrier in graph.pipeline.barriers:
        phase = graph.events[graph.phases[name]]
        phases = End("phase", graph.phases[name], 0, phase.low, phase.high, phase.most)
        for use in graph.uses.get(name, ()):
            starts, ends = _end(use, use.start), _end(use, use.done)
            if use.op.on_barrier:
                what = "meets an earlier phase than its own"
                yield Obligation("ub", what, name, phases, starts, barrier.slots, use)
            else:
                what = "may pass by the parity of an earlier phase"
                yield Obligation("ub", what, name, phases, starts, barrier.slots, use)
                what = "may still wait when the next phase completes"
                yield Obligation("ub", what, name, ends, phases, barrier.slots, use)
    for name, buffer in graph.pipeline.buffers:
        yield from _accesses(graph, name, buffer.slots, policy)


def expectations(graph: Graph) -> Iterator[list[Obligation]]:
    """Yield, for each ``expect``, obligations one of which has to hold: some arrival of its phase comes later."""
    for name, _ in graph.pipeline.barriers:
        uses = graph.uses.get(name, ())
        arrivals = [use for use in uses if use.op.on_barrier and use.op.op not in ("expect", "tma_load")]
        for use in uses:
            if use.op.op == "expect":
                what = "its phase may complete before it"
                yield [
                    Obligation("ub", what, name, _end(use, use.start), _end(other, other.start), 0, use)
                    for other in arrivals
                    if other.part == use.part and other.low <= use.low and other.high >= use.high
                ]


def _end(use: Instances, event: int) -> End:
    return End(use.part, event, use.shift, use.low, use.high)


def _accesses(graph: Graph, name: str, slots: int, policy: str) -> Iterator[Obligation]:
    """Yield what the reads and writes of a buffer owe each other."""
    uses = graph.uses.get(name, [])
    writes = [use for use in uses if use.op.op in WRITES]
    reads = [use for use in uses if use not in writes]
    for write in writes:
        generic = write.op.op in GENERIC
        for read in reads:
            fence = generic and read.op.op not in GENERIC
            what = "may read before the write of its index is done"
            yield Obligation("race", what, name, _end(write, write.done), _end(read, read.start), 0, read)
            if fence:
                what = "reads a generic write with no proxy fence in between"
                yield Obligation("race", what, name, _end(write, write.done), _end(read, read.start), 0, read, True)
            what = "may overwrite what is still to be read"
            yield Obligation("race", what, name, _end(read, read.done), _end(write, write.start), slots, write)
            if not generic and read.op.op == "read" and policy == "strict":
                what = "overwrites after a generic read with no proxy fence in between"
                yield Obligation(
                    "race", what, name, _end(read, read.done), _end(write, write.start), slots, write, True
                )
        for other in writes:
            what = "may overwrite a slot that is still written"
            yield Obligation("race", what, name, _end(write, write.done), _end(other, other.start), slots, other)
            if generic and other.op.op == "tma_load":
                what = "overwrites a generic write with no proxy fence in between"
                yield Obligation(
                    "race", what, name, _end(write, write.done), _end(other, other.start), slots, other, True
                )


def show(graph: Graph, obligation: Obligation) -> list[Shown] | None:
    """Return paths for all instances of an obligation, or None."""
    found: list[Shown] = []
    for frame, source, target in _instances(graph.pipeline.least, obligation):
        shown = _show(graph, obligation, frame, source, target)
        if shown is None:
            return None
        found += shown
    return found


def _instances(least: int, one: Obligation) -> Iterator[tuple[Frame, int, int]]:
    """Yield the families of instances: a frame, and the coordinates of both events in it."""
    source, target, apart = one.source, one.target, one.apart
    first, second = _runs(source), _runs(target)
    if first and second:
        low = max(source.low, target.low - apart)
        high = min(source.high, target.high - apart) - 1
        if high > -ENDLESS:
            yield Frame(low, high, max(least, low - high)), -source.shift, apart - target.shift
    elif first or second:
        loop, once = (source, target) if first else (target, source)
        number = once.shift + (-apart if first else apart)  # of the loop's event, minus N if the other is after loops
        at = number - loop.shift
        if once.part == "pre":
            if loop.low <= number < loop.most:
                frame = numbers_frame(max(least, number - loop.high + 1))
                yield frame, *((at, 0) if first else (0, at))
        elif number < loop.high:
            frame = ends_frame(max(least, once.low, loop.low - number))
            yield frame, *((at, 0) if first else (0, at))
    elif source.part == target.part:
        if source.shift + apart == target.shift:
            most = max(least, source.low, target.low)
            yield numbers_frame(least) if source.part == "pre" else ends_frame(most), 0, 0
    elif source.part == "pre":
        trips = source.shift + apart - target.shift
        if trips >= max(least, target.low):
            yield fixed_frame(trips), 0, 0
    else:  # a source after the loops, whose target is before them
        trips = target.shift - apart - source.shift
        if trips >= max(least, source.low):
            yield fixed_frame(trips), 0, 0


def _runs(end: End) -> bool:
    return end.part in ("loop", "phase")


def _show(graph: Graph, one: Obligation, frame: Frame, source: int, target: int) -> list[Shown] | None:
    """Return paths for one family, splitting off its ends where they need paths of their own."""
    first, second = (one.source.event, source), (one.target.event, target)
    found = path(graph, frame, first, second, one.fence)
    if found is not None:
        return [Shown(one, frame, found)]
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
        larger = numbers_frame(trips + 1) if frame.heads else ends_frame(trips + 1)
        found = path(graph, larger, first, second, one.fence)
        if found is not None:
            return [*small, Shown(one, larger, found)]
    return None


__all__ = ["End", "Obligation", "Shown", "exists", "expectations", "obligations", "show"]
