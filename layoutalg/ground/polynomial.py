"""Polynomials in named integers: Laurent polynomials with rational coefficients, in normal form.

Notation: ``M*N/64 - 3``. Names stand for integers. Division by a name (``M/K``) leaves the polynomial undefined where
that name is 0. Integrality is never assumed; it is a separate condition.

Polynomials are stored as sorted monomials without zero coefficients. Two compare equal if and only if they agree at all
positive integers where both are defined. Exponents, monomial counts and coefficient bits are limited on construction.
sympy is imported only by ``to_sympy``.
"""

from __future__ import annotations

import keyword
import math
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.clock import WorkDoneError, charge, metered
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.lazy import later

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")

TERM_CHARACTERS: Final = 10_000
"""characters: the text of a symbolic size or condition, before and after expansion"""

TERM_DEPTH: Final = 100
"""levels: nested parentheses and signs in a symbolic size"""

TERM_MONOMIALS: Final = 2_000
"""monomials: one symbolic size, expanded"""

TERM_EXPONENT: Final = 16
"""exponent: the highest power of a name in a symbolic size"""

TERM_BITS: Final = 8_192
"""bits: numerators and denominators in a symbolic size, and the sizes it is evaluated at"""

TERM_STEPS: Final = 50_000
"""products: monomial pairs multiplied while reading one symbolic size"""


def name_of(value: object, argument: str = "symbol") -> str:
    """Return the name of a symbol given as text or as a sympy symbol."""
    text = value if isinstance(value, str) else getattr(value, "name", None)
    if not is_name(text):
        raise Checker("LA620").malformed(argument, "must be a name", value)
    return str(text)


def is_name(value: object) -> bool:
    """Return whether this is a valid name: an identifier, not a Python keyword."""
    return (
        isinstance(value, str)
        and len(value) <= TERM_CHARACTERS
        and value.isidentifier()
        and not keyword.iskeyword(value)
        and unicodedata.normalize("NFKC", value) == value
    )


def sizes_of(values: Mapping[Any, int], code: str = "LA623") -> dict[str, int]:
    """Return a checked map from names to integers; keys may be sympy symbols.

    Raises: MalformedError: ``code``: a key is not a name, or a value is not an integer or too large.
    """
    check = Checker(code)
    if not isinstance(values, Mapping):
        raise check.malformed("sizes", "must map names to integers", values)
    answer: dict[str, int] = {}
    for key, value in values.items():
        name = key if isinstance(key, str) else getattr(key, "name", None)
        if not is_name(name):
            raise check.malformed("sizes", "must map names to integers", key)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise check.malformed(f"sizes[{name!r}]", "must be an integer", value)
        if int(value).bit_length() > TERM_BITS:
            raise check.malformed(f"sizes[{name!r}]", f"must have at most {TERM_BITS} bits", value)
        answer[name] = int(value)  # type: ignore[index]
    return answer


def require_names(names: Iterable[str], sizes: Mapping[str, int], where: str) -> None:
    """Raise if a name has no size."""
    if missing := sorted(set(names) - sizes.keys()):
        raise sizes_do_not_fit(where, f"missing sizes: {', '.join(missing)}")


