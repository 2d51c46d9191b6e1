"""Certificates of proved pipelines: the document, and what the stand-alone checker needs to confirm it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.pipeline.graph import ENDLESS

if TYPE_CHECKING:
    from layoutalg.proofs.pipeline.document import Pipeline
    from layoutalg.proofs.pipeline.graph import Event, Graph
    from layoutalg.proofs.pipeline.obligations import Shown
    from layoutalg.proofs.pipeline.ops import Part
    from layoutalg.proofs.pipeline.proving import Proof


def certificate(pipeline: Pipeline, policy: str, proof: Proof) -> Certificate:
    """Return the certificate that a pipeline is safe under a policy, for every N.

    Args:
        pipeline: The pipeline, with counters that start again if it has them.
        policy: ``"strict"`` or ``"practice"``.
        proof: Its proof.
    """
    fenced = {_ends(shown) for shown in proof.shown if shown.obligation.fence}
    needed = [shown for shown in proof.shown if shown.obligation.fence or _ends(shown) not in fenced]
    made = [_fact(shown, pipeline.least) for shown in needed]
    facts = list({str(fact): fact for fact in made}.values())
    evidence = {
        "turns": list(turns(proof.graph).values()),
        "completed": _completed(proof.graph),
        "pace": proof.pace,
        "events": [[*_named(event), *time] for event, time in zip(proof.graph.events, proof.times, strict=True)],
        "facts": facts,
    }
    return Certificate("pipeline", {"pipeline": pipeline.to_json(), "policy": policy}, evidence)


def _named(event: Event) -> tuple[object, ...]:
    return event.owner, event.part, event.place, "done" if event.part == "phase" else event.what


def turns(graph: Graph) -> dict[tuple[str, Part, int], int]:
    """Return the readings of the waits with ``flip``, by place, in the order of the document."""
    turned = {}
    uses = {(use.role, use.part, use.place): use for uses in graph.uses.values() for use in uses if use.op.flip}
    for role in graph.pipeline.roles:
        for part, place, op in role.ops():
            if op.flip:
                index = op.index(role.trip * (part == "post"))
                slots = dict(graph.pipeline.barriers)[op.bar].slots
                turned[role.name, part, place] = (uses[role.name, part, place].shift - index) // slots - op.ph
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


def _fact(shown: Shown, least: int) -> dict[str, object]:
    """Return a path with its N and k as evidence."""
    frame = shown.frame
    single = frame.heads and frame.tails is not None
    family = not frame.heads and frame.tails is None
    return {
        "least": max(least, frame.low - frame.high) if family else frame.least,
        **({"most": frame.least} if single else {}),
        "low": frame.low if family else 0,
        "high": frame.high if family else 0,
        "moves": 1 if family else 0 if frame.heads else 2,
        "path": [list(step) for step in shown.steps],
    }
