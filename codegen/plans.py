"""Checks that a plan must pass before code is generated or a kernel launched, and the numbers its kernels use."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from layoutalg.codegen.kernel import checked_int
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.verdict import Refuted, Unknown, Verdict
from layoutalg.proofs import wgmma
from layoutalg.proofs.ragged import RaggedFamily, prove_coverage
from layoutalg.proofs.symbolic import SymbolicPlan, prove
from layoutalg.proofs.tensormap import TensorMapPlan, check
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES, SMEM_DESTINATION_ALIGN_BYTES

CHECK = Checker("LA503", "this is not a plan")
CHECKERS: dict[type, Callable[[Any], Verdict]] = {
    TensorMapPlan: check, wgmma.OperandPlan: wgmma.check, SymbolicPlan: prove, RaggedFamily: prove_coverage,
}  # fmt: skip
"""Plans with an external checker; all others check themselves."""


class Checked(Protocol):
    """Any plan."""

    def to_json(self) -> dict[str, object]: ...


Plan = TypeVar("Plan", bound=Checked)


def upheld(plan: Plan) -> Plan:
    """Return the plan if its checker proves it. Everything that generates code from a plan or launches it calls this.

    The verdict is cached.

    Raises: MalformedError: LA503, or the plan's own if it checks itself. BudgetError: LA411.
    """
    verdict = _verdict(plan)  # type: ignore[arg-type]  # all plans are hashable
    if isinstance(verdict, Refuted):
        what, facts = refutation(verdict)
        raise MalformedError(Diagnostic("LA503", "the checker refutes this plan", ("plan",), what, facts))
    return plan


@lru_cache(maxsize=64)
def _verdict(plan: Any) -> Verdict | None:
    for kind, checker in CHECKERS.items():
        if isinstance(plan, kind):
            verdict = checker(plan)
            if isinstance(verdict, Unknown):  # raised, since exceptions are not cached
                what = "this plan is neither proved nor refuted"
                raise BudgetError(Diagnostic("LA411", what, ("plan",), verdict.reason))
            return verdict
    plan.check()
    return None


def refutation(verdict: Refuted) -> tuple[str, dict[str, object]]:
    """Return the refuted claim, and the numbers that refute it."""
    facts = dict(verdict.witness)
    what = facts.pop("what", None) or facts.pop("claim", "")
    return str(what), facts


def checked_plan(plan: object, direction: str | None = None) -> TensorMapPlan:
    """Return the argument if it is a ``TensorMapPlan``, of the given direction if one is given."""
    if not isinstance(plan, TensorMapPlan):
        raise CHECK.malformed("plan", "must be a TensorMapPlan", plan, instead(plan))
    checked = plan
    if direction is not None and checked.direction != direction:
        because = f"it is a {checked.direction}"
        raise MalformedError(Diagnostic("LA503", f"the plan is not a {direction}", ("plan",), because))
    return checked


def instead(value: object) -> str:
    """Return a hint for values that stand for several plans: how to get a single one."""
    if hasattr(value, "specialise"):
        return "; use plan.specialise(...) for concrete sizes"
    return "; use one of family.plans" if hasattr(value, "plans") else ""


def base_align(plan: TensorMapPlan) -> int:
    """Return the alignment of the tile base in a kernel, in bytes."""
    return max(plan.smem_align_bytes, SMEM_DESTINATION_ALIGN_BYTES)


def image_bytes(plan: TensorMapPlan) -> int:
    """Return the size of the shared-memory image that a plan's kernel handles, in bytes.

    A store reads its footprint; a load writes the footprint and, if shared memory allows, a guard after it.
    """
    if checked_plan(plan).direction == "store":
        return plan.smem_bytes
    room = MAX_SMEM_BYTES - 16 - base_align(plan)
    return max(plan.smem_bytes, min(-(-plan.smem_bytes // 128) * 128 + 256, room))


def launchable(plan: TensorMapPlan, direction: str | None = None) -> None:
    """Refuse a plan with numbers that a kernel would truncate or reinterpret; their correctness is not checked here."""
    checked_plan(plan, direction)
    where = f"{plan.direction} plan"
    align, size = plan.smem_align_bytes, plan.smem_bytes
    if checked_int(align, "smem_align_bytes", 1, MAX_SMEM_BYTES, where) & (align - 1):
        because = f"smem_align_bytes must be a power of two, not {align}"
        raise MalformedError(Diagnostic("LA506", "a number is out of range for a launch", (where,), because))
    checked_int(size, "smem_bytes", 1, 2**31, where)
    checked_int(plan.expect_tx_bytes, "expect_tx_bytes", 0, 2**31, where)
    checked_int(len(plan.issues), "the number of issues", 1, 2**31, where)
    for index, issue in enumerate(plan.issues):
        checked_int(issue.smem_offset_bytes, "smem_offset_bytes", 0, size, f"{where}, issue {index}")
        for value in issue.coords:
            checked_int(value, "coords", -(2**31), 2**31, f"{where}, issue {index}")


def origin_arguments(plan: TensorMapPlan, origin: Sequence[int]) -> list[int]:
    """Return the kernel's origin arguments, one int per tile dimension."""
    rank = checked_plan(plan).problem.rank
    try:
        values = [] if isinstance(origin, (set, frozenset)) else [operator.index(value) for value in origin]
    except TypeError:
        because = f"an origin is one integer per tile dimension, not {str(origin)[:40]}"
        raise MalformedError(Diagnostic("LA535", "this is not a tile origin", because=because)) from None
    if len(values) != rank:
        raise MalformedError(
            Diagnostic("LA535", "this is not a tile origin", because=f"the tile has rank {rank}, origin = {values}")
        )
    for value in values:
        if not -(2**31) <= value < 2**31:
            because = f"{value} does not fit a signed 32-bit integer, origin = {values}"
            raise MalformedError(Diagnostic("LA535", "this is not a tile origin", because=because))
    plan.coordinates(values)
    return values
