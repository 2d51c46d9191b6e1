"""Hypothesis's ``from_type`` for the library's types: the entry point that Hypothesis calls on import.

Implementation notes: registering a type needs its module, which loads numpy. So a type is registered only when its
module is imported by someone else; until then an import finder waits for it, and importing hypothesis alone costs two
small modules. hypothesis is imported inside functions, because importing it runs this entry point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from layoutalg import testing

if TYPE_CHECKING:
    from hypothesis import strategies as st


def _verdict(kind: type) -> st.SearchStrategy[Any]:
    """A verdict with a few facts or reasons."""
    from hypothesis import strategies as st

    words = st.text("abcdefg ", min_size=1, max_size=8)
    if kind.__name__ == "Unknown":
        return st.builds(kind, words, st.lists(words, max_size=3).map(tuple))
    return st.builds(kind, words, st.dictionaries(words, st.integers(0, 99), max_size=3))


DRAWN: dict[str, dict[str, Callable[[type], st.SearchStrategy[Any]]]] = {
    "layoutalg.ground.layout": {"Layout": lambda _: testing.strategies.layouts()},
    "layoutalg.ground.verdict": dict.fromkeys(("Proved", "Refuted", "Unknown"), _verdict),
    "layoutalg.cute.layout": {"CuteLayout": lambda _: testing.strategies.cute_layouts()},
    "layoutalg.cute.swizzle": {
        "Swizzle": lambda _: testing.strategies.swizzles(),
        "ComposedLayout": lambda _: testing.strategies.composed_layouts(max_stages=2),
    },
    "layoutalg.cute.coordinates": {"CoordinateLayout": lambda _: testing.strategies.coordinate_layouts()},
    "layoutalg.cute.morphism": {"Morphism": lambda _: testing.strategies.morphisms()},
    "layoutalg.cute.symbolic.layout": {"SymbolicLayout": lambda _: testing.strategies.symbolic_layouts()},
    "layoutalg.f2.layout": {"LinearLayout": lambda _: testing.strategies.linear_layouts()},
    "layoutalg.integer.layout": {"IntegerLayout": lambda _: testing.strategies.integer_layouts()},
    "layoutalg.piecewise.layout": {"PiecewiseLayout": lambda _: testing.strategies.piecewise_layouts()},
    "layoutalg.hierarchy.layout": {
        "HierarchicalLayout": lambda _: testing.strategies.hierarchical_layouts(),
        "Guard": lambda _: testing.strategies.guards(),
    },
    "layoutalg.hierarchy.bijection": {
        "DigitMap": lambda _: testing.strategies.digit_maps(),
        "TableMap": lambda kind: testing.strategies.tables(bijective=True).map(lambda t: kind(tuple(t.tolist()))),
    },
    "layoutalg.hierarchy.levels": {"Box": lambda _: testing.strategies.boxes()},
    "layoutalg.proofs.tensor": {"Tensor": lambda _: testing.strategies.tensors()},
    "layoutalg.proofs.smem": {"SharedTile": lambda _: testing.strategies.shared_tiles()},
    "layoutalg.proofs.tensormap.problem": {
        "TensorMapProblem": lambda kind: testing.strategies.tensormap_problems().map(kind.from_json),  # type: ignore[attr-defined]
    },
    "layoutalg.proofs.tensormap.plan": {"TensorMapPlan": lambda _: testing.strategies.tensormap_plans()},
    "layoutalg.proofs.wgmma.operand": {
        "OperandProblem": lambda _: testing.strategies.operand_problems(),
        "OperandPlan": lambda _: testing.strategies.operand_plans(),
    },
    "layoutalg.targets.nvidia.tensormap.fields": {"TensorMap": lambda _: testing.strategies.tensor_maps()},
    "layoutalg.targets.nvidia.wgmma.descriptor": {
        "MatrixDescriptor": lambda _: testing.strategies.matrix_descriptors()
    },
}
"""Module -> type name -> strategy for its values."""


def register() -> None:
    """Let ``st.from_type`` and annotations under ``@given`` draw the library's values; idempotent.

    ``Layout`` draws a layout of any family.
    """
    waiting = {name for name in DRAWN if name not in sys.modules}
    for name in DRAWN.keys() - waiting:
        _registered(sys.modules[name])
    if waiting and not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting(waiting))


def _registered(module: ModuleType) -> None:
    from hypothesis import strategies as st

    for name, draw in DRAWN[module.__name__].items():
        st.register_type_strategy(getattr(module, name), draw)


class _Waiting:
    """A finder that delegates to the others, and registers the types of a module once it is imported."""

    def __init__(self, modules: set[str]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._modules:
            return None
        self._modules.discard(name)
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(name, path, target)
            if found is not None:
                if found.loader is not None:
                    found.loader = _Registering(found.loader)
                return found
        return None


class _Registering(Loader):
    """A loader that wraps another one and registers the module's types after execution."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _registered(module)
