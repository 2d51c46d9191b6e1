"""Layouts over the integers: affine maps on boxes, and questions about them."""

from layoutalg.integer.access import Access, SymbolicAccess, access, symbolic_access
from layoutalg.integer.axes import (
    coalesced,
    fix,
    flip,
    merge,
    normal_form,
    permute,
    rename,
    reshape,
    same_function,
    select_outputs,
    shift,
    slice,
    split,
)
from layoutalg.integer.expression import IndexExpression, index_expression
from layoutalg.integer.inverse import ImageInverse, RightInverse, image_inverse, right_inverse
from layoutalg.integer.lattice import Lattice, NoSolution, Solution, kernel, solve, solve_mod
from layoutalg.integer.layout import IntegerLayout, parse_integer
from layoutalg.integer.matrix import Hermite, Smith, hnf, is_unimodular, snf
from layoutalg.integer.reach import covers, injective, kernel_lattice

__all__ = [
    "Access",
    "Hermite",
    "ImageInverse",
    "IndexExpression",
    "IntegerLayout",
    "Lattice",
    "NoSolution",
    "RightInverse",
    "Smith",
    "Solution",
    "SymbolicAccess",
    "access",
    "coalesced",
    "covers",
    "fix",
    "flip",
    "hnf",
    "image_inverse",
    "index_expression",
    "injective",
    "is_unimodular",
    "kernel",
    "kernel_lattice",
    "merge",
    "normal_form",
    "parse_integer",
    "permute",
    "rename",
    "reshape",
    "right_inverse",
    "same_function",
    "select_outputs",
    "shift",
    "slice",
    "snf",
    "solve",
    "solve_mod",
    "split",
    "symbolic_access",
]


def __dir__() -> list[str]:
    return list(__all__)
