"""Piecewise quasi-affine layouts; ISL is loaded when one is built."""

from layoutalg.piecewise.build import (
    CoreTail,
    addresses,
    banks,
    common_values,
    core_and_tail,
    from_pieces,
    padded,
    tiled,
)
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.parametric import ParametricLayout
from layoutalg.piecewise.points import ParametricCount, ParametricSet

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
