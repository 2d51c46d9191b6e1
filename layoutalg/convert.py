"""Conversions between the families: exact, or refused with a coordinate that shows why.

Every layout is read as a function of its flat index, colexicographic (first mode or axis fastest).
"""

from layoutalg.bridges.affine import linear_form, to_integer, to_linear
from layoutalg.bridges.cute import recognize, to_cute
from layoutalg.bridges.normal import CONFIRM_POINTS, OFFSET_BITS, AnyFamily, AnyLayout, LinearForm, value_at
from layoutalg.bridges.piecewise import to_piecewise

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
