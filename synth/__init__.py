"""Finders: descriptors and plans from problems; each answer carries its certificate."""

from __future__ import annotations

if __name__ != "layoutalg.synth":
    raise ImportError("import layoutalg.synth, not synth: this folder is only its source location")

from layoutalg.synth.tensormap import InadmissibleError, Issue, TensorMapPlan, TensorMapProblem, synthesize_tensormap

__all__ = ["InadmissibleError", "Issue", "TensorMapPlan", "TensorMapProblem", "synthesize_tensormap"]
