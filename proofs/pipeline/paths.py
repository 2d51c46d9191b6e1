"""Paths in the event graph: happens-before for all instances of a pair of events at once.

A frame is a family of instances: coordinates are constants, or N plus constants, or k plus constants where k runs over
an interval that grows with N. An event may be used if it exists in every member of the family.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from layoutalg.proofs.pipeline.graph import ENDLESS, Graph

State: TypeAlias = "tuple[int, int, bool]"
Step: TypeAlias = "tuple[int, int]"
"""An event and its coordinate in the frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A family of instances.

    Args:
        low: The least value of the frame's origin: 0 for constants, the least N for ends, the least k.
        high: The most of the origin minus N: minus the least N for constants, 0 for ends, the most of k - N.
        least: The least N of the family.
        heads: Whether events before the loops have coordinates in it: the origin is 0.
        tails: What N is in the frame's coordinates; None if it has none.
    """

    low: int
    high: int
    least: int
    heads: bool = False
    tails: int | None = None


def numbers_frame(least: int) -> Frame:
    """Return the frame of constant coordinates for all N of at least ``least``."""
    return Frame(0, -least, least, heads=True)


def ends_frame(least: int) -> Frame:
    """Return the frame of coordinates N plus a constant."""
    return Frame(least, 0, least, tails=0)


def fixed_frame(trips: int) -> Frame:
    """Return the frame of a single N."""
    return Frame(0, -trips, trips, heads=True, tails=trips)


def path(graph: Graph, frame: Frame, source: Step, target: Step, fence: bool = False) -> tuple[Step, ...] | None:
    """Return a path from one event to another, through a proxy fence if asked, or None if there is none."""
    events, steps, goal = graph.events, graph.steps, target
    reach = _reach(graph)
    lowest, highest = min(source[1], target[1]) - reach, max(source[1], target[1]) + reach
    first: State = (*source, False)
    came: dict[State, State | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        event, at, fenced = state
        once = events[event].once
        found: list[Step] = [(after, at + far) for after, far in steps[event]]
        if frame.heads:
            found += [(after, y) for x, after, y in graph.heads[event] if once or x == at]
        elif frame.tails is not None and events[event].part == "pre":  # before the first iteration is before the last
            loops = [after for _, after, _ in graph.heads[event] if events[after].part == "loop"]
            found += [(after, events[after].high - 1 + frame.tails) for after in loops]
        if frame.tails is not None:
            for x, below, after, y in graph.tails[event]:
                if once or (at - frame.tails <= x if below else at - frame.tails == x):
                    found.append((after, y if events[after].once else y + frame.tails))
        elif frame.heads:
            last = events[event].high - 1  # behind the last iteration is behind any
            out = [(after, y) for x, below, after, y in graph.tails[event] if once or (below and last <= x)]
            found += [(after, y) for after, y in out if events[after].once]
        found += [(after, 0) for before, after in graph.crossings if before == event]
        for after, y in found:
            if not lowest <= y <= highest:
                continue
            seen = (after, y, fenced or (fence and after in graph.fences))
            if seen in came or not exists(graph, frame, after, y):
                continue
            came[seen] = state
            if (after, y) == goal and (seen[2] or not fence):
                return _back(came, seen)
            queue.append(seen)
    return None


def exists(graph: Graph, frame: Frame, event: int, at: int) -> bool:
    """Return whether the event exists in every member of the frame."""
    known = graph.events[event]
    if known.part == "pre":
        return frame.heads or frame.tails is not None
    if known.once:
        return (frame.heads or frame.tails is not None) and frame.least >= known.low
    if known.most < ENDLESS and not (frame.heads and at < known.most):
        return False
    return frame.low + at >= known.low and frame.high + at < known.high


def _reach(graph: Graph) -> int:
    """Return how far beyond both ends a path may go."""
    return 2 * max([ring.slots for _, ring in graph.pipeline.barriers], default=1) + 2


def _back(came: dict[State, State | None], state: State) -> tuple[Step, ...]:
    found: list[Step] = []
    at: State | None = state
    while at is not None:
        found.append(at[:2])
        at = came[at]
    return tuple(reversed(found))
