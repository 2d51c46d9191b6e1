"""TensorMap plans: problem, plan, probe and checker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs.tensormap.checker import check
    from layoutalg.proofs.tensormap.listed_problem import ListedProblem
    from layoutalg.proofs.tensormap.plan import Issue, TensorMapPlan
    from layoutalg.proofs.tensormap.probe import TensorMapProbe
    from layoutalg.proofs.tensormap.problem import TensorMapProblem

__getattr__, __dir__ = door(
    __name__,
    {
        f"{__name__}.checker": "check",
        f"{__name__}.listed_problem": "ListedProblem",
        f"{__name__}.plan": "Issue TensorMapPlan",
        f"{__name__}.probe": "TensorMapProbe",
        f"{__name__}.problem": "TensorMapProblem",
    },
)

__all__ = ["Issue", "ListedProblem", "TensorMapPlan", "TensorMapProbe", "TensorMapProblem", "check"]
