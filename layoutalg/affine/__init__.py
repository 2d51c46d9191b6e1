"""Piecewise quasi-affine layouts; ISL is loaded when one is built."""

from layoutalg.affine.build import CoreTail, addresses, banks, common_values, core_and_tail, from_pieces, padded, tiled
from layoutalg.affine.layout import PiecewiseLayout
from layoutalg.affine.parametric import ParametricLayout
from layoutalg.affine.points import ParametricCount, ParametricSet

__all__ = [
    "CoreTail",
    "ParametricCount",
    "ParametricLayout",
    "ParametricSet",
    "PiecewiseLayout",
    "addresses",
    "banks",
    "common_values",
    "core_and_tail",
    "from_pieces",
    "padded",
    "tiled",
]
