"""Functions and their guards as sympy expressions; sympy is imported on use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.ground.lazy import later
from layoutalg.piecewise.pieces import Form, Region
from layoutalg.piecewise.points import check
from layoutalg.piecewise.value import Value

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")


def symbols_of(names: Sequence[str], symbols: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a sympy symbol per name: the caller's, else a new integer symbol."""
    given = {} if symbols is None else check.kind(symbols, Mapping, "symbols")  # type: ignore[type-abstract]
    return {name: sympy.Symbol(name, integer=True) for name in names} | dict(given)


def pieces(value: Value, symbols: Mapping[str, Any]) -> list[tuple[list[Any], Any]]:
    """Return, per piece of a function, its outputs as expressions and its guard.

    Args:
        value: The function.
        symbols: sympy symbol of every axis and parameter.

    Example:
        >>> from layoutalg.piecewise import PiecewiseLayout
        >>> L = PiecewiseLayout("[N] -> { [i] -> [floor(i/2) + N] : 0 <= i < N }")
        >>> pieces(L.value, symbols_of(("N", "i"), None))
        [([N + floor(i/2)], (i >= 0) & (N - i - 1 >= 0))]
    """
    dims = [symbols[name] for name in (*value.params, *value.axes)]
    found = []
    for piece in value.pieces:
        guard = sympy.Or(*[_guard(region, dims) for region in piece.regions])
        found.append(([_total(form, dims, _floors(floors, dims)) for floors, form in piece.outputs], guard))
    return found


def piecewise(found: Sequence[tuple[Any, Any]], otherwise: Any = None) -> Any:
    """Return a sympy ``Piecewise`` of (expression, condition) pairs; elsewhere ``otherwise``, nan if that is None."""
    rest = sympy.nan if otherwise is None else otherwise
    return sympy.Piecewise(*found, (rest, True), evaluate=False) if found else rest


def _guard(region: Region, dims: Sequence[Any]) -> Any:
    floors = _floors(region.floors, dims)
    return sympy.And(
        *[
            (sympy.Eq if is_equality else sympy.Ge)(_total(form, dims, floors), 0)
            for form, is_equality in region.constraints
        ]
    )


def _floors(forms: Sequence[Form], dims: Sequence[Any]) -> list[Any]:
    known: list[Any] = []
    for form in forms:
        known.append(sympy.floor(_total(form, dims, known)))
    return known


def _total(form: Form, dims: Sequence[Any], floors: Sequence[Any]) -> Any:
    parts = zip((*form.dims, *form.floors), (*dims, *floors), strict=False)
    return sympy.Add(*[a * part for a, part in parts if a], form.constant) / form.denominator
