"""Tilers of symbolic layouts, and the joint conditions of operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.symbolic.layout import SymbolicLayout, symbolic
from layoutalg.cute.symbolic.ledger import Ledger, Nested, leaves
from layoutalg.ground.assumptions import Assumptions, SideCondition
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES
from layoutalg.ground.polynomial import Polynomial
from layoutalg.ground.polynomial_text import PolynomialLike

Operand: TypeAlias = "SymbolicLayout | CuteLayout"
Tiler: TypeAlias = "SymbolicLayout | CuteLayout | PolynomialLike | tuple[Tiler, ...] | None"
Piece: TypeAlias = "tuple[Nested, Nested, Ledger]"
"""Shape, stride and the ledger under which they are valid."""


def _shared(first: Assumptions, second: Assumptions, names: tuple[frozenset[str], frozenset[str]]) -> Assumptions:
    """Merge two assumptions; a name that is a size on either side stays a size."""
    sizes = (names[0] - set(first.integers)) | (names[1] - set(second.integers))
    signed = [name for name in (*first.integers, *second.integers) if name not in sizes]
    return Assumptions((*first.conditions, *second.conditions), signed)


def ledger_of(operands: Iterable[SymbolicLayout], where: str) -> Ledger:
    """Return the ledger of an operation with the assumptions and conditions of its operands."""
    known, names = Assumptions(), frozenset[str]()
    entries: list[SideCondition] = []
    for operand in operands:
        used = operand.symbols | operand.assumptions.names
        known = _shared(known, operand.assumptions, (names, used))
        names |= used
        entries += operand.conditions
    return Ledger(known, entries, where)


def bad_tiler(rule: str, actual: object) -> MalformedError:
    """Return the error for a malformed tiler (LA630)."""
    got = actual if isinstance(actual, str) else shown(actual)
    return MalformedError(
        Diagnostic(code="LA630", what="the tiler is malformed", because=f"the tiler {rule}; got {got[:120]}")
    )


def by_mode(operand: SymbolicLayout, tiler: Tiler, name: str, step: Callable[..., Piece]) -> SymbolicLayout:
    """Apply ``step`` to the layout, or to each mode of a tuple tiler."""
    _check_nest(tiler, 0, [0])
    ledger = ledger_of((operand, *_layouts_of(tiler)), f"{name}({operand}, {_tiler_text(tiler)})")

    def walk(shape: Nested, stride: Nested, part: Tiler, ledger: Ledger) -> Piece:
        if part is None:
            return shape, stride, ledger
        if not isinstance(part, tuple):
            mode = tuple(zip(leaves(shape), leaves(stride), strict=True))
            return step(mode, symbolic(part, ledger.assumptions), ledger)
        if isinstance(shape, Polynomial) or isinstance(stride, Polynomial) or len(part) != len(shape):
            raise bad_tiler(f"needs one entry per mode of {operand}", _tiler_text(part))
        shapes: list[Nested] = []
        strides: list[Nested] = []
        for extent, pace, entry in zip(shape, stride, part, strict=True):
            extents, paces, ledger = walk(extent, pace, entry, ledger)
            shapes.append(extents)
            strides.append(paces)
        return tuple(shapes), tuple(strides), ledger

    shape, stride, ledger = walk(operand.shape, operand.stride, tiler, ledger)
    return SymbolicLayout(shape, stride, ledger.assumptions, ledger.conditions)


def _check_nest(tiler: Tiler, level: int, seen: list[int]) -> None:
    """Raise if a tiler nests too deep or has too many entries."""
    seen[0] += 1
    if level > TUPLE_DEPTH or seen[0] > TUPLE_MODES:
        raise bad_tiler(f"must nest at most {TUPLE_DEPTH} deep and have at most {TUPLE_MODES} entries", tiler)
    if isinstance(tiler, tuple):
        for entry in tiler:
            _check_nest(entry, level + 1, seen)


def _layouts_of(tiler: Tiler) -> list[SymbolicLayout]:
    if isinstance(tiler, tuple):
        return [layout for entry in tiler for layout in _layouts_of(entry)]
    return [tiler] if isinstance(tiler, SymbolicLayout) else []


def _tiler_text(tiler: Tiler) -> str:
    if isinstance(tiler, tuple):
        return "(" + ",".join([_tiler_text(entry) for entry in tiler]) + ")"
    return (
        "_" if tiler is None else str(tiler) if isinstance(tiler, SymbolicLayout | CuteLayout | str) else shown(tiler)
    )
