"""Intervals, congruences and solved equalities derived from assumptions, and what they prove about polynomials.

Each name has an interval [low, high] and a residue class r mod m. A polynomial is proved >= 0 by substituting the
distance of each name from an end of its interval and looking at signs, by interval arithmetic, or after subtracting a
non-negative multiple of a known inequality. It is proved integral by writing each name as m n + r and dividing known
integers out of its monomials. Every rule is sound; none is complete.

Implementation notes: every search is metered; if the steps run out, or a polynomial would exceed a limit, it ends
without an answer, and the facts derived so far remain valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, gcd
from typing import Final

from layoutalg.ground.clock import WorkDoneError, charge, metered
from layoutalg.ground.conditions import Condition, Known
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.polynomial import ONE, Polynomial, common_multiple, named, number, trusted, value_at

ROUNDS = 6

DECISION_STEPS: Final = 5_000
"""steps: monomials touched while deciding one condition by intervals and congruences"""


@dataclass(slots=True)
class Facts:
    """Facts derived from assumptions; built once by ``facts_of``, then read-only."""

    solved: dict[str, Polynomial] = field(default_factory=dict)
    low: dict[str, int] = field(default_factory=dict)
    high: dict[str, int] = field(default_factory=dict)
    residue: dict[str, tuple[int, int]] = field(default_factory=dict)
    nonnegative: list[Polynomial] = field(default_factory=list)
    integral: list[Polynomial] = field(default_factory=list)
    contradiction: bool = False

    def reduce(self, value: Polynomial) -> Polynomial:
        """Return the polynomial with solved names replaced, or unchanged if that exceeds the limits."""
        try:
            return value.replace(self.solved)
        except MalformedError:
            return value

    def by_class(self, value: Polynomial) -> Polynomial:
        """Return the polynomial with each name x of class r mod m replaced by m x + r, x now any integer."""
        values: dict[str, Polynomial] = {}
        below = {name for monomial, _ in value.monomials for name, power in monomial if power < 0}
        for name in value.names:
            modulus, rest = self.residue.get(name, (1, 0))
            if modulus > 1 and (rest == 0 or name not in below):
                values[name] = named(name) * modulus + rest
        return value.replace(values)


@lru_cache(maxsize=256)
def facts_of(assumptions: Known, names: frozenset[str] = frozenset()) -> Facts:
    """Return the facts that follow from assumptions; ``names`` are further names in the question."""
    facts = Facts()
    signed = set(assumptions.integers)
    everything = assumptions.names | names
    open_conditions: list[Condition] = list(assumptions.conditions)
    for name in everything - signed:
        facts.low[name] = 1
    with suppress(WorkDoneError), metered(DECISION_STEPS):
        _learn_all(facts, open_conditions, signed)
    return facts


def _learn_all(facts: Facts, open_conditions: list[Condition], signed: set[str]) -> None:
    """Derive facts from all conditions, repeatedly until nothing new follows (at most ``ROUNDS`` times)."""
    for _ in range(ROUNDS):
        before = (dict(facts.solved), dict(facts.low), dict(facts.high), dict(facts.residue))
        facts.nonnegative, facts.integral = [], []
        for entry in open_conditions:
            charge(1 + len(facts.solved))
            with suppress(MalformedError):  # exceeds the polynomial limits: nothing is learned
                _learn(facts, entry.kind, facts.reduce(entry.value))
        for name, solution in list(facts.solved.items()):
            charge()
            with suppress(MalformedError):
                if name not in signed:
                    _learn(facts, "nonnegative", facts.reduce(solution) - ONE)
        for name in sorted(facts.low.keys() | facts.high.keys()):
            charge()
            with suppress(MalformedError):
                _tighten(facts, name)
        if facts.contradiction or before == (facts.solved, facts.low, facts.high, facts.residue):
            break


def _learn(facts: Facts, kind: str, value: Polynomial) -> None:
    constant = value.constant
    if constant is not None:
        facts.contradiction |= not {
            "zero": constant == 0,
            "nonzero": constant != 0,
            "nonnegative": constant >= 0,
            "integral": constant.denominator == 1,
        }[kind]
        return
    if kind == "zero":
        if not _solve(facts, value):
            facts.nonnegative += [value, -value]
        return
    linear = _linear(value)
    if kind == "nonnegative":
        facts.nonnegative.append(value)
        if linear is not None:
            name, slope, shift = linear
            bound = -shift / slope
            if slope > 0:
                facts.low[name] = max(facts.low.get(name, ceil(bound)), ceil(bound))
            else:
                facts.high[name] = min(facts.high.get(name, floor(bound)), floor(bound))
        else:
            quotient = _positive_quotient(facts, value)
            if quotient is not None:
                _learn(facts, kind, quotient)
    elif kind == "integral":
        facts.integral.append(value)
        if linear is not None:
            _learn_class(facts, *linear)
        elif len(value.monomials) == 1 and value.monomials[0][1] > 0 and _positive(facts, value):
            facts.nonnegative.append(value - ONE)  # a positive integer is at least 1


def _positive_quotient(facts: Facts, value: Polynomial) -> Polynomial | None:
    """Return what is at least 0 because ``m q + c >= 0`` for a monomial m >= 1 and c <= 0: q - 1 if c < 0, else q."""
    constant = next((coefficient for monomial, coefficient in value.monomials if not monomial), Fraction(0))
    moving = [dict(monomial) for monomial, _ in value.monomials if monomial]
    names = [name for name in moving[0] if facts.low.get(name, 0) >= 1]
    powers = {name: min(monomial.get(name, 0) for monomial in moving) for name in names}
    shared = tuple(sorted([(name, power) for name, power in powers.items() if power > 0]))
    if constant > 0 or not shared or (len(moving) == 1 and constant == 0):
        return None
    quotient = (value - constant) / trusted(((shared, Fraction(1)),))
    if constant == 0:
        return quotient
    return quotient - ONE if quotient.whole else None


def _linear(value: Polynomial) -> tuple[str, Fraction, Fraction] | None:
    """Return (x, a, b) if the polynomial is a x + b."""
    name, slope, shift = "", Fraction(0), Fraction(0)
    for monomial, coefficient in value.monomials:
        if not monomial:
            shift = coefficient
        elif len(monomial) == 1 and monomial[0][1] == 1 and not name:
            name, slope = monomial[0][0], coefficient
        else:
            return None
    return (name, slope, shift) if name else None


def _positive(facts: Facts, value: Polynomial) -> bool:
    return all(facts.low.get(name, 0) >= 1 for name in value.names)


def _solve(facts: Facts, value: Polynomial) -> bool:
    """Record x = rest if x occurs only as a monomial of its own with coefficient +-1, and rest is integral."""
    for monomial, coefficient in reversed(value.monomials):
        if len(monomial) != 1 or monomial[0][1] != 1 or abs(coefficient) != 1:
            continue
        name = monomial[0][0]
        rest = (value - named(name) * number(coefficient)) * number(-coefficient)
        if name in rest.names or not rest.whole or name in facts.solved:
            continue
        replacement = {name: rest}
        facts.solved = {key: known.replace(replacement) for key, known in facts.solved.items()}
        facts.solved[name] = rest
        low, high = facts.low.get(name), facts.high.get(name)
        modulus, residue = facts.residue.get(name, (1, 0))
        if low is not None:
            _learn(facts, "nonnegative", rest - low)
        if high is not None:
            _learn(facts, "nonnegative", -rest + high)
        if modulus > 1:
            _learn(facts, "integral", (rest - residue) / modulus)
        return True
    return False


def _learn_class(facts: Facts, name: str, slope: Fraction, shift: Fraction) -> None:
    """Record the residue class of x that follows from a x + b being an integer."""
    scale = common_multiple(slope.denominator, shift.denominator)
    factor, offset = int(slope * scale), int(shift * scale)
    common = gcd(factor, scale)
    if offset % common:
        facts.contradiction = True
        return
    modulus = scale // common
    if modulus == 1:
        return
    residue = -(offset // common) * pow(factor // common, -1, modulus) % modulus
    known, rest = facts.residue.get(name, (1, 0))
    shared = gcd(known, modulus)
    if (residue - rest) % shared:
        facts.contradiction = True
        return
    step = (residue - rest) // shared * pow(known // shared, -1, modulus // shared) if modulus // shared > 1 else 0
    total = common_multiple(known, modulus)
    facts.residue[name] = (total, (rest + known * step) % total)


def _tighten(facts: Facts, name: str) -> None:
    """Shrink the interval to its residue class; a single value becomes a solution."""
    modulus, rest = facts.residue.get(name, (1, 0))
    low, high = facts.low.get(name), facts.high.get(name)
    if low is not None:
        facts.low[name] = low = low + (rest - low) % modulus
    if high is not None:
        facts.high[name] = high = high - (high - rest) % modulus
    if low is not None and high is not None:
        if low > high:
            facts.contradiction = True
        elif low == high and name not in facts.solved:
            replacement = {name: number(low)}
            facts.solved = {key: known.replace(replacement) for key, known in facts.solved.items()}
            facts.solved[name] = number(low)


def is_nonnegative(facts: Facts, value: Polynomial, depth: int = 2) -> bool:
    """Return whether the polynomial is provably >= 0 under the assumptions."""
    above, below = facts.reduce(value).split()
    if not _positive(facts, below):
        return False
    return _sign(facts, above, depth)


def is_positive(facts: Facts, value: Polynomial) -> bool:
    """Return whether the polynomial is provably > 0 under the assumptions."""
    above, below = facts.reduce(value).split()
    return _positive(facts, below) and _sign(facts, above - ONE, 2)


def _sign(facts: Facts, value: Polynomial, depth: int) -> bool:
    charge(len(value.monomials))
    if _at_ends(facts, value):
        return True
    if depth == 0:
        return False
    for known in facts.nonnegative:
        above, below = known.split()
        if not _positive(facts, below):
            continue
        for bad, coefficient in value.monomials:
            if coefficient > 0:
                continue
            for good, weight in above.monomials:
                if weight > 0:
                    continue
                charge()
                factor = trusted(((bad, coefficient / weight),)) / trusted(((good, Fraction(1)),))
                ((monomial, _),) = factor.monomials
                if all(power > 0 and facts.low.get(name, -1) >= 0 for name, power in monomial) and _sign(
                    facts, value - factor * above, depth - 1
                ):
                    return True
    return False


def _at_ends(facts: Facts, value: Polynomial) -> bool:
    """Return whether the polynomial is >= 0 on the box, by signs after shifting each name to an end of its range."""
    values: dict[str, Polynomial] = {}
    room: dict[str, int | None] = {}
    for name in value.names:
        low, high = facts.low.get(name), facts.high.get(name)
        if low is not None:
            values[name] = named(name) + low
            room[name] = None if high is None else high - low
        elif high is not None:
            values[name] = -named(name) + high
            room[name] = None
        else:
            room[name] = None
    free = {name for name in value.names if name not in values}
    least = Fraction(0)
    for monomial, coefficient in value.replace(values).monomials:
        if any(name in free and power % 2 for name, power in monomial):
            return False
        if coefficient > 0:
            least += 0 if monomial else coefficient
            continue
        greatest = coefficient
        for name, power in monomial:
            limit = room[name]
            if limit is None:
                return False
            greatest *= limit**power
        least += greatest
    return least >= 0


def is_integral(facts: Facts, value: Polynomial) -> bool:
    """Return whether the polynomial is provably an integer under the assumptions."""
    charge(len(value.monomials))
    value = facts.reduce(value)
    rest = _fractional(facts.by_class(value))
    if not rest.monomials:
        return True
    known = [facts.by_class(facts.reduce(entry)) for entry in facts.integral]
    for entry in known:
        charge(len(entry.monomials))
        if not _fractional(rest - entry).monomials or not _fractional(rest + entry).monomials:
            return True
    single = [entry for entry in known if len(entry.monomials) == 1]
    return all(_integral_monomial(trusted((entry,)), single, 3) for entry in rest.monomials)


def _integral_monomial(value: Polynomial, known: list[Polynomial], depth: int) -> bool:
    if not _fractional(value).monomials:
        return True
    if depth == 0:
        return False
    for entry in known:
        charge()
        (monomial, _), (divided, _) = value.monomials[0], entry.monomials[0]
        if not {name for name, _ in monomial} & {name for name, _ in divided}:
            continue
        if _integral_monomial(value / entry, known, depth - 1):
            return True
    return False


def _fractional(value: Polynomial) -> Polynomial:
    """Return the monomials that are not always integers, coefficients reduced to [0, 1) where allowed."""
    kept_monomials = []
    for monomial, coefficient in value.monomials:
        if all(power > 0 for _, power in monomial):
            coefficient = coefficient % 1
        if coefficient:
            kept_monomials.append((monomial, coefficient))
    return trusted(tuple(kept_monomials))


def never_integral(facts: Facts, value: Polynomial) -> bool:
    """Return whether the polynomial is provably never an integer under the assumptions."""
    value = facts.reduce(value)
    rest = _fractional(facts.by_class(value)).constant
    if rest is not None and rest:
        return True
    return is_positive(facts, value) and is_positive(facts, ONE - value)


def completed(facts: Facts, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """Return the assignment with solved names filled in; None if one has no integer value."""
    answer = dict(sizes)
    for name, solution in facts.solved.items():
        try:
            value = value_at(solution, answer)
        except ZeroDivisionError:
            return None
        if value.denominator != 1:
            return None
        answer[name] = int(value)
    return answer
