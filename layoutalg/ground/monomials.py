"""Monomials: products of powers of names, their coefficients, and limits on both."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from layoutalg.ground import limits
from layoutalg.ground.check import Checker
from layoutalg.ground.sizes import is_name

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
        all(type(power) is int and 0 < abs(power) <= limits.TERM_EXPONENT for power in powers)
        and all(is_name(name) for name in names)
        and all(left < right for left, right in pairwise(names))
    )


def common_multiple(first: int, second: int) -> int:
    """Return the least common multiple of two denominators."""
    answer = math.lcm(first, second)
    if answer.bit_length() > limits.TERM_BITS:
        rule = f"must have a common denominator of at most {limits.TERM_BITS} bits"
        raise malformed("polynomial", rule, f"{answer.bit_length()} bits")
    return answer


def times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
        if abs(powers[name]) > limits.TERM_EXPONENT:
            rule = f"must have exponents up to {limits.TERM_EXPONENT}"
            raise malformed("polynomial", rule, f"{name}**{powers[name]}")
    return tuple(sorted([(name, power) for name, power in powers.items() if power]))


def bounded(entries: tuple[tuple[Monomial, Fraction], ...]) -> None:
    """Refuse polynomials with too many monomials or too large coefficients."""
    if len(entries) > limits.TERM_MONOMIALS:
        rule = f"must have at most {limits.TERM_MONOMIALS} monomials"
        raise malformed("polynomial", rule, len(entries))
    for _, coefficient in entries:
        if bits(coefficient) > limits.TERM_BITS:
            rule = f"must have coefficients of at most {limits.TERM_BITS} bits"
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
