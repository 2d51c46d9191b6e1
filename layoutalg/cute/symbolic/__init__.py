"""CuTe layouts with symbolic extents and strides: every result carries the conditions it needs.

``from layoutalg.cute.symbolic import *`` makes every ``repr`` of the family readable again.
"""

from layoutalg.cute.symbolic.assumptions import Assumptions, Condition, SideCondition, condition
from layoutalg.cute.symbolic.decide import Decision
from layoutalg.cute.symbolic.layout import SymbolicLayout, SymbolicValue, symbolic
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
from layoutalg.cute.symbolic.terms import Term, term

__all__ = [
    "Assumptions",
    "Condition",
    "Decision",
    "SideCondition",
    "SymbolicLayout",
    "SymbolicValue",
    "Term",
    "coalesce",
    "complement",
    "composition",
    "condition",
    "cosize",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "right_inverse",
    "symbolic",
    "term",
]
