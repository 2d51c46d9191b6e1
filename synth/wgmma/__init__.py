"""Find ``wgmma`` matrix descriptors for a shared-memory layout, or the reasons why there are none."""

from __future__ import annotations

from layoutalg.synth.wgmma.operand import (
    InstructionTile,
    OperandPlan,
    OperandProblem,
    canonical_modes,
    canonical_operand,
    canonical_swizzle,
)
from layoutalg.synth.wgmma.plan import synthesize_wgmma
from layoutalg.synth.wgmma.refusal import InadmissibleOperandError

__all__ = [
    "InadmissibleOperandError", "InstructionTile", "OperandPlan", "OperandProblem", "canonical_modes",
    "canonical_operand", "canonical_swizzle", "synthesize_wgmma",
]  # fmt: skip
