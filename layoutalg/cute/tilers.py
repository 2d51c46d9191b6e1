"""What the tiling operations share: tilers, and lifting an operation on domains to every family.

Main definitions: ``Tiler``, ``Where``, ``tiler_text``, ``read_tiler``, ``lift``, ``refusal``, ``within``.

Notation: a tiler is a layout; an int n, meaning ``n:1``; None, written ``_``; or a tuple with one tiler per mode.

Main statements: an operation on domains replaces L by L o X with X depending only on the shape of L (or, for a CuTe
layout, gives L o X in refined form). It therefore acts on a swizzled layout through its base and on a coordinate layout
through the compact layout of its shape.

References: CuTe documentation of NVIDIA CUTLASS, "Layout algebra".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import INT_LIMIT, integer
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import operand_refusal
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH

Tiler: TypeAlias = "CuteLayout | int | tuple[Tiler, ...] | None"

Where: TypeAlias = "str | Callable[[], str]"
"""The call in notation, for messages; or what writes it, so that a call that succeeds writes nothing."""

FAMILIES = "a CuteLayout, a ComposedLayout, an OffsetLayout or a CoordinateLayout"

AnyLayout = TypeVar("AnyLayout", CuteLayout, ComposedLayout, CoordinateLayout)


def tiler_text(tiler: object) -> str:
    """Return a tiler in the field's notation, bounded in length.

    Example:
        >>> tiler_text((4, None, CuteLayout(2, 3)))
        '<4,_,2:3>'
    """
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
    """Return ``tiler`` with plain ints, or refuse it.

    Raises: MalformedError: LA141.
    """
    if tiler is None or isinstance(tiler, CuteLayout):
        return tiler
    if type(tiler) is int and 0 <= tiler < INT_LIMIT:
        return tiler
    if isinstance(tiler, tuple):
        if level >= TUPLE_DEPTH:
            raise _malformed_tiler(f"a tiler nests at most {TUPLE_DEPTH} deep", where)
        return tuple([read_tiler(entry, where, level + 1) for entry in tiler])
    if isinstance(tiler, bool) or not hasattr(tiler, "__index__"):
        hint = "; layoutalg.parse reads text" if isinstance(tiler, str) else ""
        rule = f"a tiler is a layout, an integer, None or a tuple of tilers, not {shown(tiler)}{hint}"
        raise _malformed_tiler(rule, where)
    value = integer(tiler, "tiler", "LA141")
    if value < 0:
        raise _malformed_tiler(f"an integer tiler must be >= 0, not {value}", where)
    return value


def _malformed_tiler(because: str, where: Where) -> MalformedError:
    return MalformedError(
        Diagnostic(code="LA141", what="the tiler is malformed", where=(_call(where),), because=because)
    )


def _call(where: Where) -> str:
    return where if isinstance(where, str) else where()


def by_mode(layout: CuteLayout, tiler: tuple[Tiler, ...], where: Where) -> None:
    """Refuse a tuple tiler with more entries than the layout has modes.

    Raises: MalformedError: LA141.
    """
    if isinstance(layout.shape, int) or len(tiler) > layout.rank:
        modes = "an int shape, no tuple of modes" if isinstance(layout.shape, int) else f"{layout.rank} modes"
        raise _malformed_tiler(f"a tuple of {len(tiler)} tilers does not fit {layout}, which has {modes}", where)


def as_layout(tiler: CuteLayout | int) -> CuteLayout:
    """Return the layout a leaf of a tiler stands for.

    Example:
        >>> print(as_layout(4), as_layout(CuteLayout(2, 3)))
        4:1 2:3
    """
    return tiler if isinstance(tiler, CuteLayout) else CuteLayout(tiler, 1)


def lift(layout: AnyLayout, operation: Callable[[CuteLayout], CuteLayout], name: str = "this operation") -> AnyLayout:
    """Return ``operation``, which only rearranges the domain, applied to a layout of any family.

    Args:
        layout: A CuTe layout, one under swizzles and offsets, or a coordinate layout.
        operation: What to do with a CuTe layout.
        name: How users call it, for messages.

    Raises: MalformedError: LA192.

    Example:
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(lift(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 2))), lambda base: base[1]))
        Sw<1,0,1> o 0 o 2:2
    """
    if isinstance(layout, CuteLayout):
        return operation(layout)
    if isinstance(layout, ComposedLayout):
        return layout.rebase(operation(layout.base))
    if isinstance(layout, CoordinateLayout):
        return layout.compose(operation(CuteLayout(layout.shape)))
    raise operand_refusal(layout, name, "layout", FAMILIES)


def refusal(
    code: str, what: str, where: Where, because: str, witness: Mapping[str, object] | None = None
) -> AdmissibilityError:
    """Return the refusal of an operation that is undefined on its operands."""
    return AdmissibilityError(Diagnostic(code=code, what=what, where=(_call(where),), because=because, witness=witness))


def within(error: LayoutError, where: Where, code: str | None = None, what: str | None = None) -> LayoutError:
    """Return the same refusal as seen from the call ``where`` that led to it.

    Example:
        >>> print(within(refusal("LA131", "empty", "complement(0:1, 4)", "no offsets"), "logical_divide(4:1, 0:1)"))
        LA131 empty
          in     logical_divide(4:1, 0:1)
                 complement(0:1, 4)
          since  no offsets
    """
    old = error.diagnostic
    return type(error)(
        Diagnostic(
            code=code or old.code,
            what=what or old.what,
            where=(_call(where), *old.where),
            because=old.because,
            witness=old.witness,
            repairs=old.repairs,
            source=old.source,
        )
    )
