"""Symbolic sizes: sums of rational multiples of products of named integers, in one normal form.

Main definitions: ``Term``, ``term``, ``value_at``, ``ZERO``, ``ONE``.

Notation: ``M*N/64 - 3``. Names stand for integers. A name may be divided by (``M/K``); the term then only has a value
where that name is not 0. Whether a value is an integer is a side condition of its own, never assumed.

Main statements: a term is a Laurent polynomial with rational coefficients, held as sorted monomials without zero
coefficients. Two terms are equal as values if and only if they agree at all positive integers where both are defined.

Implementation notes: text is read through Python's own expression grammar and never evaluated. Exponents, monomials
and the bits of coefficients are bounded wherever a term is made, and so is the work of reading one. sympy is imported
only to convert from and to its expressions.
"""

from __future__ import annotations

import ast
import keyword
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from layoutalg.cute.inttuple import malformed
from layoutalg.ground import clock, limits
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.text import expression_tree

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Pairs of a name and its exponent, sorted by name; no exponent is 0."""

TermLike: TypeAlias = Any
"""What ``term`` reads: a ``Term``, an integer, text such as ``"M/64"`` or a sympy expression."""


class WorkDoneError(Exception):
    """The steps of a meter are used up."""


class _Meter:
    def __init__(self, steps: int) -> None:
        self.left = steps


_meter: ContextVar[_Meter | None] = ContextVar("layoutalg_term_meter", default=None)


@contextmanager
def metered(steps: int) -> Iterator[None]:
    """Run a block that may take so many steps; a product of terms takes one per pair of monomials, or more.

    Raises: WorkDoneError: the block wants more.
    """
    token = _meter.set(_Meter(steps))
    try:
        yield
    finally:
        _meter.reset(token)


def take(steps: int = 1) -> None:
    """Take steps from the meter that holds here, if any, and ask the clock.

    Raises: WorkDoneError: The meter has no more. BudgetError: LA001.
    """
    clock.check("arithmetic on symbolic sizes")
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise WorkDoneError


@dataclass(frozen=True, slots=True, repr=False)
class Term:
    """A symbolic integer such as ``M*N/64 - 3``.

    Mathematically: the sum of coefficient times the product of name^exponent over its monomials.

    Args:
        monomials: (monomial, coefficient) pairs in increasing order, no coefficient 0. Use ``term`` to make one.

    Raises: MalformedError: LA620.

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
            if not (isinstance(entry, tuple) and len(entry) == 2 and type(entry[1]) is Fraction and entry[1]):
                raise malformed("monomials", "must be pairs of a monomial and a fraction other than 0", entry, "LA620")
            if not _is_monomial(entry[0]):
                rule = "must hold pairs of a name and an exponent other than 0, names increasing"
                raise malformed("monomials", rule, entry[0], "LA620")
        if any(left[0] >= right[0] for left, right in pairwise(self.monomials)):
            raise malformed("monomials", "must increase strictly", self.monomials, "LA620")
        _bounded(self.monomials)

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

        Raises: MalformedError: LA623. AdmissibilityError: LA663.

        Example:
            >>> term("M/4").value({"M": 6})
            Fraction(3, 2)
        """
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        try:
            return value_at(self, values)
        except ZeroDivisionError:
            zeros = sorted({name for key, _ in self.monomials for name, power in key if power < 0 and not values[name]})
            raise no_value(str(self), f"it divides by {zeros[0]}, which is 0", self, values) from None

    def replace(self, values: Mapping[str, Term]) -> Term:
        """Return the term with names replaced by terms; a name divided by may only become a single monomial.

        Raises: MalformedError: LA620.

        Example:
            >>> print(term("M*N + M").replace({"M": term("2*K")}))
            2*K*N + 2*K
        """
        if not isinstance(values, Mapping) or not all(isinstance(entry, Term) for entry in values.values()):
            raise malformed("values", "must map names to terms", values, "LA620")
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
            scale = common_multiple(scale, coefficient.denominator)
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
        divisor = term(divisor)
        if not divisor.monomials:
            return None
        if len(divisor.monomials) == 1:
            return self / divisor
        rest, answer = self, ZERO
        (lead, weight) = max(divisor.monomials, key=_degree_order)
        with suppress(WorkDoneError), metered(limits.TERM_STEPS):
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
        take(1 + (len(self.monomials) + len(addend.monomials)) // 8)
        sums = dict(self.monomials)
        for monomial, coefficient in addend.monomials:
            known = sums.get(monomial)
            sums[monomial] = coefficient if known is None else known + coefficient
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
        if len(self.monomials) * len(factor.monomials) > limits.TERM_MONOMIALS:
            rule = f"must stay below {limits.TERM_MONOMIALS} monomials"
            raise malformed("term", rule, f"{len(self.monomials)} times {len(factor.monomials)} of them", "LA620")
        widest = max([_bits(coefficient) for _, coefficient in (*self.monomials, *factor.monomials)], default=0)
        take(1 + len(self.monomials) * len(factor.monomials) * (1 + widest // 256))
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

        Raises: MalformedError: LA620.

        Example:
            >>> term("M*N/64").to_sympy()
            M*N/64
        """
        import sympy

        if symbols is not None and not (
            isinstance(symbols, Mapping) and all(isinstance(entry, sympy.Expr) for entry in symbols.values())
        ):
            raise malformed("symbols", "must map names to sympy expressions", symbols, "LA620")
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
    """Return the term of a monomial map; monomials must be normal."""
    entries = tuple(sorted([(monomial, coefficient) for monomial, coefficient in sums.items() if coefficient]))
    _bounded(entries)
    return trusted(entries)


