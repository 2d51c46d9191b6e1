"""Layouts over the integers: affine maps on boxes, and questions about them."""

from layoutalg.integer.access import Access, access
from layoutalg.integer.axes import (
    first_difference,
    fix,
    flip,
    normal_form,
    permute,
    rename,
    resize,
    same_function,
    select_outputs,
    shift,
    slice,
    stack,
)
from layoutalg.integer.common import CommonValues, common_values, disjoint_images
from layoutalg.integer.expression import IndexExpression, increments, index_expression
from layoutalg.integer.inverse import ImageInverse, RightInverse, image_inverse, right_inverse
from layoutalg.integer.lattice import Coset, Lattice
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.normal_forms import Hermite, Smith, hnf, is_unimodular, snf
from layoutalg.integer.notation import parse_integer
from layoutalg.integer.reach import covers, injective, kernel_lattice, value_lattice
from layoutalg.integer.reshape import coalesced, digit_permutation, merge, reshape, split
from layoutalg.integer.solve import NoSolution, Solution, count_mod, kernel, solve, solve_mod
from layoutalg.integer.symbolic import SymbolicAccess, symbolic_access

__all__ = [
    "Access",
    "CommonValues",
    "Coset",
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
    "common_values",
    "count_mod",
    "covers",
    "digit_permutation",
    "disjoint_images",
    "first_difference",
    "fix",
    "flip",
    "hnf",
    "image_inverse",
    "increments",
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
    "resize",
    "right_inverse",
    "same_function",
    "select_outputs",
    "shift",
    "slice",
    "snf",
    "solve",
    "solve_mod",
    "split",
    "stack",
    "symbolic_access",
    "value_lattice",
]


def __dir__() -> list[str]:
    return list(__all__)
