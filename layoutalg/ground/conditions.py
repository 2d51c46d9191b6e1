"""Conditions on symbolic sizes: equations, inequalities and divisibility of polynomials.

Notation: ``M % 64 == 0``, ``N >= 64``, ``M != N``; chains such as ``64 <= M < 128`` are several conditions.

A condition is true or false at every assignment of integers to its names; division by 0 makes it false.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from layoutalg.ground.lazy import later
from layoutalg.ground.polynomial import (
    ONE,
    TERM_CHARACTERS,
    Polynomial,
    malformed,
    named,
    names_of,
    require_names,
    sizes_of,
    trusted,
    value_at,
)
from layoutalg.ground.polynomial_text import PolynomialLike, Reader, parsed, polynomial

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")

Kind: TypeAlias = Literal["zero", "nonzero", "nonnegative", "integral"]
KINDS = ("zero", "nonzero", "nonnegative", "integral")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Condition:
    """A condition on a polynomial: it is 0, is not 0, is at least 0, or is an integer.

    Args:
        kind: ``"zero"``, ``"nonzero"``, ``"nonnegative"`` or ``"integral"``.
        value: The polynomial, reduced to lowest terms so that equivalent conditions usually compare equal.

    Example:
        >>> Condition("integral", polynomial("M/64")), Condition("nonnegative", polynomial("M/2 - 4"))
        (condition('M % 64 == 0'), condition('M >= 8'))
    """

    kind: Kind
    value: Polynomial

    def __init__(self, kind: Kind, value: PolynomialLike) -> None:
        if not isinstance(kind, str) or kind not in KINDS:
            raise malformed("kind", f"must be one of {', '.join(KINDS)}", kind)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "value", _lowest(kind, polynomial(value)))

    @property
    def names(self) -> frozenset[str]:
        """The names that occur."""
        return self.value.names

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the condition holds at ``sizes``; dividing by 0 makes it false."""
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        return self.true_at(values)

    def true_at(self, sizes: Mapping[str, int]) -> bool:
        """Like ``holds``, without checking the sizes."""
        try:
            value = value_at(self.value, sizes)
        except ZeroDivisionError:
            return False
        match self.kind:
            case "zero":
                return value == 0
            case "nonzero":
                return value != 0
            case "nonnegative":
                return value >= 0
            case "integral":
                return value.denominator == 1

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the sympy relation; names missing from ``symbols`` become positive integer symbols."""
        if self.kind == "integral":
            above, below = self.value.split()
            return sympy.Eq(sympy.Mod(above.to_sympy(symbols), below.to_sympy(symbols)), 0)
        left = self._gains()
        relation = {"zero": sympy.Eq, "nonzero": sympy.Ne, "nonnegative": sympy.Ge}[self.kind]
        return relation(left.to_sympy(symbols), (left - self.value).to_sympy(symbols))

    _sympy_ = to_sympy

    def _repr_latex_(self) -> str:
        return f"${sympy.latex(self.to_sympy())}$"

    def _gains(self) -> Polynomial:
        return trusted(tuple([(monomial, value) for monomial, value in self.value.monomials if value > 0]))

    def __str__(self) -> str:
        if self.kind == "integral":
            above, below = self.value.split()
            return f"{_factor(above)} % {_factor(below)} == 0"
        sign = {"zero": "==", "nonzero": "!=", "nonnegative": ">="}[self.kind]
        left = self._gains()
        return f"{left} {sign} {left - self.value}"

    def __repr__(self) -> str:
        return f"condition({str(self)!r})"


def _factor(value: Polynomial) -> str:
    text = str(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _lowest(kind: Kind, value: Polynomial) -> Polynomial:
    """Return an equivalent polynomial in lowest terms: coprime integer coefficients, or coefficients in [0, 1)."""
    if kind == "integral":
        kept = [
            (monomial, coefficient % 1 if all(power > 0 for _, power in monomial) else coefficient)
            for monomial, coefficient in value.monomials
        ]
        return trusted(tuple([(monomial, coefficient) for monomial, coefficient in kept if coefficient]))
    if not value.monomials:
        return value
    factor = 1 / value.content()
    if kind != "nonnegative" and value.monomials[-1][1] < 0:
        factor = -factor
    return Polynomial(tuple([(monomial, coefficient * factor) for monomial, coefficient in value.monomials]))


def conditions(value: Any) -> tuple[Condition, ...]:
    """Return the conditions in a text, possibly a chain such as ``64 <= M <= 128``, or of a ``Condition``.

    Example:
        >>> conditions("64 <= M < 128")
        (condition('M >= 64'), condition('127 >= M'))
    """
    if isinstance(value, Condition):
        return (value,)
    if hasattr(value, "free_symbols") and hasattr(value, "rel_op"):
        return (_compare(polynomial(value.lhs), str(value.rel_op), polynomial(value.rhs), str(value)),)
    if not isinstance(value, str):
        raise malformed("condition", "must be a Condition or text such as 'M % 16 == 0'", value)
    return _read(value)


@lru_cache(maxsize=256)
def _read(value: str) -> tuple[Condition, ...]:
    tree = parsed(value, "condition", "a comparison")
    reader = Reader(value, "condition")
    if not isinstance(tree, ast.Compare):
        raise malformed("condition", "must be a comparison", value)
    sides = [tree.left, *tree.comparators]
    found: list[Condition] = []
    for left, operator, right in zip(sides, tree.ops, sides[1:], strict=False):
        sign = _SIGNS.get(type(operator))
        if sign is None:
            raise malformed("condition", "may compare with == != >= <= > < only", value)
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            if sign != "==":
                raise malformed("condition", "must compare remainders with == only", value)
            remainder = reader.read(left.left) - reader.read(right)
            found.append(divisible(remainder, reader.read(left.right)))
        else:
            found.append(_compare(reader.read(left), sign, reader.read(right), value))
        if len(str(found[-1])) > TERM_CHARACTERS:
            rule = f"must have at most {TERM_CHARACTERS} characters once multiplied out"
            raise malformed("condition", rule, f"{len(str(found[-1]))} characters")
    return tuple(found)


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.GtE: ">=",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.Lt: "<",
}


def _compare(left: Polynomial, sign: str, right: Polynomial, text: str) -> Condition:
    if sign in ("==", "!="):
        return Condition("zero" if sign == "==" else "nonzero", left - right)
    gap = Condition("nonnegative", left - right if sign[0] == ">" else right - left)
    if sign in (">=", "<="):
        return gap
    if sign not in (">", "<"):
        raise malformed("condition", "may compare with == != >= <= > < only", text)
    if not gap.value.whole:
        raise malformed("condition", "may be strict only between integers; use >= or <=", text)
    return Condition("nonnegative", gap.value - 1)


def condition(value: object) -> Condition:
    """Return the single condition in a text."""
    found = conditions(value)
    if len(found) != 1:
        raise malformed("condition", "must be one comparison, not a chain", value)
    return found[0]


def divisible(value: PolynomialLike, divisor: PolynomialLike) -> Condition:
    """Return the condition that ``divisor`` divides ``value``."""
    quotient = polynomial(value).quotient(polynomial(divisor))
    if quotient is None:
        raise malformed(
            "divisor", f"must be one product, or divide {polynomial(value)} exactly", str(polynomial(divisor))
        )
    return Condition("integral", quotient)


def at_least(value: Polynomial, bound: Polynomial | int) -> Condition:
    """Return the condition value >= bound."""
    return Condition("nonnegative", value - bound)


def equal(left: Polynomial, right: Polynomial) -> Condition:
    """Return the condition left == right."""
    return Condition("zero", left - right)


@dataclass(frozen=True, slots=True)
class Known:
    """Known conditions. Names not listed in ``integers`` are >= 1. See ``Assumptions``."""

    conditions: tuple[Condition, ...]
    integers: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names in the conditions."""
        return names_of([entry.value for entry in self.conditions])

    def broken_at(self, sizes: Mapping[str, int]) -> Condition | None:
        """Return the first condition that fails at ``sizes`` (not checked), or None."""
        for name in sorted(sizes):
            if name not in self.integers and sizes[name] < 1:
                return Condition("nonnegative", named(name) - ONE)
        for entry in self.conditions:
            if not entry.true_at(sizes):
                return entry
        return None