def sizes_do_not_fit(where: str, because: str) -> MalformedError:
    """Return the error for missing or unknown names in sizes."""
    return MalformedError(Diagnostic("LA623", "the sizes do not fit the layout", (where,), because))


Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Pairs of a name and its exponent, sorted by name; no exponent is 0."""

malformed = Checker("LA620").malformed


def is_monomial(value: object) -> bool:
    """Return whether ``value`` is a tuple of (name, exponent) pairs in normal form."""
    if not isinstance(value, tuple) or not all(isinstance(entry, tuple) and len(entry) == 2 for entry in value):
        return False
    powers = [power for _, power in value]
    names = [name for name, _ in value]
    return (
        all(type(power) is int and 0 < abs(power) <= TERM_EXPONENT for power in powers)
        and all(is_name(name) for name in names)
        and all(left < right for left, right in pairwise(names))
    )


def common_multiple(first: int, second: int) -> int:
    """Return the least common multiple of two denominators."""
    answer = math.lcm(first, second)
    if answer.bit_length() > TERM_BITS:
        rule = f"must have a common denominator of at most {TERM_BITS} bits"
        raise malformed("polynomial", rule, f"{answer.bit_length()} bits")
    return answer


def times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
        if abs(powers[name]) > TERM_EXPONENT:
            rule = f"must have exponents up to {TERM_EXPONENT}"
            raise malformed("polynomial", rule, f"{name}**{powers[name]}")
    return tuple(sorted([(name, power) for name, power in powers.items() if power]))


def bounded(entries: tuple[tuple[Monomial, Fraction], ...]) -> None:
    """Refuse polynomials with too many monomials or too large coefficients."""
    if len(entries) > TERM_MONOMIALS:
        rule = f"must have at most {TERM_MONOMIALS} monomials"
        raise malformed("polynomial", rule, len(entries))
    for _, coefficient in entries:
        if coefficient.numerator.bit_length() > TERM_BITS or coefficient.denominator.bit_length() > TERM_BITS:
            rule = f"must have coefficients of at most {TERM_BITS} bits"
            raise malformed("polynomial", rule, f"{bits(coefficient)} bits")


def bits(coefficient: Fraction) -> int:
    return max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length())


def degree_order(entry: tuple[Monomial, Fraction]) -> tuple[int, tuple[tuple[str, int], ...]]:
    return sum([power for _, power in entry[0]]), entry[0]


def reading_order(entry: tuple[Monomial, Fraction]) -> tuple[bool, int, Monomial]:
    return not entry[0], -sum([power for _, power in entry[0]]), entry[0]


def monomial_text(monomial: Monomial, coefficient: Fraction) -> str:
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


@dataclass(frozen=True, slots=True, repr=False)
class Polynomial:
    """A polynomial in named integers such as ``M*N/64 - 3``.

    Args:
        monomials: (monomial, coefficient) pairs in increasing order, coefficients nonzero; usually built by
            ``polynomial``.

    Example:
        >>> size = named("M") * named("N") / 64
        >>> print(size, size.value({"M": 128, "N": 3}))
        M*N/64 6
        >>> (named("M") + 1) * (named("M") - 1) + 1
        polynomial('M**2')
    """

    monomials: tuple[tuple[Monomial, Fraction], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.monomials, tuple):
            raise malformed("monomials", "must be a tuple", self.monomials)
        for entry in self.monomials:
            if not (isinstance(entry, tuple) and len(entry) == 2 and type(entry[1]) is Fraction and entry[1]):
                raise malformed("monomials", "must be pairs of a monomial and a nonzero Fraction", entry)
            if not is_monomial(entry[0]):
                rule = "must be pairs of a name and a nonzero exponent, names increasing"
                raise malformed("monomials", rule, entry[0])
        if any(left[0] >= right[0] for left, right in pairwise(self.monomials)):
            raise malformed("monomials", "must increase strictly", self.monomials)
        bounded(self.monomials)

    @property
    def names(self) -> frozenset[str]:
        """The names that occur."""
        return frozenset([name for monomial, _ in self.monomials for name, _ in monomial])

    @property
    def constant(self) -> Fraction | None:
        """The value if no name occurs, else None."""
        if not self.monomials:
            return Fraction(0)
        if len(self.monomials) == 1 and not self.monomials[0][0]:
            return self.monomials[0][1]
        return None

    def as_int(self) -> int | None:
        """Return the value if it is an integer without names, else None."""
        value = self.constant
        return int(value) if value is not None and value.denominator == 1 else None

    @property
    def whole(self) -> bool:
        """Whether all coefficients are integers and no name is divided by, so that every value is an integer."""
        return all(
            value.denominator == 1 and all(power > 0 for _, power in monomial) for monomial, value in self.monomials
        )

    def value(self, sizes: Mapping[str, int]) -> Fraction:
        """Return the exact value at ``sizes``."""
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        try:
            return value_at(self, values)
        except ZeroDivisionError:
            zeros = sorted({name for key, _ in self.monomials for name, power in key if power < 0 and not values[name]})
            raise no_value(str(self), f"it divides by {zeros[0]}, which is 0", self, values) from None

    def replace(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """Return the polynomial with names replaced; a name that is divided by can only become a single monomial."""
        if not isinstance(values, Mapping) or not all(isinstance(entry, Polynomial) for entry in values.values()):
            raise malformed("values", "must map names to polynomials", values)
        if not self.names & values.keys():
            return self
        parts: list[Polynomial] = []
        for monomial, coefficient in self.monomials:
            product = trusted(((tuple([entry for entry in monomial if entry[0] not in values]), coefficient),))
            for name, power in monomial:
                if name in values:
                    product = product * power_of(values[name] if power > 0 else ONE / values[name], abs(power))
            parts.append(product)
        return total(parts)

    def split(self) -> tuple[Polynomial, Polynomial]:
        """Return (numerator, denominator); the numerator has integer coefficients and no negative exponents."""
        scale = 1
        powers: dict[str, int] = {}
        for monomial, coefficient in self.monomials:
            scale = common_multiple(scale, coefficient.denominator)
            for name, power in monomial:
                if power < 0:
                    powers[name] = max(powers.get(name, 0), -power)
        denominator = _make({tuple(sorted(powers.items())): Fraction(scale)})
        return self * denominator, denominator

    def quotient(self, divisor: Polynomial | int | Fraction) -> Polynomial | None:
        """Return the polynomial q with q * divisor = self, or None if none was found.

        Always exists for a one-monomial divisor; otherwise polynomial division must leave no remainder.
        """
        divisor = _operand(divisor, "divisor")
        if not divisor.monomials:
            return None
        if len(divisor.monomials) == 1:
            return self / divisor
        rest, answer = self, ZERO
        (lead, weight) = max(divisor.monomials, key=degree_order)
        with suppress(WorkDoneError), metered(TERM_STEPS):
            for _ in range(len(self.monomials) * 4 + 4):
                if not rest.monomials:
                    return answer
                top, coefficient = max(rest.monomials, key=degree_order)
                part = _make({times(top, tuple([(name, -power) for name, power in lead])): coefficient / weight})
                if any(power < 0 for name, power in part.monomials[0][0] if name in divisor.names):
                    return None
                answer, rest = answer + part, rest - part * divisor
        return None

    def __add__(self, other: Polynomial | int | Fraction) -> Polynomial:
        addend = _operand(other)
        if not addend.monomials:
            return self
        charge(1 + (len(self.monomials) + len(addend.monomials)) // 8)
        sums = dict(self.monomials)
        for monomial, coefficient in addend.monomials:
            known = sums.get(monomial)
            sums[monomial] = coefficient if known is None else known + coefficient
        return _make(sums)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return _make({monomial: -coefficient for monomial, coefficient in self.monomials})

    def __sub__(self, other: Polynomial | int | Fraction) -> Polynomial:
        return self + -_operand(other)

    def __rsub__(self, other: Polynomial | int | Fraction) -> Polynomial:
        return _operand(other) + -self

    def __mul__(self, other: Polynomial | int | Fraction) -> Polynomial:
        factor = _operand(other)
        if len(self.monomials) * len(factor.monomials) > TERM_MONOMIALS:
            rule = f"must stay below {TERM_MONOMIALS} monomials"
            raise malformed("polynomial", rule, f"{len(self.monomials)} times {len(factor.monomials)}")
        # integers over a common denominator: a Fraction costs ten times as much
        (lefts, scale), (rights, other_scale) = self._scaled(), factor._scaled()
        widest = max([value.bit_length() for _, value in (*lefts, *rights)], default=0)
        charge(1 + len(lefts) * len(rights) * (1 + widest // 256))
        sums: dict[Monomial, int] = {}
        for left, a in lefts:
            for right, b in rights:
                key = times(left, right)
                sums[key] = sums.get(key, 0) + a * b
        return _make({key: Fraction(value, scale * other_scale) for key, value in sums.items() if value})

    def _scaled(self) -> tuple[list[tuple[Monomial, int]], int]:
        """Return the monomials with integer coefficients, and the denominator of them all."""
        scale = math.lcm(*[coefficient.denominator for _, coefficient in self.monomials])
        if scale == 1:
            return [(monomial, coefficient.numerator) for monomial, coefficient in self.monomials], 1
        return [(monomial, int(coefficient * scale)) for monomial, coefficient in self.monomials], scale

    __rmul__ = __mul__

    def __truediv__(self, other: Polynomial | int | Fraction) -> Polynomial:
        """Return the quotient by a one-monomial polynomial; values need not be integers."""
        divisor = _operand(other)
        if len(divisor.monomials) != 1:
            raise malformed("divisor", "must be a single nonzero monomial", str(divisor))
        ((monomial, coefficient),) = divisor.monomials
        inverse = tuple([(name, -power) for name, power in monomial])
        return self * _make({inverse: 1 / coefficient})

    def content(self) -> Fraction:
        """Return the greatest common divisor of the coefficients; 0 for the polynomial 0."""
        scale = 1
        for _, coefficient in self.monomials:
            scale = common_multiple(scale, coefficient.denominator)
        return Fraction(math.gcd(*[int(coefficient * scale) for _, coefficient in self.monomials]), scale)

    def __str__(self) -> str:
        if not self.monomials:
            return "0"
        parts: list[str] = []
        for monomial, coefficient in sorted(self.monomials, key=reading_order):
            text = monomial_text(monomial, abs(coefficient))
            if not parts:
                parts.append(text if coefficient > 0 else f"-{text}")
            else:
                parts.append(f"{'+' if coefficient > 0 else '-'} {text}")
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"polynomial({str(self)!r})"

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the sympy expression; names missing from ``symbols`` become positive integer symbols."""
        if symbols is not None and not (
            isinstance(symbols, Mapping) and all(isinstance(entry, sympy.Expr) for entry in symbols.values())
        ):
            raise malformed("symbols", "must map names to sympy expressions", symbols)
        known = dict(symbols or {})
        parts = []
        for monomial, coefficient in self.monomials:
            factors = [sympy.Rational(coefficient.numerator, coefficient.denominator)]
            for name, power in monomial:
                factors.append(known.setdefault(name, sympy.Symbol(name, integer=True, positive=True)) ** power)
            parts.append(sympy.Mul(*factors))
        return sympy.Add(*parts)

    _sympy_ = to_sympy  # called by sympy in mixed arithmetic

    def _repr_latex_(self) -> str:
        return f"${sympy.latex(self.to_sympy())}$"


