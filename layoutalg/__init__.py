"""layoutalg: what a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.

Public names are listed in ``__all__`` and load on first use, numpy with them; importing the package loads neither them
nor anything outside Python's own library.
"""

from __future__ import annotations

import importlib
from pathlib import Path as _Path
from typing import TYPE_CHECKING

if not (_Path(__file__).parent / "synth" / "__init__.py").is_file():  # a checkout whose links were lost
    from layoutalg import _checkout

    _checkout.install()

if TYPE_CHECKING:
    from layoutalg import convert, cute, f2, hierarchy, integer, piecewise
    from layoutalg.bridges import promote
    from layoutalg.bridges.equal import equivalent
    from layoutalg.cute import ComposedLayout, CuteLayout, NestMorphism, PaddedMorphism, Swizzle, TupleMorphism
    from layoutalg.f2 import LinearLayout
    from layoutalg.ground.errors import (
        AdmissibilityError,
        BudgetError,
        DeviceMismatchError,
        Diagnostic,
        InfeasibleError,
        LayoutError,
        MalformedError,
        MissingExtraError,
        Repair,
        RepresentabilityError,
        TargetRuleError,
    )
    from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
    from layoutalg.hierarchy import HierarchicalLayout
    from layoutalg.integer import IntegerLayout
    from layoutalg.notation import parse
    from layoutalg.piecewise import ParametricLayout, PiecewiseLayout

__version__ = "0.1.0"

_HOMES = {
    "AdmissibilityError": "layoutalg.ground.errors",
    "BudgetError": "layoutalg.ground.errors",
    "ComposedLayout": "layoutalg.cute",
    "CuteLayout": "layoutalg.cute",
    "DeviceMismatchError": "layoutalg.ground.errors",
    "Diagnostic": "layoutalg.ground.errors",
    "HierarchicalLayout": "layoutalg.hierarchy",
    "InfeasibleError": "layoutalg.ground.errors",
    "IntegerLayout": "layoutalg.integer",
    "LayoutError": "layoutalg.ground.errors",
    "LinearLayout": "layoutalg.f2",
    "MalformedError": "layoutalg.ground.errors",
    "MissingExtraError": "layoutalg.ground.errors",
    "NestMorphism": "layoutalg.cute",
    "PaddedMorphism": "layoutalg.cute",
    "ParametricLayout": "layoutalg.piecewise",
    "PiecewiseLayout": "layoutalg.piecewise",
    "Proved": "layoutalg.ground.verdict",
    "Refuted": "layoutalg.ground.verdict",
    "Repair": "layoutalg.ground.errors",
    "RepresentabilityError": "layoutalg.ground.errors",
    "Swizzle": "layoutalg.cute",
    "TargetRuleError": "layoutalg.ground.errors",
    "TupleMorphism": "layoutalg.cute",
    "Unknown": "layoutalg.ground.verdict",
    "Verdict": "layoutalg.ground.verdict",
    "equivalent": "layoutalg.bridges.equal",
    "parse": "layoutalg.notation",
}
_MODULES = {name: f"layoutalg.{name}" for name in ("convert", "cute", "f2", "hierarchy", "integer", "piecewise")}
_MODULES["promote"] = "layoutalg.bridges.promote"

__all__ = [
    "AdmissibilityError",
    "BudgetError",
    "ComposedLayout",
    "CuteLayout",
    "DeviceMismatchError",
    "Diagnostic",
    "HierarchicalLayout",
    "InfeasibleError",
    "IntegerLayout",
    "LayoutError",
    "LinearLayout",
    "MalformedError",
    "MissingExtraError",
    "NestMorphism",
    "PaddedMorphism",
    "ParametricLayout",
    "PiecewiseLayout",
    "Proved",
    "Refuted",
    "Repair",
    "RepresentabilityError",
    "Swizzle",
    "TargetRuleError",
    "TupleMorphism",
    "Unknown",
    "Verdict",
    "convert",
    "cute",
    "equivalent",
    "f2",
    "hierarchy",
    "integer",
    "parse",
    "piecewise",
    "promote",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'layoutalg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
