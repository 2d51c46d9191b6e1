"""Finders: descriptors and plans for given problems, each with its certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.synth":
    raise ImportError("import layoutalg.synth, not synth: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.synth import admission as admission
    from layoutalg.synth import conversions as conversions
    from layoutalg.synth import factor as factor
    from layoutalg.synth import paddings as paddings
    from layoutalg.synth import ragged as ragged
    from layoutalg.synth import schedule as schedule
    from layoutalg.synth import solving as solving
    from layoutalg.synth import swizzles as swizzles
    from layoutalg.synth import symbolic as symbolic
    from layoutalg.synth import tensormap as tensormap
    from layoutalg.synth import wgmma as wgmma
    from layoutalg.synth.admission import admissible as admissible
    from layoutalg.synth.conversions import conversion as conversion
    from layoutalg.synth.conversions.gathers import gather as gather
    from layoutalg.synth.factor import factorise as factorise
    from layoutalg.synth.paddings import padding as padding
    from layoutalg.synth.ragged import RaggedFamily as RaggedFamily
    from layoutalg.synth.ragged import synthesize_ragged as synthesize_ragged
    from layoutalg.synth.solving import joint as joint
    from layoutalg.synth.swizzles import swizzle as swizzle
    from layoutalg.synth.swizzles.classes import universal_swizzle as universal_swizzle
    from layoutalg.synth.symbolic import SymbolicPlan as SymbolicPlan
    from layoutalg.synth.symbolic import SymbolicProblem as SymbolicProblem
    from layoutalg.synth.symbolic import synthesize_symbolic as synthesize_symbolic
    from layoutalg.synth.tensormap import InadmissibleError as InadmissibleError
    from layoutalg.synth.tensormap import Issue as Issue
    from layoutalg.synth.tensormap import TensorMapPlan as TensorMapPlan
    from layoutalg.synth.tensormap import TensorMapProblem as TensorMapProblem
    from layoutalg.synth.tensormap import synthesize_tensormap as synthesize_tensormap
    from layoutalg.synth.wgmma import InadmissibleOperandError as InadmissibleOperandError
    from layoutalg.synth.wgmma import OperandPlan as OperandPlan
    from layoutalg.synth.wgmma import OperandProblem as OperandProblem
    from layoutalg.synth.wgmma import synthesize_wgmma as synthesize_wgmma

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
