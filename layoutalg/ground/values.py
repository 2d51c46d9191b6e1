"""Abstract values of an integer parameter: an interval intersected with a residue class.

Notation: ``Values(low, high, modulus, residue)`` stands for gamma = {x : low <= x <= high, x = residue mod modulus}. An
end of None is unbounded. Modulus 0 means x = residue.

Every operation is sound: ``x in gamma(a)`` and ``y in gamma(b)`` imply ``x + y in gamma(a + b)``, and so on (laws
``values.*``). Values are kept reduced (ends in the class, modulus 0 for a single point), so equal sets compare equal.
Operations that may yield the empty set return None for it.

References: P. Granger, Static analysis of arithmetical congruences, 1989, for congruences and their join; P. and R.
Cousot, POPL 1977, for intervals and soundness.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

from layoutalg.ground.check import Checker

CHECK = Checker("LA890", "invalid set of parameter values")


@dataclass(frozen=True, slots=True)
class Values:
    """The integers of an interval that lie in one residue class.

    Args:
        low: Least value; None if unbounded.
        high: Greatest value; None if unbounded.
        modulus: All values agree modulo this; 0 for a single value, 1 if nothing is known.
        residue: Their common residue.

    Raises: MalformedError: LA890, also for an empty set.

    Example:
        >>> Values(1, 100, 16), Values(3, 3)
        (Values(low=16, high=96, modulus=16, residue=0), Values(low=3, high=3, modulus=0, residue=3))
        >>> print(Values(16, None, 16) * 2 + 1)
        33 or more, 1 mod 32
    """

    low: int | None = None
    high: int | None = None
    modulus: int = 1
    residue: int = 0

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, CHECK.integer(getattr(self, name), name))
        modulus = CHECK.integer(self.modulus, "modulus", 0)
        residue = CHECK.integer(self.residue, "residue")
        found = _reduced(self.low, self.high, modulus, residue)
        if found is None:
            raise CHECK.malformed("high", "must leave a value of the residue class", (self.low, self.high))
        for name, value in zip(("low", "high", "modulus", "residue"), found, strict=True):
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        if self.modulus == 0:
            return str(self.residue)
        ends = "any" if self.low is None and self.high is None else f"{self.low} to {self.high}"
        if self.low is None and self.high is not None:
            ends = f"{self.high} or less"
        elif self.high is None and self.low is not None:
            ends = f"{self.low} or more"
        return ends + (f", {self.residue} mod {self.modulus}" if self.modulus > 1 else "")

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int):
            return False
        inside = (self.low is None or self.low <= value) and (self.high is None or value <= self.high)
        return inside and (value == self.residue if not self.modulus else (value - self.residue) % self.modulus == 0)

    @property
    def single(self) -> int | None:
        """The value if there is only one, else None."""
        return self.residue if not self.modulus else None

    def __neg__(self) -> Values:
        return _made(_minus(self.high), _minus(self.low), self.modulus, -self.residue)

    def __add__(self, other: Values | int) -> Values:
        two = constant(other)
        low, high = _plus(self.low, two.low), _plus(self.high, two.high)
        return _made(low, high, gcd(self.modulus, two.modulus), self.residue + two.residue)

    def __sub__(self, other: Values | int) -> Values:
        return self + -constant(other)

    def __mul__(self, other: Values | int) -> Values:
        """(m i + r)(n j + s) = m n i j + m s i + n r j + r s: all but the last are multiples of the modulus."""
        two = constant(other)
        m, r, n, s = self.modulus, self.residue, two.modulus, two.residue
        low, high = _product(self, two)
        return _made(low, high, gcd(gcd(m * n, m * s), n * r), r * s)

    def quotient(self, divisor: int) -> Values:
        """Return the values of floor(x / divisor), for a divisor of at least 1."""
        n = CHECK.integer(divisor, "divisor", 1)
        low, high = (None if end is None else end // n for end in (self.low, self.high))
        exact = self.modulus % n == 0  # x = m i + r with m i / n integral, so floor(x / n) = m i / n + floor(r / n)
        return _made(low, high, self.modulus // n if exact else 1, self.residue // n if exact else 0)

    def remainder(self, divisor: int) -> Values:
        """Return the values of x mod divisor, for a divisor of at least 1."""
        n = CHECK.integer(divisor, "divisor", 1)
        if self.low is not None and self.high is not None and self.low // n == self.high // n:
            below = self.low // n * n
            return _made(self.low - below, self.high - below, self.modulus, self.residue - below)
        shared = gcd(self.modulus, n)
        return _made(0, n - 1, shared, self.residue % shared if shared else self.residue % n)

    def join(self, other: Values | int) -> Values:
        """Return the least values that contain both (the join of two control-flow paths)."""
        two = constant(other)
        low = None if self.low is None or two.low is None else min(self.low, two.low)
        high = None if self.high is None or two.high is None else max(self.high, two.high)
        return _made(low, high, gcd(gcd(self.modulus, two.modulus), self.residue - two.residue), self.residue)

    def meet(self, other: Values | int) -> Values | None:
        """Return the exact intersection, or None if empty."""
        two = constant(other)
        lows = [end for end in (self.low, two.low) if end is not None]
        highs = [end for end in (self.high, two.high) if end is not None]
        both = _common(self.modulus, self.residue, two.modulus, two.residue)
        found = None if both is None else _reduced(max(lows, default=None), min(highs, default=None), *both)
        return None if found is None else Values(*found)

    def minimum(self, other: Values | int) -> Values:
        """Return the values of min(x, y)."""
        return -((-self).maximum(-constant(other)))

    def maximum(self, other: Values | int) -> Values:
        """Return the values of max(x, y)."""
        two = constant(other)
        if self.low is not None and two.high is not None and self.low >= two.high:
            return self
        if two.low is not None and self.high is not None and two.low >= self.high:
            return two
        lows = [end for end in (self.low, two.low) if end is not None]
        high = None if self.high is None or two.high is None else max(self.high, two.high)
        modulus = gcd(gcd(self.modulus, two.modulus), self.residue - two.residue)
        return _made(max(lows, default=None), high, modulus, self.residue)

    def ever_multiple(self, divisor: int) -> bool:
        """Return whether some value is a multiple of the divisor."""
        return self.meet(Values(None, None, CHECK.integer(divisor, "divisor", 1))) is not None

    def always_multiple(self, divisor: int) -> bool:
        """Return whether every value is a multiple of the divisor."""
        n = CHECK.integer(divisor, "divisor", 1)
        return self.modulus % n == 0 and self.residue % n == 0


def constant(value: Values | int) -> Values:
    """Return a number as ``Values``; ``Values`` unchanged."""
    if isinstance(value, Values):
        return value
    number = CHECK.integer(value, "value")
    return _trusted(number, number, 0, number)


def values_of(numbers: Iterable[int]) -> Values:
    """Return the least values that contain all the numbers."""
    found: Values | None = None
    for number in numbers:
        found = constant(number) if found is None else found.join(number)
    if found is None:
        raise CHECK.malformed("numbers", "must contain at least one integer", ())
    return found


def _trusted(low: int | None, high: int | None, modulus: int, residue: int) -> Values:
    """Return values that are already reduced."""
    made = object.__new__(Values)
    for name, value in (("low", low), ("high", high), ("modulus", modulus), ("residue", residue)):
        object.__setattr__(made, name, value)
    return made


def _made(low: int | None, high: int | None, modulus: int, residue: int) -> Values:
    """Return values reduced; they must not be empty."""
    found = _reduced(low, high, modulus, residue)
    return _trusted(*found) if found is not None else Values(low, high, modulus, residue)  # raises


Quadruple = tuple[int | None, int | None, int, int]


def _reduced(low: int | None, high: int | None, modulus: int, residue: int) -> Quadruple | None:
    """Return the ends moved into the class and the residue below the modulus; None if empty."""
    if modulus == 0:
        if (low is not None and low > residue) or (high is not None and high < residue):
            return None
        return residue, residue, 0, residue
    if low is not None:
        low += (residue - low) % modulus
    if high is not None:
        high -= (high - residue) % modulus
    if low is not None and high is not None:
        if low > high:
            return None
        if low == high:
            return low, low, 0, low
    return low, high, modulus, residue % modulus


def _common(m: int, r: int, n: int, s: int) -> tuple[int, int] | None:
    """Return the residue class that is r mod m and s mod n (Chinese remainder theorem), or None."""
    if m == 0 or n == 0:
        point, modulus, residue = (r, n, s) if m == 0 else (s, m, r)
        inside = point == residue if modulus == 0 else (point - residue) % modulus == 0
        return (0, point) if inside else None
    shared = gcd(m, n)
    if (s - r) % shared:
        return None
    steps = (s - r) // shared * pow(m // shared, -1, n // shared) if n // shared > 1 else 0
    return m // shared * n, r + m * steps


def _minus(end: int | None) -> int | None:
    return None if end is None else -end


def _plus(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two


def _product(one: Values, two: Values) -> tuple[int | None, int | None]:
    """Return the ends of a product: extremes of the four products of ends, 0 times an unbounded end being 0."""
    if one.single == 0 or two.single == 0:
        return 0, 0
    lows: list[float | int] = []
    for a in _ends(one):
        for b in _ends(two):
            lows.append(0 if a == 0 or b == 0 else a * b if abs(a) != _OPEN and abs(b) != _OPEN else _signed(a, b))
    low, high = min(lows), max(lows)
    return (None if low == -_OPEN else int(low)), (None if high == _OPEN else int(high))


_OPEN = float("inf")


def _ends(values: Values) -> tuple[float | int, float | int]:
    return (-_OPEN if values.low is None else values.low), (_OPEN if values.high is None else values.high)


def _signed(a: float, b: float) -> float:
    return _OPEN if (a > 0) == (b > 0) else -_OPEN


ANY = Values()
"""All integers."""
