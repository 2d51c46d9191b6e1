"""Joint plans: one shared-memory layout for a TMA copy and the instructions that read it, with proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.certify.banks import bank_turns
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.plans import plan as certified_plan
from layoutalg.proofs.tensormap import TensorMapPlan

CHECK = Checker("LA870", "invalid joint plan")


@dataclass(frozen=True, slots=True)
class JointPlan(
    Record,
    Shown,
    code="LA870",
    schema="layoutalg/joint/1",
    json="smem target plans issues turns bytes lower_bound optimal proof space engine",
):
    """A layout that serves every consumer, with a bound on how far it is from optimal.

    Args:
        smem: The layout: tile coordinates, outermost first, to element offsets.
        consumers: The consumers' names.
        plans: Per consumer: a TensorMap plan, ``wgmma`` descriptors, or the turns of an access.
        issues: TMA issues of all copies.
        turns: Bank turns of all accesses to the whole tile.
        bytes: Bytes of shared memory.
        lower_bound: Lower bound on (issues, turns) for any layout of the space.
        proof: ``"bound"``, ``"complete search"``, or why the lower bound is not met.
        space: The layouts searched, in words.
        engine: What found the layout: ``"algebra"``, ``"search"``, ``"padding"``.
        target: Architecture.
        tables: Per consumer, the byte address of each lane of each access.
    """

    smem: CuteLayout | ComposedLayout
    consumers: tuple[str, ...]
    plans: tuple[Any, ...] = field(hash=False)
    issues: int
    turns: int
    bytes: int
    lower_bound: tuple[int, int]
    proof: str
    space: str
    engine: str
    target: str
    tables: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def _validate(self) -> None:
        if len(self.plans) != len(self.consumers):
            raise CHECK.malformed("plans", "must have one plan for each consumer", len(self.plans))
        if not all(callable(getattr(plan, "to_json", None)) for plan in self.plans):
            raise CHECK.malformed("plans", "must all have to_json", self.plans)

    @property
    def optimal(self) -> bool:
        """Whether no layout of the space has fewer issues, or equally many and fewer turns."""
        return (self.issues, self.turns) == self.lower_bound

    @property
    def gap(self) -> tuple[int, int]:
        """Issues and turns above the lower bound."""
        return self.issues - self.lower_bound[0], self.turns - self.lower_bound[1]

    @property
    def why(self) -> str:
        """The cost, and why nothing better is known, in words."""
        costs = f"{self.issues} TMA issues, {self.turns} turns, {self.bytes} bytes"
        if not self.optimal:
            issues, turns = self.lower_bound
            return f"{costs}; at least {issues} issues and {turns} turns are needed, {self.proof}"
        reason = "no layout needs less" if self.proof == "bound" else f"none of {self.space} needs less ({self.proof})"
        return f"{costs}; {reason}"

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Certificates of each map, each operand and, for measured instructions, the turns of each access."""
        found = []
        for name, plan in zip(self.consumers, self.plans, strict=True):
            if isinstance(plan, TensorMapPlan):
                found.append(certified_plan(plan))
            elif isinstance(plan, Admitted):
                found.append(plan.certificate)
            elif name in self.tables:
                try:
                    found.append(bank_turns(self.target, name, self.tables[name]))
                except (RepresentabilityError, MalformedError):
                    continue  # no measured rule for this instruction
        return tuple(found)

    def __str__(self) -> str:
        lines = [f"{self.smem}", f"  {self.why}"]
        for name, plan in zip(self.consumers, self.plans, strict=True):
            if isinstance(plan, TensorMapPlan):
                told = f"{len(plan.issues)} issues of box {list(plan.tensor_map.box)}, {plan.tensor_map.swizzle}"
            elif isinstance(plan, Admitted):
                told = str(plan.descriptor).splitlines()[0]
            else:
                told = str(plan)
            lines.append(f"  {name:<12} {told}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data; plans by consumer."""
        plans = {name: plan.to_json() for name, plan in zip(self.consumers, self.plans, strict=True)}
        return Record.to_json(self) | {"plans": plans}
