"""Layouts over the integers: Hermite and Smith forms, lattices, affine maps on boxes of any extents."""

from layoutalg.zmod.access import Access, SymbolicStride, access, symbolic_access
from layoutalg.zmod.axes import (
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
from layoutalg.zmod.expression import IndexExpression, carry_steps, from_axes, from_flat
from layoutalg.zmod.inverse import RightInverse, right_inverse
from layoutalg.zmod.lattice import Coset, Lattice
from layoutalg.zmod.layout import IntegerLayout
from layoutalg.zmod.matrix import Hermite, Smith, hnf, is_unimodular, snf
from layoutalg.zmod.notation import parse_integer
from layoutalg.zmod.reach import covers, disjoint_images, image_coset, injective, kernel_lattice
from layoutalg.zmod.reshape import coalesced, digit_permutation, merge, reshape, split
from layoutalg.zmod.solve import Obstruction, Solution, kernel, solve, solve_mod

__all__ = [
    "Access",
    "Coset",
    "Hermite",
    "IndexExpression",
    "IntegerLayout",
    "Lattice",
    "Obstruction",
    "RightInverse",
    "Smith",
    "Solution",
    "SymbolicStride",
    "access",
    "carry_steps",
    "coalesced",
    "covers",
    "digit_permutation",
    "disjoint_images",
    "extend",
    "first_difference",
    "fix",
    "flip",
    "from_axes",
    "from_flat",
    "hnf",
    "image_coset",
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
