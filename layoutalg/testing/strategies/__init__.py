"""Hypothesis strategies for the library's values: small, shrinking towards simple ones, with corner cases.

Each strategy checks its arguments when called; a bad one is an ``InvalidStrategyError``, which is also Hypothesis's
``InvalidArgument``. Values are valid by construction rather than filtered.

Implementation notes: this package imports hypothesis; nothing else in the library imports this package.
"""

from layoutalg.testing.strategies.arguments import InvalidStrategyError
from layoutalg.testing.strategies.families import FAMILIES, NOTATIONS, layouts, tables, texts, values_and_texts
from layoutalg.testing.strategies.hierarchy import bijections, boxes, digit_maps, guards, hierarchical_layouts
from layoutalg.testing.strategies.maps import integer_layouts, linear_layouts, morphisms, piecewise_layouts
from layoutalg.testing.strategies.pairs import admissible_pairs, composable_pairs, equal_pairs, near_pairs
from layoutalg.testing.strategies.strided import (
    composed_layouts,
    coordinate_layouts,
    cute_layouts,
    int_tuples,
    swizzles,
    symbolic_layouts,
)
from layoutalg.testing.strategies.tiles import (
    matrix_descriptors,
    operand_plans,
    operand_problems,
    shared_tiles,
    tensor_maps,
    tensormap_plans,
    tensormap_problems,
    tensors,
)

__all__ = [
    "FAMILIES", "NOTATIONS", "InvalidStrategyError", "admissible_pairs", "bijections", "boxes", "composable_pairs",
    "composed_layouts", "coordinate_layouts", "cute_layouts", "digit_maps", "equal_pairs", "guards",
    "hierarchical_layouts", "int_tuples", "integer_layouts", "layouts", "linear_layouts", "matrix_descriptors",
    "morphisms", "near_pairs", "operand_plans", "operand_problems", "piecewise_layouts", "shared_tiles", "swizzles",
    "symbolic_layouts", "tables", "tensor_maps", "tensormap_plans", "tensormap_problems", "tensors", "texts",
    "values_and_texts",
]  # fmt: skip
