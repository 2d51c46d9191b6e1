"""Functions and guards of ISL texts as sympy expressions.

Implementation notes: the text is parsed by ``layoutalg.piecewise.meaning``, without ISL; sympy is imported on use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.lazy import later
from layoutalg.piecewise.clauses import Clause, Condition, Linear
from layoutalg.piecewise.meaning import read

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")


def symbols_of(names: Sequence[str], symbols: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a sympy symbol per name: the caller's, else a new integer symbol."""
    return {name: sympy.Symbol(name, integer=True) for name in names} | dict(symbols or {})


def pieces(text: str, axes: Sequence[str], symbols: Mapping[str, Any]) -> list[tuple[list[Any], Any]]:
    """Return, per clause of a function, its outputs as expressions and its guard.

    Args:
        text: ISL text.
        axes: Names of the axes.
        symbols: sympy symbol of every axis and parameter.

    Raises: RepresentabilityError: LA795.

    Example:
        >>> pieces("[N] -> { [i] -> [floor(i/2) + N] : 0 <= i < N }", ("i",), symbols_of(("N", "i"), None))
        [([N + floor(i/2)], (i >= 0) & (N - i - 1 >= 0))]
    """
    return [_piece(clause, text, axes, symbols) for clause in read(text).clauses]


def piecewise(found: Sequence[tuple[Any, Any]], otherwise: Any = None) -> Any:
    """Return a sympy ``Piecewise`` of (expression, condition) pairs; elsewhere ``otherwise``, nan if that is None."""
    rest = sympy.nan if otherwise is None else otherwise
    return sympy.Piecewise(*found, (rest, True), evaluate=False) if found else rest


def _piece(clause: Clause, text: str, axes: Sequence[str], symbols: Mapping[str, Any]) -> tuple[list[Any], Any]:
    known: list[Any] = []

    def total(linear: Linear) -> Any:
        if any(known[atom] is None for atom, _ in linear.terms):
            because = "a quantified integer has no expression in the axes and parameters"
            raise RepresentabilityError(Diagnostic("LA795", "the text has no sympy form", (text[:200],), because))
        parts = [factor * known[atom] for atom, factor in linear.terms]
        return sympy.Add(*parts, linear.constant) / linear.denominator

    for atom in clause.atoms:
        match atom.kind:
            case "variable" if atom.name.startswith("#"):
                place = int(atom.name[1:])
                known.append(symbols[axes[place]] if place < len(axes) else None)
            case "variable":
                known.append(symbols.get(atom.name))
            case "floor":
                known.append(sympy.floor(total(atom.sums[0])))
            case "mod":
                known.append(sympy.Mod(total(atom.sums[0]), atom.modulus))
            case _:
                rule = sympy.Min if atom.kind == "min" else sympy.Max
                known.append(rule(*[total(entry) for entry in atom.sums]))

    def condition(part: Condition) -> Any:
        match part[0]:
            case "all" | "any":
                return (sympy.And if part[0] == "all" else sympy.Or)(*[condition(entry) for entry in part[1]])
            case "not":
                return sympy.Not(condition(part[1]))
            case "zero":
                return sympy.Eq(total(part[1]), 0)
            case "least":
                return sympy.Ge(total(part[1]), 0)
        because = "a condition with a quantified integer has no sympy form"
        raise RepresentabilityError(Diagnostic("LA795", "the text has no sympy form", (text[:200],), because))

    guard = condition(clause.condition)
    return [total(place) for place in clause.places[clause.inputs :]], guard
