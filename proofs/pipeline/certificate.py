"""Certificates of proved pipelines: the document, and what the stand-alone checker needs to confirm it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.pipeline.graph import ENDLESS, outside

if TYPE_CHECKING:
    from layoutalg.proofs.pipeline.document import Pipeline
    from layoutalg.proofs.pipeline.graph import Event, Graph
    from layoutalg.proofs.pipeline.obligations import Shown
    from layoutalg.proofs.pipeline.proving import Proof


def certificate(pipeline: Pipeline, policy: str, proof: Proof) -> Certificate:
    """Return the certificate that a pipeline is safe under a policy, for every N.

    Args:
        pipeline: The pipeline, with counters that start again if it has them.
        policy: ``"strict"`` or ``"practice"``.
        proof: Its proof.

    Raises: RepresentabilityError: LA971: some events wait for each other.
    """
    schedule = times(proof.graph)
    if schedule is None:
        raise outside("some events wait for each other", str(pipeline).partition("\n")[0])
    pace, timed = schedule
    fenced = {_ends(shown) for shown in proof.shown if shown.obligation.fence}
    needed = [shown for shown in proof.shown if shown.obligation.fence or _ends(shown) not in fenced]
    facts = list({str(fact): fact for fact in map(_fact, needed)}.values())
    evidence = {
        "turns": _turns(proof.graph),
        "completed": _completed(proof.graph),
        "pace": pace,
        "events": [[*_named(event), *time] for event, time in zip(proof.graph.events, timed, strict=True)],
        "facts": facts,
    }
    return Certificate("pipeline", {"pipeline": pipeline.to_json(), "policy": policy}, evidence)


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


def _named(event: Event) -> tuple[object, ...]:
    return event.owner, event.part, event.place, "done" if event.part == "phase" else event.what


def _turns(graph: Graph) -> list[int]:
    """Return the readings of the waits with ``flip``, in the order of the document."""
    turned = []
    uses = {(use.role, use.part, use.place): use for uses in graph.uses.values() for use in uses if use.op.flip}
    for role in graph.pipeline.roles:
        for part, place, op in role.ops():
            if op.flip:
                index = op.off + role.trip * (part == "post") if op.idx_abs is None else op.idx_abs
                slots = dict(graph.pipeline.barriers)[op.bar].slots
                turned.append((uses[role.name, part, place].shift - index) // slots - op.ph)
    return turned


def _completed(graph: Graph) -> list[list[object]]:
    """Return which phases of each barrier complete: those below a constant plus 0 or 1 times N."""
    found: list[list[object]] = []
    for name, phases in graph.phases.items():
        event = graph.events[phases]
        found.append([name, event.high, 1] if event.most == ENDLESS else [name, event.most, 0])
    return found


def _ends(shown: Shown) -> tuple[int, int, int]:
    """Return what a fact with a fence says also where none is needed."""
    one = shown.obligation
    return one.source.event, one.target.event, one.apart


def _fact(shown: Shown) -> dict[str, object]:
    """Return a path with its N and k as evidence."""
    frame = shown.frame
    single = frame.heads and frame.tails is not None
    family = not frame.heads and frame.tails is None
    return {
        "least": frame.least,
        **({"most": frame.least} if single else {}),
        "low": frame.low if family else 0,
        "high": frame.high if family else 0,
        "moves": 1 if family else 0 if frame.heads else 2,
        "path": [list(step) for step in shown.steps],
    }
