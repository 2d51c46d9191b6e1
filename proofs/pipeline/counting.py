"""What can be counted without an order of events: arrivals and bytes of each phase, the writes of each index.

The numbers of an op are an interval whose ends are constants or N plus constants, so what is true of a number depends
on its order among the ends: it is enough to look at the N for which two ends meet or almost meet, two N beyond (whose
difference tells a constant from N plus one), and there at the ends and their neighbours. That decides for every N.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from layoutalg.proofs.pipeline.graph import ENDLESS, Graph, Instances, outside
from layoutalg.proofs.pipeline.ops import COPIES, MOST_BYTES


@dataclass(frozen=True, slots=True)
class Miscount:
    """A phase or an index with the wrong number of something.

    Args:
        kind: As in docs/pipelines.md.
        what: In words.
        ring: Barrier or buffer.
        number: Slot plus slots times phase.
        trips: A trip count with the fault.
        use: An op that is concerned.
    """

    kind: str
    what: str
    ring: str
    number: int
    trips: int
    use: Instances


def cases(uses: Iterable[Instances], least: int, apart: Sequence[int] = (0,)) -> Iterator[tuple[int, list[int]]]:
    """Yield each N that has to be looked at, with the numbers to look at.

    Args:
        uses: Ops on one ring.
        least: Least N.
        apart: Numbers this far from each other are looked at together.
    """
    fixed, moving = set(apart), {0}
    for use in uses:
        constants, relatives = use.ends()
        fixed.update([end + far for end in constants for far in apart])
        moving.update([end + far for end in relatives for far in apart])
        if not use.runs:
            moving.add(-use.low)  # so that the N from which on it runs is looked at
    trips = {least} | {one - other + near for one in fixed for other in moving for near in (-1, 0, 1, 2)}
    for count in sorted([count for count in trips if count >= least]):
        ends = fixed | {count + end for end in moving}
        yield count, sorted({end + near for end in ends for near in (-1, 0)})


def completed(graph: Graph, name: str) -> tuple[int, int] | Miscount:
    """Return (h, most) if the phases of a barrier that complete are those below N + h and below ``most``, for every N.

    Raises: RepresentabilityError: LA971: those phases are no such interval.
    """
    pipeline = graph.pipeline
    barrier = dict(pipeline.barriers)[name]
    uses = graph.uses.get(name, [])
    adds = [use for use in uses if use.op.on_barrier]
    waits = [use for use in uses if not use.op.on_barrier]
    if not adds:
        idle = next((use for use in waits if not use.fixed or use.shift >= 0), None)
        if idle is None:
            return ENDLESS, 0
        return Miscount("deadlock", "nothing ever arrives", name, 0, max(pipeline.least, 1 - idle.high, idle.low), idle)
    ends: dict[int, int] = {}
    for trips, numbers in cases(uses, pipeline.least, (0, barrier.slots)):
        spans = [(use, use.numbers(trips)) for use in uses]
        whole, latest = set(), -1
        for number in numbers:
            here = [use for use, span in spans if number in span]
            if not here:
                continue
            latest = number
            arrivals, expected, delivered = sums = _sums(graph, here)
            fault = _fault(name, barrier.count, here, sums, number, trips)
            if fault is not None:
                return fault
            if number >= 0 and arrivals == barrier.count and expected == delivered:
                whole.add(number)
        ends[trips] = max(whole, default=-1) + 1
        if any(number not in whole for number in numbers if 0 <= number < ends[trips]):
            raise outside("its phases do not complete in order for every N", name)
        if latest - barrier.slots >= ends[trips]:
            raise outside("a phase after one that never completes is used", name)
    if all(use.fixed for use in uses):
        return ENDLESS, ends[max(ends)]
    high = ends[max(ends)] - max(ends)
    for trips, end in ends.items():
        if end != max(0, trips + high):
            raise outside(f"of N = {trips} iterations {end} phases complete, of larger N N{high:+d}", name)
    return high, ENDLESS


def _fault(
    name: str, count: int, here: list[Instances], sums: tuple[int, int, int], number: int, trips: int
) -> Miscount | None:
    """Return what is wrong with the counts of one phase, whose ops add up to these sums."""
    adds = [use for use in here if use.op.on_barrier]
    waits = [use for use in here if not use.op.on_barrier and number >= 0]
    arrivals, expected, delivered = sums
    told = f"{arrivals} arrival{'s' * (arrivals != 1)} for a count of {count}"
    if number < 0:
        return Miscount("ub", "a phase before the first", name, number, trips, adds[0]) if adds else None
    if max(expected, delivered) > MOST_BYTES:
        raise outside(f"a phase has more than {MOST_BYTES} bytes", name)
    if waits and expected != delivered:
        what = f"{expected} bytes expected, {delivered} delivered"
        return Miscount("tx_mismatch", what, name, number, trips, waits[0])
    if arrivals > count:
        return Miscount("ub", told, name, number, trips, adds[0])
    if waits and arrivals < count:
        return Miscount("deadlock", told, name, number, trips, waits[0])
    return None


def _sums(graph: Graph, uses: Iterable[Instances]) -> tuple[int, int, int]:
    """Return the arrivals of ops, and the bytes that they expect and deliver."""
    arrivals = expected = delivered = 0
    for use in uses:
        came, size, copied = graph.pipeline.owed(use.op)
        if use.op.op in COPIES and not copied:
            raise outside("no barrier knows when a copy of 0 bytes is done", str(use.op))
        arrivals, expected, delivered = arrivals + came, expected + size, delivered + copied
    return arrivals, expected, delivered


def unwritten(graph: Graph, name: str) -> Miscount | None:
    """Return a read of an index of a buffer that no op writes, if other indices are written.

    Raises: RepresentabilityError: LA971: some index is left out between two that are written.
    """
    uses = graph.uses.get(name, [])
    writes = [use for use in uses if use.writes]
    reads = [use for use in uses if not use.writes]
    if not writes:
        return None
    for trips, numbers in cases(uses, graph.pipeline.least):
        spans = [write.numbers(trips) for write in writes]
        filled = [number for number in numbers if any(number in span for span in spans)]
        if any(filled[0] < number < filled[-1] and number not in filled for number in numbers if filled):
            raise outside(f"for N = {trips} some index is left out between two that are written", name)
        for number in numbers:
            if number >= 0 and number not in filled:
                for read in reads:
                    if number in read.numbers(trips):
                        return Miscount("race", "a read of what nobody writes", name, number, trips, read)
    return None


def left_running(graph: Graph, name: str) -> Miscount | None:
    """Return a copy into a slot that no later wait on its barrier covers."""
    slots = dict(graph.pipeline.barriers)[name].slots
    uses = graph.uses.get(name, [])
    copies = [use for use in uses if use.op.op in COPIES]
    waits = [use for use in uses if not use.op.on_barrier]
    if not copies:
        return None
    for trips, numbers in cases(uses, graph.pipeline.least, (0, slots)):
        last: dict[int, int] = {}
        for wait in waits:
            for number in wait.numbers(trips)[-slots:]:
                last[number % slots] = max(number, last.get(number % slots, -1))
        for copy in copies:
            for number in {*numbers, *copy.numbers(trips)[-slots:]}:
                if number >= 0 and number in copy.numbers(trips) and number > last.get(number % slots, -1):
                    return Miscount("ub", "a copy runs when the block ends", name, number, trips, copy)
    return None
