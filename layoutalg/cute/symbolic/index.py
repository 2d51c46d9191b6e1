"""Offsets of symbolic coordinates: a polynomial if the digits resolve, otherwise an expression with floor and mod.

Main statements: to split x by an extent s, the monomials of x that s divides are taken out; if the rest is known to be
in [0, s), it is the digit. Otherwise quotient and remainder become new names with x = s q + r, 0 <= r < s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutalg.cute.symbolic.ledger import Ledger, Nested, leaves, text_of
from layoutalg.ground.conditions import Condition, at_least
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError
from layoutalg.ground.lazy import later
from layoutalg.ground.polynomial import ZERO, Polynomial, named, product_of, trusted

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")


class _Digits:
    """Splits coordinates into digits; ``names`` defines each new name."""

    def __init__(self, ledger: Ledger, expressions: bool) -> None:
        self.ledger = ledger
        self.known = ledger.known
        self.expressions = expressions
        self.names: list[tuple[str, str, Polynomial, Polynomial]] = []  # quotient, remainder, dividend, divisor

    def inside(self, coord: Polynomial, extent: Polynomial) -> None:
        """Record that a coordinate is in [0, extent): assumed for expressions, otherwise a side condition."""
        bounds = [at_least(coord, 0), at_least(extent - 1, coord)]
        if not coord.whole:
            bounds.append(Condition("integral", coord))
        if self.expressions:
            for entry in bounds:
                if self.known.entails(entry) is None:
                    self.known = self.known.extended((entry,))
            return
        for entry in bounds:
            self.ledger.require(entry)
        self.known = self.ledger.known

    def offset(self, coord: Nested, shape: Nested, stride: Nested) -> Polynomial:
        if isinstance(coord, Polynomial):
            flat = tuple(zip(leaves(shape), leaves(stride), strict=True))
            self.inside(coord, product_of([extent for extent, _ in flat]))
            return self.split(coord, flat)
        if isinstance(shape, Polynomial) or isinstance(stride, Polynomial) or len(coord) != len(shape):
            because = f"{text_of(coord)} does not have the modes of {text_of(shape)}"
            raise MalformedError(
                Diagnostic("LA628", "the coordinate does not fit the shape", (self.ledger.where,), because)
            )
        total = ZERO
        for entry, extent, step in zip(coord, shape, stride, strict=True):
            total = total + self.offset(entry, extent, step)
        return total

    def split(self, coord: Polynomial, flat: tuple[tuple[Polynomial, Polynomial], ...]) -> Polynomial:
        total, rest = ZERO, coord
        kept = [(extent, step) for extent, step in flat if extent.as_int() != 1]
        for position, (extent, step) in enumerate(kept):
            if position == len(kept) - 1:
                return total + rest * step
            rest, digit = self.divide(rest, extent)
            total = total + digit * step
        return total

    def divide(self, value: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return quotient and remainder."""
        if self.fits(value, divisor):
            return ZERO, value
        whole, rest = ZERO, ZERO
        for entry in value.monomials:
            part = trusted((entry,))
            quotient = part.quotient(divisor)
            if quotient is not None and self.known.entails(Condition("integral", quotient)) is True:
                whole = whole + quotient
            else:
                rest = rest + part
        if self.fits(rest, divisor):
            return whole, rest
        exact = value.quotient(divisor)
        if exact is not None and self.known.entails(Condition("integral", exact)) is True:
            return exact, ZERO
        if not self.expressions:
            raise RepresentabilityError(
                Diagnostic(
                    code="LA629",
                    what="the offset has no form without floor",
                    where=(self.ledger.where,),
                    because=f"it is not known that {divisor} divides {rest} or that {rest} is in [0, {divisor})",
                    source="SymbolicLayout.expression gives one with floor and remainder",
                )
            )
        for quotient_name, remainder_name, dividend, by in self.names:
            if (dividend, by) == (rest, divisor):
                return whole + named(quotient_name), named(remainder_name)
        quotient_name, remainder_name = self.fresh("quotient"), self.fresh("remainder")
        self.names.append((quotient_name, remainder_name, rest, divisor))
        q, r = named(quotient_name), named(remainder_name)
        facts = [Condition("zero", rest - divisor * q - r), at_least(r, 0), at_least(divisor - 1, r)]
        if self.known.entails(at_least(rest, 0)) is True:
            facts.append(at_least(q, 0))
        self.known = self.known.extended(facts, (quotient_name, remainder_name))
        return whole + q, r

    def fits(self, value: Polynomial, divisor: Polynomial) -> bool:
        return (
            self.known.entails(at_least(value, 0)) is True and self.known.entails(at_least(divisor - 1, value)) is True
        )

    def fresh(self, stem: str) -> str:
        taken = self.known.names | set(self.known.integers) | self.ledger.known.names
        number = len(self.names)
        while f"{stem}_{number}" in taken:
            number += 1
        return f"{stem}_{number}"


def offset_term(coord: Nested, shape: Nested, stride: Nested, ledger: Ledger) -> Polynomial:
    """Return the offset as a polynomial; the ledger gets the conditions that the coordinate is in bounds.

    Raises: MalformedError: LA628. RepresentabilityError: LA629.
    """
    return _Digits(ledger, expressions=False).offset(coord, shape, stride)


def offset_expression(coord: Nested, shape: Nested, stride: Nested, ledger: Ledger, symbols: dict[str, Any]) -> Any:
    """Return the offset as a sympy expression; ``symbols`` are the caller's sympy symbols by name.

    Raises: MalformedError: LA628.
    """
    digits = _Digits(ledger, expressions=True)
    value = digits.offset(coord, shape, stride)
    table = dict(symbols)
    for name in ledger.known.integers:
        table.setdefault(name, sympy.Symbol(name, integer=True))
    for quotient_name, remainder_name, dividend, divisor in digits.names:
        above, below = dividend.to_sympy(table), divisor.to_sympy(table)
        table[quotient_name] = sympy.floor(above / below)
        table[remainder_name] = sympy.Mod(above, below)
    return value.to_sympy(table)
