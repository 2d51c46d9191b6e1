"""Check the operands of CuTe operations, keep recent answers, and phrase refusals.

Notation: a tiler is a layout; an int n, meaning ``n:1``; None, written ``_``; or a tuple with one tiler per mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, TypeAlias, TypeVar, cast

from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.fit import strided_form
from layoutalg.cute.inttuple import INT_LIMIT, integer
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import ComposedLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH

AnyLayout = TypeVar("AnyLayout", bound="CuteLayout | ComposedLayout | CoordinateLayout")
Under = TypeVar("Under", bound="CuteLayout | ComposedLayout")
Operation = TypeVar("Operation", bound=Callable[..., Any])
Value = TypeVar("Value")
Tiler: TypeAlias = "CuteLayout | int | tuple[Tiler, ...] | None"

Where: TypeAlias = "str | Callable[[], str]"
"""The call in notation, for messages, or a function that returns it, so that only failures pay for formatting."""

FAMILIES = "a CuteLayout, a ComposedLayout or a CoordinateLayout"

_COMPACT = "CuteLayout(shape) is the compact layout of a shape"
_HINTS: dict[type, str] = {str: "layoutalg.parse reads text", int: _COMPACT, tuple: _COMPACT}

NARROW = 16
RECENT = 4096

WIDER = "layoutalg.compose(outer, inner, widen=True), which gives it in a wider family"
"""Where to go when a composition has no CuTe form."""


def cached(operation: Operation) -> Operation:
    """Keep the last ``RECENT`` answers for operands of at most ``NARROW`` modes.

    Operands with thousands of modes are computed each time, so that the cache stays within about 100 MB: a layout has
    fewer than 2^63 coordinates, so an answer adds at most 63 modes to those of its operands.
    """
    known = lru_cache(RECENT)(operation)

    @wraps(operation)
    def call(*operands: Any) -> Any:
        for operand in operands:
            kind = type(operand)
            if kind is CuteLayout:
                if len(operand._flat) > NARROW:
                    return operation(*operands)
            elif kind is not int and kind is not str and not _narrow(operand):
                return operation(*operands)
        return known(*operands)

    call.cache_clear, call.cache_info = known.cache_clear, known.cache_info  # type: ignore[attr-defined]
    return cast(Operation, call)


def _narrow(operand: object) -> bool:
    if isinstance(operand, tuple):
        return len(operand) <= NARROW and all(_narrow(entry) for entry in operand)
    if isinstance(operand, ComposedLayout):
        operand = operand.base
    return not isinstance(operand, CuteLayout | CoordinateLayout) or len(operand.flat) <= NARROW


def require_cute(layout: Value, operation: str, argument: str = "layout") -> Value:
    """Return ``layout`` if it is a CuTe or a composed layout, otherwise raise LA192."""
    if isinstance(layout, CuteLayout | ComposedLayout):
        return layout
    raise operand_refusal(layout, operation, argument, "a CuteLayout or a ComposedLayout")


def operand_refusal(value: object, operation: str, argument: str, rule: str) -> MalformedError:
    """Return the LA192 error for an operand of the wrong type, with a hint if one is known."""
    hint = _HINTS.get(type(value)) or getattr(value, "hint", "")
    text = f"the {type(value).__name__} {value}" if isinstance(value, ComposedLayout) else shown(value)
    because = f"{argument} must be {rule}, not {text}" + (f"; {hint}" if hint else "")
    return MalformedError(Diagnostic("LA192", "the operand does not fit the operation", (operation,), because))


def tiler_text(tiler: object) -> str:
    """Return a tiler in CuTe notation, bounded in length."""
    text = _tiler_text(tiler, 0)
    return text if len(text) <= 160 else text[:157] + "..."


def _tiler_text(tiler: object, level: int) -> str:
    if tiler is None:
        return "_"
    if isinstance(tiler, tuple):
        if level > 8:
            return "<...>"
        return "<" + ",".join([_tiler_text(entry, level + 1) for entry in tiler[:32]]) + ">"
    return str(tiler) if isinstance(tiler, CuteLayout) else shown(tiler)


def read_tiler(tiler: object, where: Where, level: int = 0) -> Tiler:
    """Return ``tiler`` with plain ints, or raise LA141."""
    if tiler is None or isinstance(tiler, CuteLayout) or (type(tiler) is int and 0 <= tiler < INT_LIMIT):
        return tiler
    if isinstance(tiler, ComposedLayout):
        return strided_form(tiler, "tiler")
    if isinstance(tiler, tuple):
        if level >= TUPLE_DEPTH:
            raise malformed_tiler(f"a tiler may nest at most {TUPLE_DEPTH} deep", where)
        return tuple([read_tiler(entry, where, level + 1) for entry in tiler])
    if isinstance(tiler, bool) or not hasattr(tiler, "__index__"):
        hint = "; layoutalg.parse reads text" if isinstance(tiler, str) else ""
        rule = f"a tiler is a layout, an integer, None or a tuple of tilers, not {shown(tiler)}{hint}"
        raise malformed_tiler(rule, where)
    value = integer(tiler, "tiler", "LA141")
    if value < 0:
        raise malformed_tiler(f"an integer tiler must be >= 0, not {value}", where)
    return value


def malformed_tiler(because: str, where: Where) -> MalformedError:
    """Return the error for a malformed tiler, or one that does not fit the layout."""
    return MalformedError(Diagnostic("LA141", "the tiler is malformed", (_call(where),), because))


def _call(where: Where) -> str:
    return where if isinstance(where, str) else where()


def by_mode(layout: CuteLayout, tiler: tuple[Tiler, ...], where: Where) -> None:
    """Raise LA141 if a tuple tiler has more entries than the layout has modes."""
    if isinstance(layout.shape, int) or len(tiler) > layout.rank:
        modes = "an int shape, not a tuple of modes" if isinstance(layout.shape, int) else f"{layout.rank} modes"
        raise malformed_tiler(f"a tuple of {len(tiler)} tilers does not fit {layout}, which has {modes}", where)


def as_layout(tiler: CuteLayout | int) -> CuteLayout:
    """Return the layout a leaf of a tiler stands for."""
    return tiler if isinstance(tiler, CuteLayout) else CuteLayout(tiler, 1)


def refusal(
    code: str, what: str, where: Where, because: str, witness: Mapping[str, object] | None = None
) -> AdmissibilityError:
    """Return the error of an operation that is undefined on its operands."""
    return AdmissibilityError(Diagnostic(code=code, what=what, where=(_call(where),), because=because, witness=witness))


def within(error: LayoutError, where: Where, code: str | None = None, what: str | None = None) -> LayoutError:
    """Return the same error as raised from the outer call ``where``."""
    old = error.diagnostic
    seen = replace(old, code=code or old.code, what=what or old.what, where=(_call(where), *old.where))
    return type(error)(seen)
