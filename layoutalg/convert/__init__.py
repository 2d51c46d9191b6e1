"""Conversions between the families: exact, or refused with a coordinate that shows why.

Main definitions: ``to_linear``, ``to_cute``, ``to_integer``, ``to_piecewise``, ``recognize``, ``linear_form``,
``value_at``.

Notation: every layout is read as a function of its flat 1-D coordinate, colexicographic, first mode or axis fastest.
"""

from layoutalg.convert.integer import to_integer
from layoutalg.convert.linear import linear_form, to_linear, value_at
from layoutalg.convert.operand import CONFIRM_POINTS, OFFSET_BITS, AnyFamily, AnyLayout, LinearForm
from layoutalg.convert.piecewise import to_piecewise
from layoutalg.convert.strided import recognize, to_cute

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
