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
    from layoutalg import ask as ask
    from layoutalg import codegen as codegen
    from layoutalg import convert as convert
    from layoutalg import cute as cute
    from layoutalg import draw as draw
    from layoutalg import f2 as f2
    from layoutalg import hierarchy as hierarchy
    from layoutalg import integer as integer
    from layoutalg import interop as interop
    from layoutalg import piecewise as piecewise
    from layoutalg import pipeline as pipeline
    from layoutalg import proofs as proofs
    from layoutalg import synth as synth
    from layoutalg import targets as targets
    from layoutalg import testing as testing
    from layoutalg.ask.bank_turns import banks as banks
    from layoutalg.ask.choices import suggest as suggest
    from layoutalg.ask.explanation import explain as explain
    from layoutalg.ask.global_sectors import transactions as transactions
    from layoutalg.bridges.composition import compose as compose
    from layoutalg.bridges.composition import logical_divide as logical_divide
    from layoutalg.bridges.equal import equivalent as equivalent
    from layoutalg.bridges.inverse import left_inverse as left_inverse
    from layoutalg.bridges.inverse import right_inverse as right_inverse
    from layoutalg.codegen.indirect import paged as paged
    from layoutalg.codegen.indirect import routing as routing
    from layoutalg.cute import ComposedLayout as ComposedLayout
    from layoutalg.cute import CuteLayout as CuteLayout
    from layoutalg.cute import Morphism as Morphism
    from layoutalg.cute import Swizzle as Swizzle
    from layoutalg.f2 import LinearLayout as LinearLayout
    from layoutalg.ground.errors import AdmissibilityError as AdmissibilityError
    from layoutalg.ground.errors import BudgetError as BudgetError
    from layoutalg.ground.errors import DeviceMismatchError as DeviceMismatchError
    from layoutalg.ground.errors import Diagnostic as Diagnostic
    from layoutalg.ground.errors import InfeasibleError as InfeasibleError
    from layoutalg.ground.errors import LayoutError as LayoutError
    from layoutalg.ground.errors import MalformedError as MalformedError
    from layoutalg.ground.errors import MissingExtraError as MissingExtraError
    from layoutalg.ground.errors import Repair as Repair
    from layoutalg.ground.errors import RepresentabilityError as RepresentabilityError
    from layoutalg.ground.errors import TargetRuleError as TargetRuleError
    from layoutalg.ground.verdict import Proved as Proved
    from layoutalg.ground.verdict import Refuted as Refuted
    from layoutalg.ground.verdict import Unknown as Unknown
    from layoutalg.ground.verdict import Verdict as Verdict
    from layoutalg.hierarchy import HierarchicalLayout as HierarchicalLayout
    from layoutalg.integer import IntegerLayout as IntegerLayout
    from layoutalg.notation import parse as parse
    from layoutalg.notation.write import to_text as to_text
    from layoutalg.notation.written import layout as layout
    from layoutalg.piecewise import PiecewiseLayout as PiecewiseLayout
    from layoutalg.proofs import certify as certify
    from layoutalg.proofs.admission import Admitted as Admitted
    from layoutalg.proofs.admission import Refused as Refused
    from layoutalg.proofs.tensor import Tensor as Tensor
    from layoutalg.synth.admission import admissible as admissible
    from layoutalg.synth.conversions import conversion as conversion
    from layoutalg.synth.conversions.gathers import gather as gather
    from layoutalg.synth.paddings import padding as padding
    from layoutalg.synth.ragged import ragged as ragged
    from layoutalg.synth.rewrite import same_movement as same_movement
    from layoutalg.synth.search.trials import tune as tune
    from layoutalg.synth.swizzles import swizzle as swizzle
    from layoutalg.synth.symbolic.call import tensormap as tensormap
    from layoutalg.synth.tensormap.refusal import InadmissibleError as InadmissibleError
    from layoutalg.synth.wgmma.plan import wgmma as wgmma

_PACKAGES = "ask codegen convert cute draw f2 hierarchy integer interop piecewise pipeline proofs synth targets testing"

__getattr__, _names = door(
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
    return sorted({*_names()} - _LATER)


def _read(value: object, shape: object, like: object) -> object:
    from layoutalg.notation.written import read_written

    return read_written(value, shape, known=like).layout


read_by(_read)
written_by(lambda value, form, **options: __getattr__("to_text")(value, form, **options))  # type: ignore[operator]
