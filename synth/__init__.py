"""Finders: descriptors and plans for given problems, each with its certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.synth":
    raise ImportError("import layoutalg.synth, not synth: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.synth import (
        admission,
        conversions,
        factor,
        paddings,
        ragged,
        schedule,
        solving,
        swizzles,
        symbolic,
        tensormap,
        wgmma,
    )
    from layoutalg.synth.admission import admissible
    from layoutalg.synth.conversions import conversion
    from layoutalg.synth.conversions.gathers import gather
    from layoutalg.synth.factor import factorise
    from layoutalg.synth.paddings import padding
    from layoutalg.synth.ragged import RaggedFamily, synthesize_ragged
    from layoutalg.synth.solving import joint
    from layoutalg.synth.swizzles import swizzle
    from layoutalg.synth.swizzles.classes import universal_swizzle
    from layoutalg.synth.symbolic import SymbolicPlan, SymbolicProblem, synthesize_symbolic
    from layoutalg.synth.tensormap import (
        InadmissibleError,
        Issue,
        TensorMapPlan,
        TensorMapProblem,
        synthesize_tensormap,
    )
    from layoutalg.synth.wgmma import InadmissibleOperandError, OperandPlan, OperandProblem, synthesize_wgmma

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.synth.admission": "admission admissible",
        "layoutalg.synth.conversions": "conversions conversion",
        "layoutalg.synth.conversions.gathers": "gather",
        "layoutalg.synth.factor": "factor factorise",
        "layoutalg.synth.solving": "solving joint",
        "layoutalg.synth.paddings": "paddings padding",
        "layoutalg.synth.ragged": "ragged RaggedFamily synthesize_ragged",
        "layoutalg.synth.schedule": "schedule",
        "layoutalg.synth.swizzles": "swizzles swizzle",
        "layoutalg.synth.swizzles.classes": "universal_swizzle",
        "layoutalg.synth.symbolic": "symbolic SymbolicPlan SymbolicProblem synthesize_symbolic",
        "layoutalg.synth.tensormap": "tensormap InadmissibleError Issue TensorMapPlan TensorMapProblem "
        "synthesize_tensormap",
        "layoutalg.synth.wgmma": "wgmma InadmissibleOperandError OperandPlan OperandProblem synthesize_wgmma",
    },
)

__all__ = [
    "InadmissibleError",
    "InadmissibleOperandError",
    "Issue",
    "OperandPlan",
    "OperandProblem",
    "RaggedFamily",
    "SymbolicPlan",
    "SymbolicProblem",
    "TensorMapPlan",
    "TensorMapProblem",
    "admissible",
    "admission",
    "conversion",
    "conversions",
    "factor",
    "factorise",
    "gather",
    "joint",
    "padding",
    "paddings",
    "ragged",
    "schedule",
    "solving",
    "swizzle",
    "swizzles",
    "symbolic",
    "synthesize_ragged",
    "synthesize_symbolic",
    "synthesize_tensormap",
    "synthesize_wgmma",
    "tensormap",
    "universal_swizzle",
    "wgmma",
]
