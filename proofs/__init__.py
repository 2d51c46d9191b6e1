"""Checkers and certificates; nothing in this package imports a finder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.proofs":
    raise ImportError("import layoutalg.proofs, not proofs: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.proofs import certify, handoff, laws, tensormap, wgmma
    from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
    from layoutalg.proofs.wgmma import OperandPlan, OperandProblem

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

__all__ = [
    "OperandPlan",
    "OperandProblem",
    "TensorMapPlan",
    "TensorMapProblem",
    "certify",
    "check",
    "handoff",
    "laws",
    "tensormap",
    "wgmma",
]
