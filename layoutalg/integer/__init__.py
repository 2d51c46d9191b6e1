"""Layouts over the integers: Hermite and Smith forms, lattices, affine maps on boxes of any extents."""

from layoutalg.integer.access import Access, access
from layoutalg.integer.axes import (
    extend,
    first_difference,
    fix,
    flip,
    normal,
    permute,
    rename,
    same_function,
    select,
    shift,
    slice_axis,
    stack,
)
from layoutalg.integer.common import CommonValues, common_values
from layoutalg.integer.expression import IndexExpression, increments, index_expression
from layoutalg.integer.inverse import ImageInverse, RightInverse, image_inverse, right_inverse
from layoutalg.integer.lattice import Coset, Lattice
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import Hermite, hnf, is_unimodular
from layoutalg.integer.notation import parse_integer
from layoutalg.integer.reach import covers, disjoint_images, image_coset, injective, kernel_lattice
from layoutalg.integer.reshape import coalesced, digit_permutation, merge, reshape, split
from layoutalg.integer.smith import Smith, snf
from layoutalg.integer.solve import Obstruction, Solution, count_mod, kernel, solve, solve_mod
from layoutalg.integer.symbolic import SymbolicAccess, SymbolicStride, symbolic_access

__all__ = [
    "Access",
    "CommonValues",
    "Coset",
    "Hermite",
    "ImageInverse",
    "IndexExpression",
    "IntegerLayout",
    "Lattice",
    "Obstruction",
    "RightInverse",
    "Smith",
    "Solution",
    "SymbolicAccess",
    "SymbolicStride",
    "access",
    "coalesced",
    "common_values",
    "count_mod",
    "covers",
    "digit_permutation",
    "disjoint_images",
    "extend",
    "first_difference",
    "fix",
    "flip",
    "hnf",
    "image_coset",
    "image_inverse",
    "increments",
    "index_expression",
    "injective",
    "is_unimodular",
    "kernel",
    "kernel_lattice",
    "merge",
    "normal",
    "parse_integer",
    "permute",
    "rename",
    "reshape",
    "right_inverse",
    "same_function",
    "select",
    "shift",
    "slice_axis",
    "snf",
    "solve",
    "solve_mod",
    "split",
    "stack",
    "symbolic_access",
]
