"""TensorMap plans: problem, plan and checker."""

from __future__ import annotations

from layoutalg.proofs.tensormap.checker import check
from layoutalg.proofs.tensormap.listed_problem import ListedProblem
from layoutalg.proofs.tensormap.plan import Issue, TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem

__all__ = ["Issue", "ListedProblem", "TensorMapPlan", "TensorMapProblem", "check"]
