"""Plans of ``tcgen05`` operands, and the check that each descriptor reads what was requested."""

from __future__ import annotations

from layoutalg.proofs.tcgen05.plan import ScalePlan, Tcgen05Plan, Tcgen05Tile, TmemPlan, refuted

__all__ = ["ScalePlan", "Tcgen05Plan", "Tcgen05Tile", "TmemPlan", "refuted"]
