"""Bijections over named levels of a GPU: composition, inverse, wreath-product normal forms, profiles and plans."""

from layoutalg.hierarchy.bijection import BitMap, TableMap
from layoutalg.hierarchy.build import by_levels, order_by, permutation, permute_axes, regroup, restrict, tile_by
from layoutalg.hierarchy.digitmap import DigitMap
from layoutalg.hierarchy.guard import Guard
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import CUTS, LEVELS, MECHANISMS, Box, Cut, Level, Mechanism, hierarchy
from layoutalg.hierarchy.linear_profile import conversion_profile
from layoutalg.hierarchy.membership import WreathForm, normal_form, preserves_blocks
from layoutalg.hierarchy.plan import ExchangePlan, corner_ranks, exchange_plan
from layoutalg.hierarchy.profile import CutProfile, LevelProfile, level_profile, profile_of
from layoutalg.hierarchy.solve import solve_conversion, solve_linear

__all__ = [
    "CUTS",
    "LEVELS",
    "MECHANISMS",
    "BitMap",
    "Box",
    "Cut",
    "CutProfile",
    "DigitMap",
    "ExchangePlan",
    "Guard",
    "HierarchicalLayout",
    "Level",
    "LevelProfile",
    "Mechanism",
    "TableMap",
    "WreathForm",
    "by_levels",
    "conversion_profile",
    "corner_ranks",
    "exchange_plan",
    "hierarchy",
    "level_profile",
    "normal_form",
    "order_by",
    "permutation",
    "permute_axes",
    "preserves_blocks",
    "profile_of",
    "regroup",
    "restrict",
    "solve_conversion",
    "solve_linear",
    "tile_by",
]
