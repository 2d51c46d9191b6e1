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
    from layoutalg import affine, convert, cute, f2, hierarchy, promote, zmod
    from layoutalg.affine import ParametricLayout, PiecewiseLayout
    from layoutalg.cute import ComposedLayout, CuteLayout, NestMorphism, PaddedMorphism, Swizzle, TupleMorphism
    from layoutalg.equal import equivalent
    from layoutalg.errors import (
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
    from layoutalg.f2 import LinearLayout
    from layoutalg.hierarchy import HierarchicalLayout
    from layoutalg.notation import parse
    from layoutalg.verdict import Proved, Refuted, Unknown, Verdict
    from layoutalg.zmod import IntegerLayout

__version__ = "0.1.0"

_HOMES = {
    "AdmissibilityError": "layoutalg.errors",
    "BudgetError": "layoutalg.errors",
    "ComposedLayout": "layoutalg.cute",
    "CuteLayout": "layoutalg.cute",
    "DeviceMismatchError": "layoutalg.errors",
    "Diagnostic": "layoutalg.errors",
    "HierarchicalLayout": "layoutalg.hierarchy",
    "InfeasibleError": "layoutalg.errors",
    "IntegerLayout": "layoutalg.zmod",
    "LayoutError": "layoutalg.errors",
    "LinearLayout": "layoutalg.f2",
    "MalformedError": "layoutalg.errors",
    "MissingExtraError": "layoutalg.errors",
    "NestMorphism": "layoutalg.cute",
    "PaddedMorphism": "layoutalg.cute",
    "ParametricLayout": "layoutalg.affine",
    "PiecewiseLayout": "layoutalg.affine",
    "Proved": "layoutalg.verdict",
    "Refuted": "layoutalg.verdict",
    "Repair": "layoutalg.errors",
    "RepresentabilityError": "layoutalg.errors",
    "Swizzle": "layoutalg.cute",
    "TargetRuleError": "layoutalg.errors",
    "TupleMorphism": "layoutalg.cute",
    "Unknown": "layoutalg.verdict",
    "Verdict": "layoutalg.verdict",
    "equivalent": "layoutalg.equal",
    "parse": "layoutalg.notation",
}
_MODULES = ("affine", "convert", "cute", "f2", "hierarchy", "promote", "zmod")

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
    "affine",
    "convert",
    "cute",
    "equivalent",
    "f2",
    "hierarchy",
    "parse",
    "promote",
    "zmod",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"layoutalg.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'layoutalg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
