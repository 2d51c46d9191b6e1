"""Hypothesis's ``from_type`` for the library's values: the entry point that Hypothesis calls when it is imported.

Implementation notes: registering needs the types, so importing hypothesis imports their modules; the strategies are
made when a type is first drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from layoutalg import testing

if TYPE_CHECKING:
    from hypothesis import strategies as st

Draw = Callable[[Any], "st.SearchStrategy[Any]"]


def _verdict(kind: type) -> st.SearchStrategy[Any]:
    """A verdict with a few facts, or reasons."""
    from hypothesis import strategies as st

    words = st.text("abcdefg ", min_size=1, max_size=8)
    if kind.__name__ == "Unknown":
        return st.builds(kind, words, st.lists(words, max_size=3).map(tuple))
    return st.builds(kind, words, st.dictionaries(words, st.integers(0, 99), max_size=3))


DRAWN: dict[str, dict[str, str | Draw]] = {
    "layoutalg.ground.layout": {"Layout": "layouts"},
    "layoutalg.ground.verdict": dict.fromkeys(("Proved", "Refuted", "Unknown"), _verdict),
    "layoutalg.cute.layout": {"CuteLayout": "cute_layouts"},
    "layoutalg.cute.swizzle": {"Swizzle": "swizzles"},
    "layoutalg.cute.composed": {"ComposedLayout": lambda _: testing.strategies.composed_layouts(max_stages=2)},
    "layoutalg.cute.coordinates": {"CoordinateLayout": "coordinate_layouts"},
    "layoutalg.cute.morphism": {"Morphism": "morphisms"},
    "layoutalg.cute.symbolic.layout": {"SymbolicLayout": "symbolic_layouts"},
    "layoutalg.f2.layout": {"LinearLayout": "linear_layouts"},
    "layoutalg.integer.layout": {"IntegerLayout": "integer_layouts"},
    "layoutalg.piecewise.layout": {"PiecewiseLayout": "piecewise_layouts"},
    "layoutalg.hierarchy.layout": {"HierarchicalLayout": "hierarchical_layouts"},
    "layoutalg.hierarchy.digitmap": {"DigitMap": "digit_maps"},
    "layoutalg.hierarchy.bijection": {
        "TableMap": lambda kind: testing.strategies.tables(bijective=True).map(lambda t: kind(tuple(t.tolist())))
    },
    "layoutalg.hierarchy.levels": {"Box": "boxes"},
    "layoutalg.hierarchy.guard": {"Guard": "guards"},
    "layoutalg.proofs.tensor": {"Tensor": "tensors"},
    "layoutalg.proofs.smem": {"SharedTile": "shared_tiles"},
    "layoutalg.proofs.tensormap.problem": {
        "TensorMapProblem": lambda kind: testing.strategies.tensormap_problems().map(kind.from_json)
    },
    "layoutalg.proofs.tensormap.plan": {"TensorMapPlan": "tensormap_plans"},
    "layoutalg.proofs.wgmma.operand": {"OperandProblem": "operand_problems", "OperandPlan": "operand_plans"},
    "layoutalg.targets.nvidia.tensormap.fields": {"TensorMap": "tensor_maps"},
    "layoutalg.targets.nvidia.wgmma.descriptor": {"MatrixDescriptor": "matrix_descriptors"},
}
"""Module -> type -> how its values are drawn: the name of a strategy without arguments, or a function of the type."""


def register() -> None:
    """Let ``st.from_type`` and annotations of ``@given`` draw the library's values; calling it again changes nothing.

    ``Layout`` stands for a layout of any family.
    """
    from hypothesis import strategies as st

    for name, kinds in DRAWN.items():
        module = importlib.import_module(name)
        for kind, draw in kinds.items():
            st.register_type_strategy(getattr(module, kind), _by_name(draw) if isinstance(draw, str) else draw)


def _by_name(name: str) -> Draw:
    return lambda _: getattr(testing.strategies, name)()
