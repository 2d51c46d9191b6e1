"""Checkers and certificates; nothing here imports a finder."""

from __future__ import annotations

if __name__ != "layoutalg.proofs":
    raise ImportError("import layoutalg.proofs, not proofs: this folder is only its source location")

from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check

__all__ = ["TensorMapPlan", "TensorMapProblem", "check"]
