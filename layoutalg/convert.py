"""Conversions between the families: exact, or refused with a coordinate that shows why.

Every layout is read as a function of its flat index, colexicographic (first mode or axis fastest).
"""

from layoutalg.bridges.cute import recognize, to_cute
from layoutalg.bridges.integer import to_integer
from layoutalg.bridges.linear import linear_form, to_linear
from layoutalg.bridges.normal import CONFIRM_POINTS, OFFSET_BITS, AnyFamily, AnyLayout, LinearForm
from layoutalg.bridges.piecewise import to_piecewise
from layoutalg.bridges.values import value_at

__all__ = [
    "CONFIRM_POINTS",
    "OFFSET_BITS",
    "AnyFamily",
    "AnyLayout",
    "LinearForm",
    "linear_form",
    "recognize",
    "to_cute",
    "to_integer",
    "to_linear",
    "to_piecewise",
    "value_at",
]
