"""Bijections over the levels of a GPU: composition, inverse, normal forms, plans.

Invalid arguments raise ``MalformedError`` LA750.
"""

from layoutalg.hierarchy.bijection import DigitMap, TableMap
from layoutalg.hierarchy.blocks import ExchangePlan, crossing_ranks, exchange_plan, preserves_blocks, solve_conversion
from layoutalg.hierarchy.build import distribute, permute, reindex, reshape, restrict, tile
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout
from layoutalg.hierarchy.levels import CUTS, LEVELS, MECHANISMS, Box, Cut, Level, Mechanism, hierarchy
from layoutalg.hierarchy.profile import CutProfile, LevelProfile, conversion_profile, level_profile, profile_of

__all__ = [
    "CUTS", "LEVELS", "MECHANISMS", "Box", "Cut", "CutProfile", "DigitMap", "ExchangePlan", "Guard",
    "HierarchicalLayout", "Level", "LevelProfile", "Mechanism", "TableMap", "conversion_profile",
    "crossing_ranks", "distribute", "exchange_plan", "hierarchy", "level_profile", "permute", "preserves_blocks",
    "profile_of", "reindex", "reshape", "restrict", "solve_conversion", "tile",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
