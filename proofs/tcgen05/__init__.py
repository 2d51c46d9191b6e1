"""What ``tcgen05`` operands are found to be, and the check that each descriptor reads what was asked for."""

from __future__ import annotations

from layoutalg.proofs.tcgen05.plan import ScalePlan, Tcgen05Plan, Tcgen05Tile, TmemPlan, refuted

__all__ = ["ScalePlan", "Tcgen05Plan", "Tcgen05Tile", "TmemPlan", "refuted"]
