"""CuTe layouts, swizzles, swizzled layouts and their algebra. Every operation is exact or refused.

``from layoutalg.cute import *`` makes every ``repr`` of the family readable again. It leaves Python's own ``filter``
alone; the operation is ``layoutalg.cute.filter``.
"""

from layoutalg.cute.algebra import (
    coalesce,
    cosize,
    depth,
    filter_zeros,
    flatten,
    make_layout,
    rank,
    size,
)
from layoutalg.cute.algebra import filter as filter
from layoutalg.cute.complement import complement
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.composition import composition
from layoutalg.cute.inverse import left_inverse, right_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle

__all__ = [
    "ComposedLayout",
    "CuteLayout",
    "Swizzle",
    "coalesce",
    "complement",
    "composition",
    "cosize",
    "depth",
    "filter_zeros",
    "flatten",
    "left_inverse",
    "make_layout",
    "rank",
    "right_inverse",
    "size",
]
