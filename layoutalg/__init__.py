"""layoutalg: what a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.

``dir`` lists the names to start with, ``__all__`` all public names. They load on first use; importing the package
itself loads only the standard library.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from layoutalg.ground.layout import read_by, written_by
from layoutalg.ground.lazy import door
from layoutalg.ground.picture import drawn_by
from layoutalg.ground.runnable import kernels_by
from layoutalg.ground.version import __version__ as __version__

if not (Path(__file__).parent / "synth" / "__init__.py").is_file() and find_spec("layoutalg.synth") is None:
    raise ImportError(
        "this checkout lost its symbolic links (layoutalg/synth -> ../synth, and targets, proofs, codegen likewise): "
        "restore them with 'git config core.symlinks true && git checkout -- layoutalg', or 'pip install .'"
    )

if TYPE_CHECKING:
    from layoutalg import (
        ask,
        codegen,
        convert,
        cute,
        draw,
        f2,
        hierarchy,
        integer,
        interop,
        piecewise,
        pipeline,
        proofs,
        synth,
        targets,
        testing,
    )
    from layoutalg.ask.bank_turns import banks
    from layoutalg.ask.choices import suggest
    from layoutalg.ask.explanation import explain
    from layoutalg.ask.global_sectors import transactions
    from layoutalg.bridges.composition import compose, logical_divide
    from layoutalg.bridges.equal import equivalent
    from layoutalg.bridges.inverse import left_inverse, right_inverse
    from layoutalg.codegen.indirect import paged, routing
    from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle
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
    from layoutalg.notation.write import to_text
    from layoutalg.notation.written import layout
    from layoutalg.piecewise import PiecewiseLayout
    from layoutalg.proofs import certify
    from layoutalg.proofs.admission import Admitted, Refused
    from layoutalg.proofs.tensor import Tensor
    from layoutalg.synth.admission import admissible
    from layoutalg.synth.conversions import conversion
    from layoutalg.synth.conversions.gathers import gather
    from layoutalg.synth.paddings import padding
    from layoutalg.synth.ragged import ragged
    from layoutalg.synth.rewrite import same_movement
    from layoutalg.synth.search.trials import tune
    from layoutalg.synth.swizzles import swizzle
    from layoutalg.synth.symbolic.call import tensormap
    from layoutalg.synth.tensormap.refusal import InadmissibleError
    from layoutalg.synth.wgmma.plan import wgmma

_PACKAGES = "ask codegen convert cute draw f2 hierarchy integer interop piecewise pipeline proofs synth targets testing"

__getattr__, _ = door(
    __name__,
    {f"layoutalg.{name}": name for name in _PACKAGES.split()}
    | {
        "layoutalg.ask.bank_turns": "banks",
        "layoutalg.ask.choices": "suggest",
        "layoutalg.ask.explanation": "explain",
        "layoutalg.ask.global_sectors": "transactions",
        "layoutalg.bridges.composition": "compose logical_divide",
        "layoutalg.bridges.equal": "equivalent",
        "layoutalg.bridges.inverse": "left_inverse right_inverse",
        "layoutalg.codegen.indirect": "paged routing",
        "layoutalg.cute": "cute ComposedLayout CuteLayout Morphism Swizzle",
        "layoutalg.f2": "f2 LinearLayout",
        "layoutalg.ground.errors": "AdmissibilityError BudgetError DeviceMismatchError Diagnostic InfeasibleError "
        "LayoutError MalformedError MissingExtraError Repair RepresentabilityError TargetRuleError",
        "layoutalg.ground.verdict": "Proved Refuted Unknown Verdict",
        "layoutalg.hierarchy": "hierarchy HierarchicalLayout",
        "layoutalg.integer": "integer IntegerLayout",
        "layoutalg.notation": "parse",
        "layoutalg.notation.write": "to_text",
        "layoutalg.notation.written": "layout",
        "layoutalg.piecewise": "piecewise PiecewiseLayout",
        "layoutalg.proofs.admission": "Admitted Refused",
        "layoutalg.proofs.certify": "certify",
        "layoutalg.proofs.tensor": "Tensor",
        "layoutalg.synth.admission": "admissible",
        "layoutalg.synth.conversions": "conversion",
        "layoutalg.synth.conversions.gathers": "gather",
        "layoutalg.synth.paddings": "padding",
        "layoutalg.synth.ragged.family": "ragged",
        "layoutalg.synth.search.trials": "tune",
        "layoutalg.synth.rewrite": "same_movement",
        "layoutalg.synth.swizzles": "swizzle",
        "layoutalg.synth.tensormap.refusal": "InadmissibleError",
        "layoutalg.synth.symbolic.call": "tensormap",
        "layoutalg.synth.wgmma.plan": "wgmma",
    },
)

drawn_by(lambda value: __getattr__("draw").bundle(value))  # type: ignore[attr-defined]
kernels_by(lambda *given, **options: __getattr__("codegen").kernels.kernel_of(*given, **options))  # type: ignore[attr-defined]

_LATER = {
    *("AdmissibilityError", "BudgetError", "ComposedLayout", "DeviceMismatchError", "Diagnostic", "HierarchicalLayout"),
    *("InfeasibleError", "IntegerLayout", "MalformedError", "MissingExtraError", "Morphism", "PiecewiseLayout"),
    *("Repair", "RepresentabilityError", "TargetRuleError", "Verdict", "ask", "f2", "hierarchy", "integer"),
    *("interop", "piecewise", "testing"),
}
"""Public names that ``dir`` leaves out: kinds of errors, and what their own packages list."""


def __dir__() -> list[str]:
    return sorted({*__all__} - _LATER)


def _read(value: object, shape: object, like: object) -> object:
    from layoutalg.notation.written import read_written

    return read_written(value, shape, known=like).layout


read_by(_read)
written_by(lambda value, form, **options: __getattr__("to_text")(value, form, **options))  # type: ignore[operator]

__all__ = [
    "AdmissibilityError",
    "Admitted",
    "BudgetError",
    "ComposedLayout",
    "CuteLayout",
    "DeviceMismatchError",
    "Diagnostic",
    "HierarchicalLayout",
    "InadmissibleError",
    "InfeasibleError",
    "IntegerLayout",
    "LayoutError",
    "LinearLayout",
    "MalformedError",
    "MissingExtraError",
    "Morphism",
    "PiecewiseLayout",
    "Proved",
    "Refused",
    "Refuted",
    "Repair",
    "RepresentabilityError",
    "Swizzle",
    "TargetRuleError",
    "Tensor",
    "Unknown",
    "Verdict",
    "admissible",
    "ask",
    "banks",
    "certify",
    "codegen",
    "compose",
    "conversion",
    "convert",
    "cute",
    "draw",
    "equivalent",
    "explain",
    "f2",
    "gather",
    "hierarchy",
    "integer",
    "interop",
    "layout",
    "left_inverse",
    "logical_divide",
    "padding",
    "paged",
    "parse",
    "piecewise",
    "pipeline",
    "proofs",
    "ragged",
    "right_inverse",
    "routing",
    "same_movement",
    "suggest",
    "swizzle",
    "synth",
    "targets",
    "tensormap",
    "testing",
    "to_text",
    "transactions",
    "tune",
    "wgmma",
]