def trusted(monomials: tuple[tuple[Monomial, Fraction], ...]) -> Term:
    """Return the term of monomials that are known to be in normal form and within the limits."""
    answer = object.__new__(Term)
    object.__setattr__(answer, "monomials", monomials)
    return answer


def _bounded(entries: tuple[tuple[Monomial, Fraction], ...]) -> None:
    """Refuse more monomials, or coefficients of more bits, than a term may have."""
    if len(entries) > limits.TERM_MONOMIALS:
        rule = f"must have at most {limits.TERM_MONOMIALS} monomials"
        raise malformed("term", rule, f"{len(entries)} of them", "LA620")
    for _, coefficient in entries:
        if _bits(coefficient) > limits.TERM_BITS:
            rule = f"must have coefficients of at most {limits.TERM_BITS} bits"
            raise malformed("term", rule, f"{_bits(coefficient)} bits", "LA620")


def _bits(coefficient: Fraction) -> int:
    return max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length())


def _is_monomial(value: object) -> bool:
    """Return whether this is a tuple of (name, exponent) pairs in normal form."""
    if not isinstance(value, tuple) or not all(isinstance(entry, tuple) and len(entry) == 2 for entry in value):
        return False
    powers = [power for _, power in value]
    names = [name for name, _ in value]
    return (
        all(type(power) is int and 0 < abs(power) <= limits.TERM_EXPONENT for power in powers)
        and all(is_name(name) for name in names)
        and all(left < right for left, right in pairwise(names))
    )


def common_multiple(first: int, second: int) -> int:
    """Return the least common multiple of denominators.

    Raises: MalformedError: LA620.
    """
    answer = math.lcm(first, second)
    if answer.bit_length() > limits.TERM_BITS:
        rule = f"must have a common denominator of at most {limits.TERM_BITS} bits"
        raise malformed("term", rule, f"{answer.bit_length()} bits", "LA620")
    return answer


def value_at(value: Term, sizes: Mapping[str, int]) -> Fraction:
    """Return the exact value at sizes that are known to be integers, one per name.

    Raises: ZeroDivisionError: A name that is divided by is 0.
    """
    whole, broken = 0, Fraction(0)
    for monomial, coefficient in value.monomials:
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


def whole_at(value: Term, sizes: Mapping[str, int], where: str) -> int:
    """Return the value at sizes that are known to be integers, one per name, where it is an integer itself.

    Raises: AdmissibilityError: LA663.
    """
    try:
        found = value_at(value, sizes)
    except ZeroDivisionError:
        zeros = sorted({name for key, _ in value.monomials for name, power in key if power < 0 and not sizes[name]})
        raise no_value(where, f"{value} divides by {zeros[0]}, which is 0", value, sizes) from None
    if found.denominator != 1:
        raise no_value(where, f"{value} is {found}, which is not an integer", value, sizes)
    return int(found)


