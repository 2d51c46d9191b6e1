"""Work of one iteration of a loop: ops on units of an SM, what they need of each other, and the warps that run them.

An op starts at most once an iteration on one **unit**, which it occupies for ``occupancy`` cycles; its result is there
``latency`` cycles after its start. Ops on ``cuda``, ``sfu`` and ``shared`` also occupy their warps; ``tma`` and
``tensor`` ops are only issued by them. A dependence through a **ring** hands a slot of shared memory from role to role;
one without a ring is through registers or program order, so both ops are in one role. Ops linked in that way are a
**team**.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.proofs.pipeline.resources import WARPGROUP

CHECK = Checker("LA974", "invalid work")
UNITS: Final[Mapping[str, str]] = {
    "tma": "the copy engine",
    "tensor": "the tensor cores",
    "cuda": "the CUDA cores",
    "sfu": "the special function units",
    "shared": "shared memory",
}
"""Units of an SM, in words."""
SYNCHRONOUS: Final = ("cuda", "sfu", "shared")
"""Units whose ops occupy the warps that run them."""
MOST_CYCLES: Final = 1 << 24
"""cycles: of one op"""
MOST_OPS: Final = 64
"""ops: of one work"""
MOST_DISTANCE: Final = 64
"""iterations: between the ends of a dependence"""


@dataclass(frozen=True, slots=True)
class WorkOp(Record, code="LA974", json="name unit occupancy latency warps? registers? result? variable? role?"):
    """An op that every iteration runs once.

    Args:
        name: An identifier.
        unit: ``"tma"``, ``"tensor"``, ``"cuda"``, ``"sfu"`` or ``"shared"``.
        occupancy: Cycles for which no other op can use the unit.
        latency: Cycles until its result is there; at least 1, at least the occupancy.
        warps: Least number of warps of the role that runs it.
        registers: Of a thread, held through all iterations (an accumulator).
        result: Registers of a thread from its start to the end of the last op that takes its result from registers.
        variable: Whether its latency varies; no role runs both such ops and others.
        role: The role that runs it; ``""`` leaves that open.
    """

    name: str
    unit: str
    occupancy: int
    latency: int
    warps: int = 1
    registers: int = 0
    result: int = 0
    variable: bool = False
    role: str = ""

    def _validate(self) -> None:
        CHECK.name(self.name, "name of an op")
        CHECK.choice(self.unit, f"unit of {self.name}", UNITS)
        CHECK.integer(self.occupancy, f"occupancy of {self.name}", 0, MOST_CYCLES)
        CHECK.integer(self.latency, f"latency of {self.name}", max(1, self.occupancy), MOST_CYCLES)
        CHECK.integer(self.warps, f"warps of {self.name}", 1, 33)
        for what in ("registers", "result"):
            CHECK.integer(getattr(self, what), f"{what} of {self.name}", 0, 1 << 16)

    @property
    def holds(self) -> int:
        """Cycles for which its warps can run nothing else."""
        return self.occupancy if self.unit in SYNCHRONOUS else 0


@dataclass(frozen=True, slots=True)
class Dependence(Record, code="LA974", json="producer consumer distance? ring?"):
    """Iteration k + ``distance`` of an op needs iteration k of another.

    Args:
        producer: The op that must be done first.
        consumer: The op that needs it.
        distance: Iterations between them.
        ring: The ring in shared memory that holds the result; ``""`` if registers do, or nothing.
    """

    producer: str
    consumer: str
    distance: int = 0
    ring: str = ""

    def _validate(self) -> None:
        CHECK.integer(self.distance, f"distance from {self.producer} to {self.consumer}", 0, MOST_DISTANCE)


@dataclass(frozen=True, slots=True)
class WorkRing(Record, code="LA974"):
    """A ring of slots in shared memory with the bytes of a slot; with 0 bytes a signal."""

    name: str
    bytes: int

    def _validate(self) -> None:
        CHECK.name(self.name, "name of a ring")
        CHECK.integer(self.bytes, f"bytes of {self.name}", 0, 1 << 20)


@dataclass(frozen=True, slots=True)
class WorkRole(Record, code="LA974"):
    """Warps that may run ops, whole warpgroups, and the registers that a thread needs besides those of its ops."""

    name: str
    warps: int = WARPGROUP
    registers: int = 24

    def _validate(self) -> None:
        CHECK.name(self.name, "name of a role")
        CHECK.integer(self.warps, f"warps of {self.name}", 1, 33)
        if self.warps % WARPGROUP:
            raise CHECK.malformed(f"warps of {self.name}", f"must be whole warpgroups of {WARPGROUP}", self.warps)
        CHECK.integer(self.registers, f"registers of {self.name}", 0, 1 << 16)


@dataclass(frozen=True, slots=True)
class Work(Record, code="LA974", json="name ops dependences rings roles crossing"):
    """What one iteration of a loop does.

    Args:
        name: What it is, for answers.
        ops: The ops.
        dependences: What they need of each other; without the distances they form no cycle.
        rings: Rings in shared memory; each is filled by one op.
        roles: The roles of the block.
        crossing: Cycles that a dependence takes longer between two roles: an arrival and a wait.

    Example:
        >>> copy = Work("copy", (WorkOp("load", "tma", 30, 500, variable=True), WorkOp("use", "cuda", 64, 80)),
        ...     (Dependence("load", "use", ring="tile"),), (WorkRing("tile", 4096),),
        ...     (WorkRole("producer"), WorkRole("consumer")), 50)
        >>> copy.teams
        (('load',), ('use',))
        >>> Work("loop", (WorkOp("a", "cuda", 8, 8),), (Dependence("a", "a"),), (), (WorkRole("warps"),))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA974 invalid work
          in     dependences
          since  must form no cycle without a distance, not 'a -> a'
    """

    name: str
    ops: tuple[WorkOp, ...]
    dependences: tuple[Dependence, ...]
    rings: tuple[WorkRing, ...]
    roles: tuple[WorkRole, ...]
    crossing: int = 0

    def _validate(self) -> None:
        if not 1 <= len(self.ops) <= MOST_OPS:
            raise CHECK.malformed("ops", f"must be 1 to {MOST_OPS}", len(self.ops))
        if not self.roles:
            raise CHECK.malformed("roles", "must be at least one", ())
        for what, names in (("op", self.by_name), ("ring", self.sizes), ("role", {role.name for role in self.roles})):
            given = getattr(self, f"{what}s")
            if len(names) != len(given):
                raise CHECK.malformed(f"{what}s", "must have distinct names", [one.name for one in given])
        if len(set(self.dependences)) != len(self.dependences):
            raise CHECK.malformed("dependences", "must be distinct", "one of them twice")
        CHECK.integer(self.crossing, "crossing", 0, MOST_CYCLES)
        for op in self.ops:
            if op.role:
                CHECK.choice(op.role, f"role of {op.name}", [role.name for role in self.roles])
        for edge in self.dependences:
            where = f"of {edge.producer} -> {edge.consumer}"
            CHECK.choice(edge.producer, f"producer {where}", self.by_name)
            CHECK.choice(edge.consumer, f"consumer {where}", self.by_name)
            if edge.ring:
                CHECK.choice(edge.ring, f"ring {where}", self.sizes)
        self._check_rings()
        self._check_teams()
        self.order()

    def _check_rings(self) -> None:
        for ring in self.rings:
            fillers = {edge.producer for edge in self.dependences if edge.ring == ring.name}
            if len(fillers) != 1:
                raise CHECK.malformed(f"ring {ring.name}", "must be filled by one op", sorted(fillers))
            filler = self.by_name[fillers.pop()]
            if filler.unit == "tensor":
                raise CHECK.malformed(
                    f"unit of {filler.name}", f"must not fill {ring.name}: results go to registers", filler.unit
                )
            if filler.unit == "tma" and any(edge.ring and edge.consumer == filler.name for edge in self.dependences):
                raise CHECK.malformed(f"op {filler.name}", "must copy to a ring or from one", "both")
            if filler.unit == "tma" and not ring.bytes:
                raise CHECK.malformed(f"bytes of {ring.name}", f"must be what {filler.name} copies", 0)

    def _check_teams(self) -> None:
        for team in self.teams:
            members = [self.by_name[name] for name in team]
            if len({op.variable for op in members}) > 1:
                raise CHECK.malformed(
                    "dependences", "must link ops of variable latency and others by a ring", list(team)
                )
            if len({op.role for op in members if op.role}) > 1:
                raise CHECK.malformed("roles", f"must be one of the ops {', '.join(team)}", [op.role for op in members])

    @property
    def by_name(self) -> Mapping[str, WorkOp]:
        """The ops by name."""
        return {op.name: op for op in self.ops}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of a slot of each ring."""
        return {ring.name: ring.bytes for ring in self.rings}

    @property
    def teams(self) -> tuple[tuple[str, ...], ...]:
        """The ops that one role must run, as linked by dependences without a ring."""
        team = {op.name: [op.name] for op in self.ops}
        for edge in self.dependences:
            one, other = team[edge.producer], team[edge.consumer]
            if not edge.ring and one is not other:
                one += other
                team |= dict.fromkeys(other, one)
        return tuple(dict.fromkeys(tuple([op.name for op in self.ops if op.name in team[name]]) for name in team))

    def uses(self, ring: str) -> list[Dependence]:
        """Return the dependences through a ring."""
        return [edge for edge in self.dependences if edge.ring == ring]

    def order(self) -> list[WorkOp]:
        """Return the ops in an order that all dependences of one iteration follow.

        Raises: MalformedError: LA974: there is none; names a cycle.
        """
        after: dict[str, list[str]] = {op.name: [] for op in self.ops}
        for edge in self.dependences:
            if not edge.distance:
                after[edge.producer].append(edge.consumer)
        found: list[str] = []
        path: list[str] = []

        def visit(name: str) -> None:
            if name in path:
                cycle = " -> ".join([*path[path.index(name) :], name])
                raise CHECK.malformed("dependences", "must form no cycle without a distance", cycle)
            if name not in found:
                path.append(name)
                for following in after[name]:
                    visit(following)
                found.append(path.pop())

        for op in reversed(self.ops):
            visit(op.name)
        return [self.by_name[name] for name in reversed(found)]
