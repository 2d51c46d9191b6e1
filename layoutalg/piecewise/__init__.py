"""Piecewise quasi-affine layouts; ISL is loaded when one is built."""

from layoutalg.piecewise.build import (
    Tiles,
    addresses,
    banks,
    from_pieces,
    full_and_partial_tiles,
    lexmax,
    lexmin,
    padded,
    split,
)
from layoutalg.piecewise.counts import PointCount
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.sets import PointSet

__all__ = [
    "PiecewiseLayout",
    "PointCount",
    "PointSet",
    "Tiles",
    "addresses",
    "banks",
    "from_pieces",
    "full_and_partial_tiles",
    "lexmax",
    "lexmin",
    "padded",
    "split",
]


def __dir__() -> list[str]:
    return __all__
