"""Judge of a symbolic plan at numbers: does the target accept the map, and does the plan checker prove it?"""

from __future__ import annotations

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.symbolic import SymbolicPlan
from layoutalg.proofs.tensormap import check
from layoutalg.targets.nvidia import tensormap as hardware

CLASSES = ("exact", "weak", "lost")


def accepted(case: SymbolicPlan, sizes: dict[str, int]) -> bool:
    """The judge of numbers."""
    try:
        plan = case.unproved(sizes)
    except LayoutError:
        return False
    if hardware.violations(plan.tensor_map, target=plan.problem.arch):
        return False
    verdict = check(plan)
    if isinstance(verdict, Refuted) and verdict.witness.get("field") == "oob":
        better = str(verdict.witness["expected"])
        if CLASSES.index(better) > CLASSES.index(case.oob):
            return False
        verdict = check(plan.with_changes(oob=better))
    return isinstance(verdict, Proved)
