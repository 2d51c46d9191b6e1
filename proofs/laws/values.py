"""Abstract values: what is computed about intervals and residues holds for every number that they stand for.

Notation: gamma of values is the set of integers in their interval and class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import gcd
from typing import Any

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.values import Values, _made, _trusted, constant, values_of
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import Condition, every
from layoutalg.proofs.laws.trial import Trial

Classes = tuple[tuple[int, int], tuple[int, int]]
CLASSES: tuple[Classes, ...] = (((1, 0), (1, 0)), ((4, 1), (6, 3)), ((8, 5), (16, 2)))
"""Modulus and residue of two operands; ends and points are any integers."""


def _operand(trial: Trial, name: str, kind: tuple[int, int], alike: bool = False) -> tuple[Any, Values]:
    """Return a number and reduced values that hold it, ends open or not."""
    modulus, residue = kind
    x = residue + modulus * trial.integer(name)
    low = None if trial.flag(f"{name}open_below") else residue + modulus * trial.integer(f"{name}low")
    closed = low is not None if alike else not trial.flag(f"{name}open_above")
    high = residue + modulus * trial.integer(f"{name}high") if closed else None
    trial.assume(*[low < x] if low is not None else [], *[x < high] if high is not None else [])
    return x, _trusted(low, high, modulus, residue)


def _in(x: Any, values: Values) -> Condition:
    """Return that a number lies in values."""
    low, high, modulus, residue = values.low, values.high, values.modulus, values.residue
    inside = [low is None or x >= low, high is None or x <= high]
    return every(*inside, x == residue if not modulus else (x - residue) % modulus == 0)


Two = Callable[[Values, Values], Values]


def _pairs(trial: Trial, kinds: Classes, make: Two, value: Callable[[Any, Any], Any]) -> None:
    (x, a), (y, b) = _operand(trial, "x", kinds[0]), _operand(trial, "y", kinds[1], alike=True)
    trial.claim(_in(value(x, y), make(a, b)), "the value lies in what was computed")


def _joins(trial: Trial, kinds: Classes, make: Two) -> None:
    (x, a), (y, b) = _operand(trial, "x", kinds[0]), _operand(trial, "y", kinds[1], alike=True)
    found = make(a, b)
    trial.claim(every(_in(x, found), _in(y, found)), "both lie in the join")


def _parts(trial: Trial, kinds: Classes, make: Callable[[Values, int], Values], whole: bool) -> None:
    n = kinds[1][0] + 1
    x, a = _operand(trial, "x", kinds[0])
    trial.claim(_in(x // n if whole else x % n, make(a, n)), "the part lies in what was computed")


def _wrong_sum(a: Values, b: Values) -> Values:
    """Keep the finer class."""
    found = a + b
    return _trusted(found.low, found.high, max(a.modulus, b.modulus) + 1, 0)


def _wrong_join(a: Values, b: Values) -> Values:
    """Forget that the residues differ."""
    found = a.join(b)
    return _made(found.low, a.high, gcd(a.modulus, b.modulus), a.residue)


def _wrong_part(a: Values, n: int) -> Values:
    """Divide the class whether or not it is divisible."""
    return _trusted(None, 0, max(2, a.modulus // n), a.residue // n)


def _larger(x: Any, y: Any) -> Any:
    return x if x > y else y


def _each(claim: Callable[..., None], **planted: Any) -> tuple[Any, ...]:
    return tuple(
        [
            obligation
            for kinds in CLASSES
            for obligation in integers(
                partial(claim, kinds=kinds),
                partial(claim, kinds=kinds, **planted),
                f"all integers, all ends, open or not; residues {kinds[0][1]} mod {kinds[0][0]} and "
                f"{kinds[1][1]} mod {kinds[1][0]}",
            )
        ]
    )


def _small() -> Iterator[Values]:
    """Values with ends of small numbers, each set of points once."""
    seen: set[Values] = set()
    for low, high, modulus in product((None, -3, 0, 2), (None, -1, 3, 6), (0, 1, 2, 3, 4)):
        for residue in (-2, 0, 3) if not modulus else range(modulus):
            with suppress(MalformedError):  # an empty set is not the values of anything
                made = Values(low, high, modulus, residue)
                if made not in seen:
                    seen.add(made)
                    yield made


_RANGE = range(-12, 13)


def _two() -> Iterator[tuple[Values, Values]]:
    each = list(_small())
    return product(each, each[::2])


def _products(pair: tuple[Values, Values], make: Two = Values.__mul__) -> str | None:
    a, b = pair
    found = make(a, b)
    points = product([x for x in _RANGE if x in a], [y for y in _RANGE if y in b])
    return next((f"{x} x {y} is not in {found}" for x, y in points if x * y not in found), None)


def _wrong_product(a: Values, b: Values) -> Values:
    """Multiply the moduli, forgetting the residues."""
    found = a * b
    return _made(found.low, found.high, a.modulus * b.modulus, a.residue * b.residue)


def _meets(pair: tuple[Values, Values], meet: Callable[[Values, Values], Values | None] = Values.meet) -> str | None:
    a, b = pair
    found = meet(a, b)
    wrong = (x for x in _RANGE if (x in a and x in b) != (found is not None and x in found))
    return next((f"{x} is in both or in {found}, not in all" for x in wrong), None)


def _wrong_meet(a: Values, b: Values) -> Values | None:
    """Keep one of the classes."""
    found = a.meet(b)
    return found if found is None else _trusted(found.low, found.high, a.modulus or 1, a.residue)


Multiple = Callable[[Values, int], bool]


def _questions(
    values: Values, ever: Multiple = Values.ever_multiple, always: Multiple = Values.always_multiple
) -> str | None:
    points = [x for x in range(-40, 41) if x in values]
    if (values.single is not None) != (len(points) == 1) or values_of(points) != _closed(values, points):
        return "its points are not those of its ends and class"
    for n in range(1, 7):
        if ever(values, n) != any(x % n == 0 for x in points) or always(values, n) != all(x % n == 0 for x in points):
            return f"multiples of {n}"
    return None


def _closed(values: Values, points: list[int]) -> Values:
    """Return the values with the ends of some points in place of open ones."""
    both = values.meet(Values(points[0], points[-1]))
    return constant(points[0]) if both is None else both


_QUESTIONS = (
    "Values.__contains__", "Values.ever_multiple", "Values.always_multiple", "constant", "values_of",
)  # fmt: skip
_ABOUT = "layoutalg.ground.values."
LAWS = (
    Law(
        "values.sum",
        "x in gamma(a) and y in gamma(b) imply x + y in gamma(a + b).",
        (f"{_ABOUT}Values.__add__", f"{_ABOUT}_reduced", f"{_ABOUT}_plus", f"{_ABOUT}_made"),
        _each(partial(_pairs, value=lambda x, y: x + y, make=Values.__add__), make=_wrong_sum),
    ),
    Law(
        "values.difference",
        "x in gamma(a) and y in gamma(b) imply x - y in gamma(a - b).",
        (f"{_ABOUT}Values.__sub__", f"{_ABOUT}Values.__neg__", f"{_ABOUT}_minus"),
        _each(partial(_pairs, value=lambda x, y: x - y, make=Values.__sub__), make=_wrong_sum),
    ),
    Law(
        "values.join",
        "gamma(join(a, b)) holds gamma(a) and gamma(b).",
        (f"{_ABOUT}Values.join",),
        _each(partial(_joins, make=Values.join), make=_wrong_join),
    ),
    Law(
        "values.extremes",
        "x in gamma(a) and y in gamma(b) imply max(x, y) in gamma(maximum(a, b)), and the same of the minimum.",
        (f"{_ABOUT}Values.maximum", f"{_ABOUT}Values.minimum"),
        _each(partial(_pairs, value=_larger, make=Values.maximum), make=Values.minimum),
    ),
    Law(
        "values.quotient",
        "x in gamma(a) implies floor(x / n) in gamma(quotient(a, n)).",
        (f"{_ABOUT}Values.quotient",),
        _each(partial(_parts, make=Values.quotient, whole=True), make=_wrong_part),
    ),
    Law(
        "values.remainder",
        "x in gamma(a) implies x mod n in gamma(remainder(a, n)).",
        (f"{_ABOUT}Values.remainder",),
        _each(partial(_parts, make=Values.remainder, whole=False), make=_wrong_part),
    ),
    Law(
        "values.product",
        "x in gamma(a) and y in gamma(b) imply x y in gamma(a b).",
        (f"{_ABOUT}Values.__mul__", f"{_ABOUT}_product", f"{_ABOUT}_signed", f"{_ABOUT}_ends"),
        enumerated(_two, _products, partial(_products, make=_wrong_product), "small ends and moduli", 6216),
        "open ends are infinite floating-point numbers, which no solver here reads",
    ),
    Law(
        "values.meet",
        "gamma(meet(a, b)) is the intersection.",
        (f"{_ABOUT}Values.meet", f"{_ABOUT}_common"),
        enumerated(_two, _meets, partial(_meets, meet=_wrong_meet), "small ends and moduli", 6216),
        "inverses modulo a number are computed by Python, which no solver reads",
    ),
    Law(
        "values.questions",
        "x in a exactly if x in gamma(a); some, or every, x of gamma(a) is a multiple of n exactly if it is said.",
        tuple([f"{_ABOUT}{name}" for name in _QUESTIONS]),
        enumerated(_small, _questions, partial(_questions, always=Values.ever_multiple), "small ends and moduli", 111),
        "they read plain numbers",
    ),
)
