"""TensorMap plans for targets without a measured device: what documents allow, not proved on that target.

Main statements: the copy engine of a later target is documented as that of sm_90a, with more types and swizzles. So a
problem is planned for sm_90a. A plan is then a candidate for the target, which a run must confirm (``TensorMapProbe``).
A refusal holds for the target if every rule in it is documented, or follows from the problem alone.

References: CUDA driver API 13.0, ``cuTensorMapEncodeTiled``; PTX ISA 9.1, 5.5 and 9.7.9.27.1.1 (what sm_120a lacks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe, TensorMapProblem
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.synth.tensormap.planner import inadmissible, synthesize_tensormap
from layoutalg.synth.tensormap.refusal import InadmissibleError, hard_violations
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import RULES

MEASURED = "sm_90a"
_OPEN = ("ARCH_ATOM", "NO_BOX", "OOB_CLASS")
"""Reasons of a refusal that concern sm_90a alone, or sum up a search by its measured behaviour."""


def plan_or_probe(problem: TensorMapProblem | Mapping[str, object], **search: Any) -> TensorMapPlan | TensorMapProbe:
    """Return a proved plan or, for a target without a measured device, a plan that documents allow there.

    Args:
        problem: A problem or its document.
        search: As for ``synthesize_tensormap``.

    Raises: As ``synthesize_tensormap``; without a device InadmissibleError only if documents exclude every plan.
    """
    stated = problem_from(problem)
    return synthesize_tensormap(stated, **search) if hardware.is_measured(stated.arch) else _probed(stated, **search)


def _probed(problem: TensorMapProblem, seconds: float = PLAN_SECONDS, **search: Any) -> TensorMapProbe:
    hard = [broken for broken in hard_violations(problem) if broken.rule != "ARCH_UNMEASURED"]
    if hard:
        raise inadmissible(problem, hard)
    twin, search = problem.with_changes(arch=MEASURED), search | {"repair": False}
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        try:
            plan = synthesize_tensormap(twin, **search | {"documented_only": True})
            return TensorMapProbe(problem, _reason(problem, "documents allow the map"), plan)
        except InadmissibleError as refused:
            if search.get("documented_only"):
                raise _judged(problem, refused) from None
        try:
            plan = synthesize_tensormap(twin, **search)
        except InadmissibleError as refused:
            raise _judged(problem, refused) from None
    broken = f"{MEASURED} accepts the map, which breaks documented rules ({', '.join(plan.undocumented)})"
    return TensorMapProbe(problem, _reason(problem, broken), plan)


def _reason(problem: TensorMapProblem, but: str) -> str:
    return f"no {problem.arch} device was measured; {but}"


def _judged(problem: TensorMapProblem, refused: InadmissibleError) -> InadmissibleError | BudgetError:
    """Return the refusal if documents alone support it for the problem's target, otherwise that it is undecided."""
    measured = next((entry.rule for entry in refused.violations if not _is_documented(entry)), None)
    if measured is None:
        return inadmissible(problem, refused.violations)
    because = _reason(problem, f"{MEASURED} refuses the tile by {measured}, which need not hold there")
    return BudgetError(Diagnostic("LA411", "gave up looking for a plan", ("tensormap",), because))


def _is_documented(violation: Violation) -> bool:
    rule = RULES.get(violation.rule)
    return violation.rule not in _OPEN and (rule is None or rule.documented)
