"""Im2col plans: what they claim about a convolution, and a checker of it."""

from __future__ import annotations

from layoutalg.proofs.im2col.checker import check
from layoutalg.proofs.im2col.meaning import layout
from layoutalg.proofs.im2col.problem import ColumnIssue, ConvolutionPlan, ConvolutionProblem

__all__ = ["ColumnIssue", "ConvolutionPlan", "ConvolutionProblem", "check", "layout"]
