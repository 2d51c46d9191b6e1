"""``wgmma`` operands: problem, plan and checker."""

from __future__ import annotations

from layoutalg.proofs.wgmma.checker import check, handoff, requested_addresses
from layoutalg.proofs.wgmma.operand import InstructionTile, OperandPlan, OperandProblem

__all__ = ["InstructionTile", "OperandPlan", "OperandProblem", "check", "handoff", "requested_addresses"]
