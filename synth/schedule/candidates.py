"""Layouts to choose from with a schedule: what each changes of the ops of a work."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import ceil

from layoutalg.ground.record import Record
from layoutalg.proofs.joint import JointPlan
from layoutalg.synth.schedule.work import CHECK, SYNCHRONOUS, Work, WorkOp
from layoutalg.targets.pipeline_costs import pipeline_costs


@dataclass(frozen=True, slots=True)
class Candidate(Record, code="LA974"):
    """Layouts of the rings of a work.

    Args:
        name: What it is called in the answer.
        issues: (op, copies) for TMA ops: in how many copies each moves the bytes of its rings.
        turns: (op, bank turns) for ops on ``shared``, ``cuda`` or ``sfu``: cycles that its accesses take besides.
        bytes: (ring, bytes) where a layout has other sizes, as with padding.
    """

    name: str
    issues: tuple[tuple[str, int], ...] = ()
    turns: tuple[tuple[str, int], ...] = ()
    bytes: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, name: str, plan: JointPlan, ring: str, fill: str, read: str = "") -> Candidate:
        """Return the candidate of one layout: ``fill`` copies it into a ring, ``read`` pays its bank turns.

        Args:
            name: Its name.
            plan: What ``joint`` found.
            ring: The ring of the tile.
            fill: The op that copies it.
            read: The op whose accesses are those of the plan.
        """
        turns = ((read, plan.turns),) if read else ()
        return cls(name, ((fill, plan.issues),), turns, ((ring, plan.bytes),))

    def changed(self, work: Work, target: str) -> Work:
        """Return the work with these layouts.

        Raises: MalformedError: LA974: an op or a ring is not of the work, or not of that kind.
        """
        costs, issues, turns, sizes = pipeline_costs(target), dict(self.issues), dict(self.turns), dict(self.bytes)
        for what, given in (("op", {**issues, **turns}), ("ring", sizes)):
            for name in given:
                CHECK.choice(name, f"{what} of {self.name}", work.by_name if what == "op" else work.sizes)
        rings = tuple([dataclasses.replace(ring, bytes=sizes.get(ring.name, ring.bytes)) for ring in work.rings])
        moved = {ring.name: ring.bytes for ring in rings}

        def laid(op: WorkOp) -> WorkOp:
            occupancy, latency = op.occupancy, op.latency
            if op.name in issues:
                CHECK.choice(op.unit, f"unit of {op.name}", ("tma",))
                CHECK.integer(issues[op.name], f"issues of {op.name}", 1, 1 << 10)
                mine = {edge.ring for edge in work.dependences if op.name in (edge.producer, edge.consumer)}
                loads = any(edge.ring and edge.producer == op.name for edge in work.dependences)
                kib = sum([moved[ring] for ring in mine if ring]) / 1024
                occupancy, latency = (costs.load if loads else costs.store)(kib, issues[op.name])
            if op.name in turns:
                CHECK.choice(op.unit, f"unit of {op.name}", SYNCHRONOUS)
                more = ceil(CHECK.integer(turns[op.name], f"turns of {op.name}", 0))
                occupancy, latency = occupancy + more, latency + more
            return dataclasses.replace(op, occupancy=occupancy, latency=latency)

        return dataclasses.replace(work, ops=tuple(map(laid, work.ops)), rings=rings)