def _make(sums: Mapping[Monomial, Fraction]) -> Polynomial:
    """Return the polynomial of a monomial map; monomials must be normal."""
    entries = tuple(sorted([(monomial, coefficient) for monomial, coefficient in sums.items() if coefficient]))
    bounded(entries)
    return trusted(entries)


def trusted(monomials: tuple[tuple[Monomial, Fraction], ...]) -> Polynomial:
    """Return the polynomial with these monomials, which must be in normal form and within the limits."""
    answer = object.__new__(Polynomial)
    object.__setattr__(answer, "monomials", monomials)
    return answer


def value_at(value: Polynomial, sizes: Mapping[str, int]) -> Fraction:
    """Return the exact value at ``sizes``, which are not checked.

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


def whole_at(value: Polynomial, sizes: Mapping[str, int], where: str) -> int:
    """Return the value at ``sizes`` (not checked), which must be an integer."""
    try:
        found = value_at(value, sizes)
    except ZeroDivisionError:
        zeros = sorted({name for key, _ in value.monomials for name, power in key if power < 0 and not sizes[name]})
        raise no_value(where, f"{value} divides by {zeros[0]}, which is 0", value, sizes) from None
    if found.denominator != 1:
        raise no_value(where, f"{value} is {found}, which is not an integer", value, sizes)
    return int(found)


def no_value(where: str, because: str, value: Polynomial, sizes: Mapping[str, int]) -> AdmissibilityError:
    """Return the error for a polynomial without an integer value."""
    witness: dict[str, object] = {name: sizes[name] for name in sorted(value.names)}
    return AdmissibilityError(
        Diagnostic("LA663", "the polynomial has no integer value at these sizes", (where,), because, witness)
    )


ZERO = _make({})
ONE = _make({(): Fraction(1)})


def number(value: int | Fraction) -> Polynomial:
    """Return a constant."""
    return _make({(): Fraction(value)})


def named(name: str) -> Polynomial:
    """Return the polynomial of one name (not checked)."""
    return trusted(((((name, 1),), Fraction(1)),))


def total(parts: Iterable[Polynomial]) -> Polynomial:
    """Return the sum of polynomials."""
    sums: dict[Monomial, Fraction] = {}
    for part in parts:
        charge(1 + len(part.monomials) // 8)
        for monomial, coefficient in part.monomials:
            known = sums.get(monomial)
            sums[monomial] = coefficient if known is None else known + coefficient
    return _make(sums)


def power_of(base: Polynomial, exponent: int) -> Polynomial:
    """Return a power with a non-negative exponent."""
    answer = base if exponent else ONE
    for _ in range(exponent - 1):
        answer = answer * base
    return answer


def product_of(values: Iterable[Polynomial]) -> Polynomial:
    """Return the product of polynomials (1 if there are none)."""
    answer = ONE
    for value in values:
        answer = answer * value
    return answer


def names_of(values: Iterable[Polynomial]) -> frozenset[str]:
    """Return the names in any of the polynomials."""
    return frozenset().union(*[value.names for value in values])


def _operand(value: object, argument: str = "operand") -> Polynomial:
    """Return an operand of arithmetic as a polynomial."""
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return number(int(value))
    if type(value) is Fraction:
        return number(value)
    raise malformed(argument, "must be a polynomial or an integer; polynomial(value) reads text and sympy", value)
