"""Symbolic plans: one problem and one proof for all sizes that meet a guard."""

from __future__ import annotations

from layoutalg.proofs.symbolic.checker import prove
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.plan import Patch, SymbolicMap, SymbolicPlan
from layoutalg.proofs.symbolic.problem import SymbolicProblem

__all__ = ["Guard", "Patch", "SymbolicMap", "SymbolicPlan", "SymbolicProblem", "prove"]
