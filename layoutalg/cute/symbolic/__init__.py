"""CuTe layouts with symbolic extents and strides; every result carries the conditions it needs.

``from layoutalg.cute.symbolic import *`` is enough to evaluate any ``repr`` of these types.
"""

from layoutalg.cute.symbolic.layout import SymbolicLayout, SymbolicValue, symbolic
from layoutalg.cute.symbolic.normal import SymbolicForm, normal_form
from layoutalg.cute.symbolic.operations import (
    coalesce,
    complement,
    composition,
    cosize,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)
from layoutalg.ground.assumptions import Assumptions, SideCondition
from layoutalg.ground.conditions import Condition, condition
from layoutalg.ground.decide import Decision
from layoutalg.ground.polynomial import Polynomial
from layoutalg.ground.polynomial_text import polynomial

__all__ = [
    "Assumptions",
    "Condition",
    "Decision",
    "Polynomial",
    "SideCondition",
    "SymbolicForm",
    "SymbolicLayout",
    "SymbolicValue",
    "coalesce",
    "complement",
    "composition",
    "condition",
    "cosize",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "normal_form",
    "polynomial",
    "right_inverse",
    "symbolic",
]
