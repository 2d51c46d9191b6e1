"""Liveness: a time for every event that grows along every edge, so that no event waits for itself.

Such times exist if no cycle of the folded graph goes around without an iteration in between.
"""

from __future__ import annotations

from layoutalg.proofs.pipeline.graph import Graph


def times(graph: Graph) -> tuple[int, list[tuple[int, int]]] | None:
    """Return M, and for each event a time and how late it is, so that they grow along every edge for every N.

    An event is at M (k + late N) + time, where k is its coordinate, and 0 before and after the loops. So events after
    the loops are late by 1, and all that waits for them, if only for a phase of a fixed number, is late by 1 too.
    """
    count, pace = len(graph.events), len(graph.events) + 1
    links: list[tuple[int, int, int, int]] = []  # of two events: k of the second less k of the first, with a part in N
    for event, known in graph:
        links += [(event, after, far, 0) for after, far in graph.steps[event]]
        for moves, edges in ((0, graph.heads[event]), (1, [(x, after, y) for x, _, after, y in graph.tails[event]])):
            for x, after, y in edges:
                runs = (not known.once, not graph.events[after].once)
                links.append((event, after, y * runs[1] - x * runs[0], moves * (runs[1] - runs[0])))
    links += [(before, after, 0, 0) for before, after in graph.crossings]
    late = _longest(count, [(before, after, -moves) for before, after, _, moves in links])
    if late is None:
        return None
    gaps = []
    for before, after, far, moves in links:
        moves += late[after] - late[before]
        gaps.append((before, after, 1 - pace * (far + moves * graph.pipeline.least)))
    found = _longest(count, gaps)
    return None if found is None else (pace, list(zip(found, late, strict=True)))


def _longest(count: int, gaps: list[tuple[int, int, int]]) -> list[int] | None:
    """Return the least numbers from 0 on that differ by at least these gaps, or None if there are none."""
    found = [0] * count
    for _ in range(count + 1):
        moved = False
        for before, after, gap in gaps:
            if found[before] + gap > found[after]:
                found[after] = found[before] + gap
                moved = True
        if not moved:
            return found
    return None
