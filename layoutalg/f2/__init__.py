"""Affine maps over F2: linear layouts, their matrices, operations and text.

Invalid layouts raise ``MalformedError`` LA200, other invalid arguments LA241.
"""

from layoutalg.f2.divide import (
    additive_strides,
    divide_left,
    divide_right,
    drop_broadcast,
    is_identity_on,
    is_trivial_over,
    largest_vectorisation,
    num_consecutive,
    permutation_for_divide,
    quotient,
    repetitions,
)
from layoutalg.f2.kinds import is_distributed_layout, is_memory_layout
from layoutalg.f2.layout import LinearLayout, map_in, parse_linear
from layoutalg.f2.reshape import (
    concat_ins,
    concat_outs,
    direct_sum,
    empty,
    fix_in,
    flatten_ins,
    flatten_outs,
    flip_in,
    flip_out,
    from_bases_minimal,
    identity_1d,
    rename_ins,
    rename_outs,
    reshape_ins,
    reshape_outs,
    slice_in,
    squeeze_ins,
    squeeze_outs,
    strided_1d,
    transpose_ins,
    transpose_outs,
    xor_in,
    xor_out,
    zeros_1d,
)
from layoutalg.f2.resize import (
    broadcast_in,
    combine_cta_cga,
    ensure_not_larger,
    ensure_not_smaller,
    mask_out,
    remove_zero_bases,
    resize_in,
    resize_out,
    sublayout,
    sublayout_is_zero,
    zero_out,
)
from layoutalg.f2.solutions import (
    SolutionSet,
    free_variable_masks,
    invert_and_compose,
    left_inverse,
    minimal_conversion,
    preimages,
    right_inverse,
    solve,
    solve_outer,
)
from layoutalg.f2.subspace import Subspace, bank_conflict, conflict_degree, image_of, kernel_of

__all__ = [
    "LinearLayout", "SolutionSet", "Subspace", "additive_strides", "bank_conflict", "broadcast_in",
    "combine_cta_cga", "concat_ins", "concat_outs", "conflict_degree", "direct_sum", "divide_left", "divide_right",
    "drop_broadcast", "empty", "ensure_not_larger", "ensure_not_smaller", "fix_in", "flatten_ins", "flatten_outs",
    "flip_in", "flip_out", "free_variable_masks", "from_bases_minimal", "identity_1d", "image_of",
    "invert_and_compose", "is_distributed_layout", "is_identity_on", "is_memory_layout", "is_trivial_over",
    "kernel_of", "largest_vectorisation", "left_inverse", "map_in", "mask_out", "minimal_conversion",
    "num_consecutive", "parse_linear", "permutation_for_divide", "preimages", "quotient", "remove_zero_bases",
    "rename_ins", "rename_outs", "repetitions", "reshape_ins", "reshape_outs", "resize_in", "resize_out",
    "right_inverse", "slice_in", "solve", "solve_outer", "squeeze_ins", "squeeze_outs", "strided_1d", "sublayout",
    "sublayout_is_zero", "transpose_ins", "transpose_outs", "xor_in", "xor_out", "zero_out", "zeros_1d",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
