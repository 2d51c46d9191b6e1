"""Im2col plans: problem, plan and checker."""

from __future__ import annotations

from layoutalg.proofs.im2col.checker import check
from layoutalg.proofs.im2col.meaning import layout
from layoutalg.proofs.im2col.problem import ColumnIssue, ConvolutionPlan, ConvolutionProblem

__all__ = ["ColumnIssue", "ConvolutionPlan", "ConvolutionProblem", "check", "layout"]