def no_value(where: str, because: str, value: Term, sizes: Mapping[str, int]) -> AdmissibilityError:
    """Return the error for a term without a value, or without one that is an integer."""
    witness: dict[str, object] = {name: sizes[name] for name in sorted(value.names)}
    return AdmissibilityError(Diagnostic("LA663", "the term has no value at these sizes", (where,), because, witness))


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
        if abs(powers[name]) > limits.TERM_EXPONENT:
            rule = f"must have exponents up to {limits.TERM_EXPONENT}"
            raise malformed("term", rule, f"{name}**{powers[name]}", "LA620")
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

    Raises: MalformedError: LA620.

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

    Raises: MalformedError: LA620.

    Example:
        >>> name_of("M")
        'M'
    """
    text = value if isinstance(value, str) else getattr(value, "name", None)
    if not is_name(text):
        raise malformed("symbol", "must be a name", value, "LA620")
    return text  # type: ignore[return-value]


def is_name(value: object) -> bool:
    """Return whether this is a name that text may use: an identifier, not a keyword of Python.

    Example:
        >>> is_name("M"), is_name("2M"), is_name("lambda"), is_name(None)
        (True, False, False, False)
    """
    return (
        isinstance(value, str)
        and len(value) <= limits.TERM_CHARACTERS
        and value.isidentifier()
        and not keyword.iskeyword(value)
        and unicodedata.normalize("NFKC", value) == value
    )


def sizes_of(values: Mapping[Any, int], code: str = "LA623") -> dict[str, int]:
    """Return a checked map from names to integers; keys may be sympy symbols.

    Raises: MalformedError: ``code``, a key is not a name or a value is not an integer (of bounded size).

    Example:
        >>> sizes_of({"M": np.int64(4)})
        {'M': 4}
    """
    if not isinstance(values, Mapping):
        raise malformed("sizes", "must map names to integers", values, code)
    answer: dict[str, int] = {}
    for key, value in values.items():
        name = key if isinstance(key, str) else getattr(key, "name", None)
        if not is_name(name):
            raise malformed("sizes", "must map names to integers", key, code)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise malformed(f"sizes[{name!r}]", "must be an integer", value, code)
        if int(value).bit_length() > limits.TERM_BITS:
            raise malformed(f"sizes[{name!r}]", f"must have at most {limits.TERM_BITS} bits", value, code)
        answer[name] = int(value)  # type: ignore[index]
    return answer


def require_names(names: Iterable[str], sizes: Mapping[str, int], where: str) -> None:
    """Refuse sizes that leave out a name.

    Raises: MalformedError: LA623.
    """
    if missing := sorted(set(names) - sizes.keys()):
        raise sizes_do_not_fit(where, f"it needs a size for {', '.join(missing)}")


def sizes_do_not_fit(where: str, because: str) -> MalformedError:
    """Return the error for sizes that lack a name or have one too many."""
    return MalformedError(Diagnostic("LA623", "the sizes do not fit the layout", (where,), because))


def _read(text: str) -> Term:
    answer = Reader(text, "term").read(parsed(text, "term", "an arithmetic expression"))
    if len(str(answer)) > limits.TERM_CHARACTERS:
        rule = f"must have at most {limits.TERM_CHARACTERS} characters once multiplied out"
        raise malformed("term", rule, f"{len(str(answer))} characters", "LA620")
    return answer


def parsed(text: str, argument: str, kind: str) -> ast.expr:
    """Return the syntax tree of one expression.

    Raises: MalformedError: LA620.
    """
    if len(text) > limits.TERM_CHARACTERS:
        rule = f"must have at most {limits.TERM_CHARACTERS} characters"
        raise malformed(argument, rule, f"{len(text)} characters", "LA620")
    tree = expression_tree(text)
    if tree is None:
        raise malformed(argument, f"must be {kind}", text, "LA620")
    return tree


class Reader:
    """Turns syntax trees into terms with a bounded amount of work.

    Args:
        text: The text, for messages.
        argument: What it is, for messages.
    """

    def __init__(self, text: str, argument: str) -> None:
        self.text, self.argument, self.depth = text, argument, 0

    def refusal(self, rule: str) -> MalformedError:
        """Return the error that names the rule and the text."""
        return malformed(self.argument, rule, self.text, "LA620")

    def read(self, tree: ast.expr) -> Term:
        """Return the term of a tree.

        Raises: MalformedError: LA620.
        """
        with self.bounded():
            return self.term(tree)

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Run a block that makes the term; too much work is refused."""
        try:
            with metered(limits.TERM_STEPS):
                yield
        except WorkDoneError:
            raise self.refusal("must take less work to multiply out") from None

    def term(self, tree: ast.expr) -> Term:
        """Return the term of a tree, one level deeper."""
        self.depth += 1
        if self.depth > limits.TERM_DEPTH:
            raise self.refusal(f"may nest at most {limits.TERM_DEPTH} deep")
        try:
            return self._term(tree)
        finally:
            self.depth -= 1

    def _term(self, tree: ast.expr) -> Term:
        match tree:
            case ast.Constant(value=value) if type(value) is int:
                return term(value)
            case ast.Name(id=name):
                return trusted(((((name, 1),), Fraction(1)),))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.term(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.term(operand)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self._sum(tree)
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                return self._product(tree)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)) if type(power) is int:
                if not 0 <= power <= limits.TERM_EXPONENT:
                    raise self.refusal(f"must have exponents from 0 to {limits.TERM_EXPONENT}")
                return self.power(self.term(left), power)
        raise self.refusal("may use integers, names, + - * / and ** only")

    def power(self, base: Term, exponent: int) -> Term:
        """Return a power with an exponent of at least 0."""
        answer = ONE
        for _ in range(exponent):
            answer = answer * base
        return answer

    def _sum(self, tree: ast.expr) -> Term:
        """Return a chain of sums and differences, which leans to the left, without going down one level per part."""
        parts: list[Term] = []
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
            part = self.term(tree.right)
            parts.append(part if isinstance(tree.op, ast.Add) else -part)
            tree = tree.left
        return _added([self.term(tree), *parts])

    def _product(self, tree: ast.expr) -> Term:
        factors: list[tuple[bool, ast.expr]] = []
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)):
            factors.append((isinstance(tree.op, ast.Div), tree.right))
            tree = tree.left
        answer = self.term(tree)
        for divides, right in reversed(factors):
            factor = self.term(right)
            answer = answer / factor if divides else answer * factor
        return answer


