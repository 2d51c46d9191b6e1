"""Search: a space of choices, pruned by legality, ranked by rooflines, measured at the top."""

from __future__ import annotations

from layoutalg.synth.search.roofline import Work, cycles, least_traffic_tile, tier_bytes, tier_tile
from layoutalg.synth.search.space import Choice, Ranked, Space
from layoutalg.synth.search.trials import Trial, Tuned, tune

__all__ = [
    "Choice", "Ranked", "Space", "Trial", "Tuned", "Work", "cycles", "least_traffic_tile", "tier_bytes", "tier_tile",
    "tune",
]  # fmt: skip
