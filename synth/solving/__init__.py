"""Solver-based synthesis: one layout for several consumers, least paddings, conflicting rules."""

from __future__ import annotations

from layoutalg.proofs.joint import JointPlan
from layoutalg.synth.solving.joint_plan import joint
from layoutalg.synth.solving.legal import Conflict, NearestMap, map_conflicts, nearest_map
from layoutalg.synth.solving.padding import AtLeast, Multiple, Padding, Spread, conflict, least_padding
from layoutalg.synth.tensormap.least_repairs import RankedRepair, least_repairs

__all__ = [
    "AtLeast", "Conflict", "JointPlan", "Multiple", "NearestMap", "Padding", "RankedRepair", "Spread", "conflict",
    "joint", "least_padding", "least_repairs", "map_conflicts", "nearest_map",
]  # fmt: skip