def _added(parts: Iterable[Term]) -> Term:
    """Return the sum of terms."""
    sums: dict[Monomial, Fraction] = {}
    for part in parts:
        take(1 + len(part.monomials) // 8)
        for monomial, coefficient in part.monomials:
            known = sums.get(monomial)
            sums[monomial] = coefficient if known is None else known + coefficient
    return _make(sums)


def _from_sympy(value: Any) -> Term:
    reader = Reader(shown(value), "term")

    def walk(part: Any, depth: int) -> Term:
        if depth > limits.TERM_DEPTH:
            raise reader.refusal(f"may nest at most {limits.TERM_DEPTH} deep")
        if part.is_Rational:
            return _make({(): Fraction(int(part.p), int(part.q))})
        if part.is_Symbol:
            return trusted(((((name_of(part), 1),), Fraction(1)),))
        if part.is_Add:
            return _added([walk(entry, depth + 1) for entry in part.args])
        if part.is_Mul:
            answer = ONE
            for entry in part.args:
                factor = walk(entry, depth + 1)
                answer = answer * factor
            return answer
        if part.is_Pow and part.exp.is_Integer:
            exponent = int(part.exp)
            if abs(exponent) > limits.TERM_EXPONENT:
                raise reader.refusal(f"must have exponents up to {limits.TERM_EXPONENT}")
            power = reader.power(walk(part.base, depth + 1), abs(exponent))
            return power if exponent > 0 else ONE / power
        raise reader.refusal("may be a sum of products of integers and symbols only")

    with reader.bounded():
        return walk(value, 0)


def names_of(values: Iterable[Term]) -> frozenset[str]:
    """Return the names in any of the terms.

    Example:
        >>> sorted(names_of([term("M*N"), term("K")]))
        ['K', 'M', 'N']
    """
    return frozenset().union(*[value.names for value in values])
