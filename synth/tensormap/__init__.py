"""Synthesis of TensorMap plans."""

from __future__ import annotations

from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProbe, TensorMapProblem
from layoutalg.synth.tensormap.planner import synthesize_tensormap
from layoutalg.synth.tensormap.refusal import InadmissibleError

__all__ = ["InadmissibleError", "Issue", "TensorMapPlan", "TensorMapProbe", "TensorMapProblem", "synthesize_tensormap"]
