"""Liveness: a time for every event that grows along every edge, so that no event waits for itself.

An event of a loop or a barrier has the time M x + t at coordinate x, an op before the loops t, one after them M N + t.
Such times exist if no cycle of the folded graph goes around without an iteration in between.
"""

from __future__ import annotations

from layoutalg.proofs.pipeline.graph import Graph


def times(graph: Graph) -> tuple[int, list[int]] | None:
    """Return M and a time for each event, or None if some cycle needs no time."""
    pace = len(graph.events) + 1
    edges: list[tuple[int, int, int]] = []  # (before, after, least difference of their times)
    for event, known in graph:
        edges += [(event, after, 1 - pace * far) for after, far in graph.steps[event]]
        for x, after, y in graph.heads[event]:
            before = 0 if known.once else pace * x
            edges.append((event, after, 1 + before - (0 if graph.events[after].once else pace * y)))
        for x, _, after, y in graph.tails[event]:
            before = 0 if known.once else pace * x
            edges.append((event, after, 1 + before - (0 if graph.events[after].once else pace * y)))
    edges += [(before, after, 1 - pace * graph.pipeline.least) for before, after in graph.crossings]
    found = [0] * len(graph.events)
    for _ in range(len(graph.events) + 1):
        moved = False
        for before, after, gap in edges:
            if found[before] + gap > found[after]:
                found[after] = found[before] + gap
                moved = True
        if not moved:
            return pace, found
    return None
