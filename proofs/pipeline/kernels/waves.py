"""Integers of a loop as functions of its iteration: periodic tables that grow by a constant per period.

``Wave`` is an integer for every iteration k; ``Linear`` adds symbols that do not change in the loop (arguments of a
kernel, a number of tiles); ``Conditions`` are linear values that must all be positive. None stands for a value of which
nothing is known. Everything here is exact for all k >= 0 as long as no integer overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Final, TypeAlias

LONGEST: Final = 1 << 12
"""iterations: the longest period"""


@dataclass(frozen=True, slots=True)
class Wave:
    """table[k mod P] + growth * (k div P), with P the length of the table.

    Example:
        >>> k = Wave((0,), 1)
        >>> k.at(7), combined(lambda a: a % 3, k, period=3), k + Wave((5,))
        (7, Wave(table=(0, 1, 2), growth=0), Wave(table=(5,), growth=1))
    """

    table: tuple[int, ...]
    growth: int = 0

    def at(self, k: int) -> int:
        """Return the value of iteration k."""
        return self.table[k % len(self.table)] + self.growth * (k // len(self.table))

    @property
    def constant(self) -> int | None:
        """The value, if it is the same in all iterations."""
        return self.table[0] if self.growth == 0 and len(set(self.table)) == 1 else None

    @property
    def step(self) -> int | None:
        """The difference of one iteration to the next, if it is always the same."""
        steps = {self.at(k + 1) - self.at(k) for k in range(len(self.table))}
        return steps.pop() if len(steps) == 1 else None

    def stretched(self, period: int) -> Wave:
        """Return the same wave with a table of that length, a multiple of the present one."""
        return Wave(tuple([self.at(k) for k in range(period)]), self.growth * (period // len(self.table)))

    def next(self) -> Wave:
        """Return the wave whose value of k is this one's of k + 1."""
        return Wave(tuple([self.at(k + 1) for k in range(len(self.table))]), self.growth)

    def previous(self) -> Wave:
        """Return the wave whose value of k is this one's of k - 1."""
        return Wave(tuple([self.at(k - 1) for k in range(len(self.table))]), self.growth)

    def __add__(self, other: Wave) -> Wave:
        period = lcm(len(self.table), len(other.table))
        one, two = self.stretched(period), other.stretched(period)
        return Wave(tuple([a + b for a, b in zip(one.table, two.table, strict=True)]), one.growth + two.growth).short()

    def scaled(self, factor: int) -> Wave:
        """Return the multiple."""
        return Wave(tuple([entry * factor for entry in self.table]), self.growth * factor)

    def short(self) -> Wave:
        """Return the same wave with the shortest table."""
        period = len(self.table)
        for length in range(1, period):
            if period % length == 0 and self.growth % (period // length) == 0:
                found = Wave(self.table[:length], self.growth // (period // length))
                if all(found.at(k) == self.table[k] for k in range(period)):
                    return found
        return self


def fitted(values: Sequence[int], period: int) -> Wave | None:
    """Return the wave through values of iterations 0, 1, ..., more than a period; None if there is none."""
    growth = values[period] - values[0]
    if any(values[k + period] - values[k] != growth for k in range(len(values) - period)):
        return None
    return Wave(tuple(values[:period]), growth).short()


def combined(rule: Callable[..., int], *waves: Wave, period: int = 1) -> Wave | None:
    """Return the wave of a function of the values; None if it is not one that the period shows.

    Args:
        rule: A function of integers that repeats, or grows by a constant, when all growing arguments grow by a period.
        waves: Its arguments.
        period: The values of growing waves count modulo this.
    """
    length = lcm(*[len(wave.table) for wave in waves])
    for wave in waves:
        grown = wave.stretched(length).growth if length <= LONGEST else 1
        if grown:
            length = lcm(length, length * (period // gcd(period, grown)))
    if length > LONGEST:
        return None
    return fitted([rule(*[wave.at(k) for wave in waves]) for k in range(2 * length + 1)], length)


@dataclass(frozen=True, slots=True)
class Linear:
    """A wave plus multiples of symbols."""

    wave: Wave  # the part that changes with k
    symbols: tuple[tuple[str, int], ...] = ()  # names and factors
    # it has this value only in iterations where these are positive, which they are up to some iteration
    under: tuple[Linear, ...] = ()

    @classmethod
    def of(cls, value: int) -> Linear:
        """Return a constant."""
        return cls(Wave((value,)))

    @property
    def constant(self) -> int | None:
        """The value, if it is known and the same in all iterations."""
        return None if self.symbols else self.wave.constant

    @property
    def constant_part(self) -> int | None:
        """The value without the symbols, if it is the same in all iterations."""
        return self.wave.constant

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return this plus a multiple of the other."""
        total = dict(self.symbols)
        for name, count in other.symbols:
            total[name] = total.get(name, 0) + factor * count
        left = tuple(sorted([(name, count) for name, count in total.items() if count]))
        return Linear(self.wave + other.wave.scaled(factor), left)

    def scaled(self, factor: int) -> Linear:
        """Return the multiple."""
        return Linear.of(0).plus(self, factor)

    def __str__(self) -> str:
        told = [name if count == 1 else f"{count}*{name}" for name, count in self.symbols]
        constant = self.wave.constant
        told += ["..."] if constant is None else [str(constant)] if constant or not told else []
        return " + ".join(told)


@dataclass(frozen=True, slots=True)
class Conditions:
    """True where every one of the linear values is positive."""

    positive: tuple[Linear, ...]


Known: TypeAlias = "Linear | Conditions"

_RULES: Final[Mapping[str, Callable[[int, int], int]]] = {
    "arith.muli": lambda a, b: a * b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.shrui": lambda a, b: a >> b,
    "arith.shrsi": lambda a, b: a >> b,
    "arith.shli": lambda a, b: a << b,
}
_ROUNDED: Final = (
    "arith.remsi",
    "arith.remui",
    "arith.divsi",
    "arith.divui",
    "arith.shrui",
    "arith.shrsi",
    "arith.andi",
)
_COMPARED: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}
_FLAT: Final = Wave((0,))


def arithmetic(name: str, one: Known | None, two: Known | None) -> Known | None:
    """Return the value of a binary operation of integers, or None."""
    if name == "arith.andi" and one is not None and two is not None:
        joined = _both(one, two)
        if joined is not None:
            return joined
    if not isinstance(one, Linear) or not isinstance(two, Linear):
        return None
    if name in ("arith.addi", "arith.subi"):
        return one.plus(two, 1 if name == "arith.addi" else -1)
    if name == "arith.muli":
        for this, other in ((one, two), (two, one)):
            if this.constant is not None:
                return other.scaled(this.constant)
    rule = _RULES.get(name)
    if rule is None:
        return None
    if one.symbols or two.symbols:
        fixed = one.wave.constant is not None and two.wave.constant is not None
        return Linear(_FLAT, ((f"({one} {name} {two})", 1),)) if fixed else None
    period = two.constant if name in _ROUNDED else 1
    if period is None or (name in _ROUNDED and (one.wave.growth < 0 or min(one.wave.table) < 0 or two.wave.growth)):
        return None
    if name.startswith("arith.sh"):
        if not 0 <= period <= 32 or name == "arith.shli":
            return None
        period = 1 << period
    if name == "arith.andi":
        period += 1
        if period & (period - 1):
            return None if one.wave.growth else _wave(combined(rule, one.wave, two.wave))
    if name in _ROUNDED and period <= 0:
        return None
    if name not in _ROUNDED and (one.wave.growth or two.wave.growth):
        return None
    return _wave(combined(rule, one.wave, two.wave, period=period))


def _wave(found: Wave | None) -> Linear | None:
    return None if found is None else Linear(found)


def _both(one: Known, two: Known) -> Known | None:
    """Return the conjunction if one side is a set of conditions."""
    if isinstance(one, Linear) and isinstance(two, Linear):
        return None
    parts: list[Linear] = []
    for side in (one, two):
        if isinstance(side, Conditions):
            parts += side.positive
        elif side.constant == 0:
            return Linear.of(0)
        elif side.constant is None:
            return None
    return Conditions(tuple(parts))


def compared(relation: str, one: Known | None, two: Known | None) -> Known | None:
    """Return the value of a comparison."""
    if not isinstance(one, Linear) or not isinstance(two, Linear) or relation not in _COMPARED:
        return None
    apart = one.plus(two, -1)
    if not apart.symbols and not apart.wave.growth:
        rule = _COMPARED[relation]
        return _wave(combined(lambda a: int(rule(a, 0)), apart.wave))
    if relation in ("eq", "ne"):
        return None
    more = apart if relation in ("sgt", "sge") else apart.scaled(-1)
    return Conditions((more if relation in ("sgt", "slt") else more.plus(Linear.of(1)),))


def inverse(value: Known | None) -> Known | None:
    """Return the negation of a truth value."""
    if isinstance(value, Linear):
        return None if value.symbols else _wave(combined(lambda a: 1 - a, value.wave))
    if isinstance(value, Conditions) and len(value.positive) == 1:
        return Conditions((Linear.of(1).plus(value.positive[0], -1),))
    return None


def selected(choice: Known | None, one: Known | None, two: Known | None) -> Known | None:
    """Return the value of a select."""
    if one == two:
        return one
    if not isinstance(choice, Linear) or choice.symbols or choice.wave.growth:
        return None
    if choice.constant is not None:
        return one if choice.constant else two
    if not isinstance(one, Linear) or not isinstance(two, Linear) or one.symbols != two.symbols:
        return None
    found = combined(lambda c, a, b: a if c else b, choice.wave, one.wave, two.wave)
    return None if found is None else Linear(found, one.symbols)
