"""Symbolic sizes: sums of rational multiples of products of named integers, in one normal form.

Main definitions: ``Term``, ``term``, ``ZERO``, ``ONE``.

Notation: ``M*N/64 - 3``. Names stand for integers. A name may be divided by (``M/K``); the term then only has a value
where that name is not 0. Whether a value is an integer is a side condition of its own, never assumed.

Main statements: a term is a Laurent polynomial with rational coefficients, held as sorted monomials without zero
coefficients. Two terms are equal as values if and only if they agree at all positive integers where both are defined.

Implementation notes: text is read through Python's own expression grammar and never evaluated. sympy is imported only
to convert from and to its expressions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from layoutalg.errors import MalformedError
from layoutalg.inttuple import malformed

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Pairs of a name and its exponent, sorted by name; no exponent is 0."""

TermLike: TypeAlias = Any
"""What ``term`` reads: a ``Term``, an integer, text such as ``"M/64"`` or a sympy expression."""

MAX_EXPONENT = 16
MAX_MONOMIALS = 2_000
MAX_TEXT = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class Term:
    """A symbolic integer such as ``M*N/64 - 3``.

    Mathematically: the sum of coefficient times the product of name^exponent over its monomials.

    Args:
        monomials: (monomial, coefficient) pairs in increasing order, no coefficient 0. Use ``term`` to make one.

    Raises:
        MalformedError: LA620, the monomials are not in normal form.

    Example:
        >>> size = term("M") * term("N") / 64
        >>> print(size, size.value({"M": 128, "N": 3}))
        M*N/64 6
        >>> term("(M + 1)*(M - 1)") == term("M**2 - 1")
        True

    Source: Laurent polynomials over the rationals.
    """

    monomials: tuple[tuple[Monomial, Fraction], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.monomials, tuple):
            raise malformed("monomials", "must be a tuple", self.monomials, "LA620")
        for entry in self.monomials:
            if not (
                isinstance(entry, tuple)
                and len(entry) == 2
                and isinstance(entry[0], tuple)
                and isinstance(entry[1], Fraction)
                and entry[1]
            ):
                raise malformed("monomials", "must be pairs of a monomial and a fraction other than 0", entry, "LA620")
        if list(self.monomials) != sorted(set(self.monomials)) or len({key for key, _ in self.monomials}) != len(
            self.monomials
        ):
            raise malformed("monomials", "must increase strictly", self.monomials, "LA620")

    @property
    def names(self) -> frozenset[str]:
        """The names that occur."""
        return frozenset([name for monomial, _ in self.monomials for name, _ in monomial])

    @property
    def constant(self) -> Fraction | None:
        """The value where no name occurs, else None."""
        if not self.monomials:
            return Fraction(0)
        if len(self.monomials) == 1 and not self.monomials[0][0]:
            return self.monomials[0][1]
        return None

    def as_int(self) -> int | None:
        """Return the value where it is a plain integer without names, else None."""
        value = self.constant
        return int(value) if value is not None and value.denominator == 1 else None

    @property
    def whole(self) -> bool:
        """Whether all coefficients are integers and nothing is divided by a name: an integer at all integers."""
        return all(
            value.denominator == 1 and all(power > 0 for _, power in monomial) for monomial, value in self.monomials
        )

    def value(self, sizes: Mapping[str, int]) -> Fraction:
        """Return the exact value at ``sizes``.

        Raises:
            KeyError: A name has no size.
            ZeroDivisionError: A name that is divided by is 0.

        Example:
            >>> term("M/4").value({"M": 6})
            Fraction(3, 2)
        """
        whole, broken = 0, Fraction(0)
        for monomial, coefficient in self.monomials:
            above, below = coefficient.numerator, coefficient.denominator
            for name, power in monomial:
                if power > 0:
                    above *= sizes[name] ** power
                else:
                    below *= sizes[name] ** -power
            if below == 1:
                whole += above
            else:
                broken += Fraction(above, below)
        return whole + broken

    def replace(self, values: Mapping[str, Term]) -> Term:
        """Return the term with names replaced by terms; a name divided by may only become a single monomial.

        Raises:
            MalformedError: LA620, a sum of several monomials would be divided by.

        Example:
            >>> print(term("M*N + M").replace({"M": term("2*K")}))
            2*K*N + 2*K
        """
        if not self.names & values.keys():
            return self
        total = ZERO
        for monomial, coefficient in self.monomials:
            product = _make({(): coefficient})
            for name, power in monomial:
                if name in values:
                    factor = values[name]
                    factor = factor if power > 0 else ONE / factor
                    for _ in range(abs(power)):
                        product = product * factor
                else:
                    product = product * _make({((name, power),): Fraction(1)})
            total = total + product
        return total

    def split(self) -> tuple[Term, Term]:
        """Return (numerator, denominator): the numerator has integer coefficients and divides by no name.

        Example:
            >>> print(*term("M/6 + N/(4*K)").split(), sep=" over ")
            2*K*M + 3*N over 12*K
        """
        scale = 1
        powers: dict[str, int] = {}
        for monomial, coefficient in self.monomials:
            scale = math.lcm(scale, coefficient.denominator)
            for name, power in monomial:
                if power < 0:
                    powers[name] = max(powers.get(name, 0), -power)
        denominator = _make({tuple(sorted(powers.items())): Fraction(scale)})
        return self * denominator, denominator

    def quotient(self, divisor: Term) -> Term | None:
        """Return the term q with q * divisor = self, or None where none was found.

        A divisor of one monomial always has one; else polynomial division must leave no rest.

        Example:
            >>> print(term("M**2 - 1").quotient(term("M + 1")), term("M").quotient(term("M + 1")))
            M - 1 None
        """
        if not divisor.monomials:
            return None
        if len(divisor.monomials) == 1:
            return self / divisor
        rest, answer = self, ZERO
        (lead, weight) = max(divisor.monomials, key=_degree_order)
        for _ in range(len(self.monomials) * 4 + 4):
            if not rest.monomials:
                return answer
            top, coefficient = max(rest.monomials, key=_degree_order)
            part = _make({_times(top, tuple([(name, -power) for name, power in lead])): coefficient / weight})
            if any(power < 0 for name, power in part.monomials[0][0] if name in divisor.names):
                return None
            answer, rest = answer + part, rest - part * divisor
        return None

    def __add__(self, other: TermLike) -> Term:
        addend = term(other)
        if not addend.monomials:
            return self
        sums = dict(self.monomials)
        for monomial, coefficient in addend.monomials:
            sums[monomial] = sums.get(monomial, Fraction(0)) + coefficient
        return _make(sums)

    __radd__ = __add__

    def __neg__(self) -> Term:
        return _make({monomial: -coefficient for monomial, coefficient in self.monomials})

    def __sub__(self, other: TermLike) -> Term:
        return self + -term(other)

    def __rsub__(self, other: TermLike) -> Term:
        return term(other) + -self

    def __mul__(self, other: TermLike) -> Term:
        factor = term(other)
        if len(self.monomials) * len(factor.monomials) > MAX_MONOMIALS:
            raise malformed("term", f"must stay below {MAX_MONOMIALS} monomials", "a larger product", "LA620")
        sums: dict[Monomial, Fraction] = {}
        for left, a in self.monomials:
            for right, b in factor.monomials:
                key = _times(left, right)
                sums[key] = sums.get(key, Fraction(0)) + a * b
        return _make(sums)

    __rmul__ = __mul__

    def __truediv__(self, other: TermLike) -> Term:
        """Return the term divided by a term of one monomial; the value need not be an integer."""
        divisor = term(other)
        if len(divisor.monomials) != 1:
            raise malformed("divisor", "must be one monomial other than 0", str(divisor), "LA620")
        ((monomial, coefficient),) = divisor.monomials
        inverse = tuple([(name, -power) for name, power in monomial])
        return self * _make({inverse: 1 / coefficient})

    def __str__(self) -> str:
        if not self.monomials:
            return "0"
        parts: list[str] = []
        for monomial, coefficient in sorted(self.monomials, key=_reading_order):
            text = _monomial_text(monomial, abs(coefficient))
            if not parts:
                parts.append(text if coefficient > 0 else f"-{text}")
            else:
                parts.append(f"{'+' if coefficient > 0 else '-'} {text}")
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"term({str(self)!r})"

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the sympy expression; names missing from ``symbols`` become positive integer symbols.

        Example:
            >>> term("M*N/64").to_sympy()
            M*N/64
        """
        import sympy

        known = dict(symbols or {})
        total = sympy.Integer(0)
        for monomial, coefficient in self.monomials:
            part = sympy.Rational(coefficient.numerator, coefficient.denominator)
            for name, power in monomial:
                symbol = known.setdefault(name, sympy.Symbol(name, integer=True, positive=True))
                part = part * symbol**power
            total = total + part
        return total


def _make(sums: Mapping[Monomial, Fraction]) -> Term:
    """Return the term of a monomial map without the checks of the constructor; monomials must be normal."""
    answer = object.__new__(Term)
    entries = sorted([(monomial, coefficient) for monomial, coefficient in sums.items() if coefficient])
    object.__setattr__(answer, "monomials", tuple(entries))
    return answer


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
        if abs(powers[name]) > MAX_EXPONENT:
            raise malformed("term", f"must have exponents up to {MAX_EXPONENT}", f"{name}**{powers[name]}", "LA620")
    return tuple(sorted([(name, power) for name, power in powers.items() if power]))


def _degree_order(entry: tuple[Monomial, Fraction]) -> tuple[int, tuple[tuple[str, int], ...]]:
    return sum([power for _, power in entry[0]]), entry[0]


def _reading_order(entry: tuple[Monomial, Fraction]) -> tuple[bool, int, Monomial]:
    return not entry[0], -sum([power for _, power in entry[0]]), entry[0]


def _monomial_text(monomial: Monomial, coefficient: Fraction) -> str:
    above = [_power_text(name, power) for name, power in monomial if power > 0]
    below = [_power_text(name, -power) for name, power in monomial if power < 0]
    if coefficient.numerator != 1 or not above:
        above.insert(0, str(coefficient.numerator))
    if coefficient.denominator != 1:
        below.insert(0, str(coefficient.denominator))
    text = "*".join(above)
    if not below:
        return text
    return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


def _power_text(name: str, power: int) -> str:
    return name if power == 1 else f"{name}**{power}"


ZERO = _make({})
ONE = _make({(): Fraction(1)})


def term(value: TermLike) -> Term:
    """Return ``value`` as a term.

    Args:
        value: A term, an integer, text with ``+ - * / **`` and names, or a sympy expression of the same operations.

    Raises:
        MalformedError: LA620, anything else: floats, booleans, other functions, division by a sum.

    Example:
        >>> print(term("2*M/64 + 1"), term(7))
        M/32 + 1 7
    """
    if isinstance(value, Term):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return _make({(): Fraction(int(value))})
    if isinstance(value, str):
        return _read(value)
    if hasattr(value, "free_symbols") and hasattr(value, "as_base_exp"):
        return _from_sympy(value)
    raise malformed("term", "must be an integer, a name, text such as 'M/64' or a sympy expression", value, "LA620")


def name_of(value: object) -> str:
    """Return the name of a symbol given as text or as a sympy symbol.

    Raises:
        MalformedError: LA620, not a name.

    Example:
        >>> name_of("M")
        'M'
    """
    text = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(text, str) or not text.isidentifier():
        raise malformed("symbol", "must be a name", value, "LA620")
    return text


def _read(text: str) -> Term:
    if len(text) > MAX_TEXT:
        raise malformed("term", f"must have at most {MAX_TEXT} characters", f"{len(text)} characters", "LA620")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return from_tree(tree, text)
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        if isinstance(error, MalformedError):
            raise
        raise malformed("term", "must be an arithmetic expression", text, "LA620") from error


def from_tree(tree: ast.expr, text: str) -> Term:
    """Return the term of a parsed expression; ``text`` is for messages."""
    match tree:
        case ast.Constant(value=value) if type(value) is int:
            return term(value)
        case ast.Name(id=name):
            return _make({((name, 1),): Fraction(1)})
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -from_tree(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return from_tree(operand, text)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return from_tree(left, text) + from_tree(right, text)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return from_tree(left, text) - from_tree(right, text)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return from_tree(left, text) * from_tree(right, text)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return from_tree(left, text) / from_tree(right, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)) if type(power) is int:
            return _power(from_tree(left, text), power, text)
    raise malformed("term", "may use integers, names, + - * / and ** only", text, "LA620")


def _power(base: Term, power: int, text: str) -> Term:
    if not 0 <= power <= MAX_EXPONENT:
        raise malformed("term", f"must have exponents from 0 to {MAX_EXPONENT}", text, "LA620")
    answer = ONE
    for _ in range(power):
        answer = answer * base
    return answer


def _from_sympy(value: Any) -> Term:
    import sympy

    expression = sympy.expand(value)
    total = ZERO
    for part in sympy.Add.make_args(expression):
        product = ONE
        for factor in sympy.Mul.make_args(part):
            base, power = factor.as_base_exp()
            if isinstance(factor, sympy.Rational):
                product = product * _make({(): Fraction(int(factor.p), int(factor.q))})
            elif isinstance(base, sympy.Symbol) and isinstance(power, sympy.Integer):
                if abs(int(power)) > MAX_EXPONENT:
                    raise malformed("term", f"must have exponents up to {MAX_EXPONENT}", str(value), "LA620")
                product = product * _make({((name_of(base), int(power)),): Fraction(1)})
            else:
                raise malformed("term", "may be a sum of products of integers and symbols only", str(value), "LA620")
        total = total + product
    return total


def names_of(values: Iterable[Term]) -> frozenset[str]:
    """Return the names in any of the terms.

    Example:
        >>> sorted(names_of([term("M*N"), term("K")]))
        ['K', 'M', 'N']
    """
    return frozenset().union(*[value.names for value in values])
