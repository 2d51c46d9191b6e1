"""Synthesis of plans for symbolic sizes."""

from __future__ import annotations

from layoutalg.proofs.symbolic import SymbolicPlan, SymbolicProblem
from layoutalg.synth.symbolic.planner import synthesize_symbolic

__all__ = ["SymbolicPlan", "SymbolicProblem", "synthesize_symbolic"]
