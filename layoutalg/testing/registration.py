"""Hypothesis's ``from_type`` for the library's types: the entry point that Hypothesis calls on import.

Implementation notes: registering needs the types, so importing hypothesis imports their modules; the strategies are
made when a type is first drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from layoutalg import testing
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Morphism, Swizzle
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.proofs.smem import SharedTile
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.proofs.wgmma.operand import OperandPlan, OperandProblem
from layoutalg.targets.nvidia.tensormap import TensorMap
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor

if TYPE_CHECKING:
    from hypothesis import strategies as st

Draw = Callable[[Any], "st.SearchStrategy[Any]"]


def _verdict(kind: type) -> st.SearchStrategy[Any]:
    """A verdict with a few facts or reasons."""
    from hypothesis import strategies as st

    words = st.text("abcdefg ", min_size=1, max_size=8)
    if kind.__name__ == "Unknown":
        return st.builds(kind, words, st.lists(words, max_size=3).map(tuple))
    return st.builds(kind, words, st.dictionaries(words, st.integers(0, 99), max_size=3))


DRAWN: dict[type, str | Draw] = {
    Layout: "layouts",
    Proved: _verdict,
    Refuted: _verdict,
    Unknown: _verdict,
    CuteLayout: "cute_layouts",
    Swizzle: "swizzles",
    ComposedLayout: lambda _: testing.strategies.composed_layouts(max_stages=2),
    CoordinateLayout: "coordinate_layouts",
    Morphism: "morphisms",
    SymbolicLayout: "symbolic_layouts",
    LinearLayout: "linear_layouts",
    IntegerLayout: "integer_layouts",
    PiecewiseLayout: "piecewise_layouts",
    HierarchicalLayout: "hierarchical_layouts",
    DigitMap: "digit_maps",
    TableMap: lambda kind: testing.strategies.tables(bijective=True).map(lambda table: kind(tuple(table.tolist()))),
    Box: "boxes",
    Guard: "guards",
    Tensor: "tensors",
    SharedTile: "shared_tiles",
    TensorMapProblem: lambda kind: testing.strategies.tensormap_problems().map(kind.from_json),
    TensorMapPlan: "tensormap_plans",
    OperandProblem: "operand_problems",
    OperandPlan: "operand_plans",
    TensorMap: "tensor_maps",
    MatrixDescriptor: "matrix_descriptors",
}
"""Type -> how its values are drawn: the name of a strategy without arguments, or a function of the type."""


def register() -> None:
    """Let ``st.from_type`` and annotations under ``@given`` draw the library's values; idempotent.

    ``Layout`` draws a layout of any family.
    """
    from hypothesis import strategies as st

    for kind, draw in DRAWN.items():
        st.register_type_strategy(kind, _by_name(draw) if isinstance(draw, str) else draw)


def _by_name(name: str) -> Draw:
    return lambda _: getattr(testing.strategies, name)()
