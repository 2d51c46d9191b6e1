"""Checkers and certificates; nothing in this package imports a finder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.proofs":
    raise ImportError("import layoutalg.proofs, not proofs: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs import certify as certify
    from layoutalg.proofs import handoff as handoff
    from layoutalg.proofs import laws as laws
    from layoutalg.proofs import tensormap as tensormap
    from layoutalg.proofs import wgmma as wgmma
    from layoutalg.proofs.tensormap import TensorMapPlan as TensorMapPlan
    from layoutalg.proofs.tensormap import TensorMapProblem as TensorMapProblem
    from layoutalg.proofs.tensormap import check as check
    from layoutalg.proofs.wgmma import OperandPlan as OperandPlan
    from layoutalg.proofs.wgmma import OperandProblem as OperandProblem

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.proofs.certify": "certify",
        "layoutalg.proofs.handoff": "handoff",
        "layoutalg.proofs.laws": "laws",
        "layoutalg.proofs.tensormap": "tensormap TensorMapPlan TensorMapProblem check",
        "layoutalg.proofs.wgmma": "wgmma OperandPlan OperandProblem",
    },
)
