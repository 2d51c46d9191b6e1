"""Digit lists: splitting and aligning keep the function, chains are whole bases, and tables are read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from layoutalg.ground.digits import Digits, Flat, aligned, chained, evaluate, split_at
from layoutalg.ground.recognize import Departure, strided
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Extents = tuple[int, ...]


def _bijections() -> Iterator[Flat]:
    """Mixed-radix digits read in another order."""
    for extents in product((1, 2, 3, 4), (2, 6), (1, 2)):
        for order in permutations(range(3)):
            strides, weight = [0, 0, 0], 1
            for place in order:
                strides[place], weight = weight, weight * extents[place]
            yield tuple(zip(extents, strides, strict=True))


def _table(flat: Any) -> list[int]:
    return [evaluate(flat, i) for i in range(math.prod([extent for extent, _ in flat]))]


def _wrong_split(modes: Digits, source: Any, target: Any) -> Digits | None:
    """Give both parts of a digit the same stride."""
    found = split_at(modes, source, target)
    return None if found is None else tuple([(extent, 1 if extent > 1 else stride) for extent, stride in found])


def _split(flat: Flat, split: Callable[..., Any] = split_at) -> str | None:
    for cuts, values in product(((), (2,), (3,), (4, 12)), ((), (2,), (6,))):
        found = split(flat, cuts, values)
        if found is None:
            if not cuts and not values:
                return "refused without a cut"
            continue
        if _table(found) != _table(flat):
            return "splitting changes the function"
        weight = 1
        for extent, stride in found:
            crossed = [at < cut < at * extent for at, ends in ((weight, cuts), (stride, values)) for cut in ends]
            if any(crossed):
                return "a digit crosses a cut"
            weight *= extent
    found = aligned(flat, ())
    if found is None:
        return None
    weight, ends = 1, set[Any]({1})
    for extent, stride in found:
        ends |= {weight, weight * extent, stride, stride * extent}
        weight *= extent
    same = _table(found) == _table(flat) and all(b % a == 0 for a, b in pairwise(sorted(ends)))
    return None if same else "aligning changes the function, or leaves two lists of boundaries"


def _chains() -> Iterator[tuple[tuple[int, int], ...]]:
    yield from product(product((1, 2, 3, 4, 6), (2, 3)), repeat=2)


def _wrong_chain(digits: Any) -> Any:
    """Look at the first digit alone."""
    return chained([min(digits)])


def _whole(digits: tuple[tuple[int, int], ...], chain: Callable[..., Any] = chained) -> str | None:
    values = sorted(_table(tuple([(extent, weight) for weight, extent in digits])))
    found = chain(digits)
    return None if (found is None) == (values == list(range(len(values)))) else "a chain that is no base"


def _tables() -> Iterator[tuple[int, ...]]:
    for flat in _bijections():
        table = _table(flat)
        yield tuple(table)
        if len(table) > 3:
            yield (*table[:-1], table[-1] + 1)
            yield (*table[:2], table[2] + 5, *table[3:])


def _silent(table: Any) -> Any:
    """Never depart."""
    found = strided(table)
    return ((len(table), int(table[-1] - table[0])),) if isinstance(found, Departure) else found


def _read(values: tuple[int, ...], read: Callable[[Any], Any] = strided) -> str | None:
    found = read(np.array(values))
    if isinstance(found, Departure):
        at = found.coordinate
        if found.value != values[at] or found.forced == values[at]:
            return "nothing departs there"
        again = strided(np.array([*values[:at], found.forced, *values[at + 1 :]]))
        later = not isinstance(again, Departure) or again.coordinate > at
        return None if later else "what was forced departs as well"
    return None if [values[0] + v for v in _table(found)] == list(values) else "other values"


_WHY = "digits split where numbers divide, which goes by their values"
_DIGITS = "mixed-radix digits of extents 1..4, 2 or 6, and 1 or 2, in every order"


def _law(
    name: str, says: str, about: tuple[str, ...], cases: Any, fails: Any, wrong: Any, scope: str, count: int
) -> Law:
    dotted = tuple(f"layoutalg.ground.{each}" for each in about)
    return Law(f"digit_lists.{name}", says, dotted, enumerated(cases, fails, wrong, scope, count), _WHY)


LAWS = (
    _law(
        "split",
        "split_at and aligned keep the function; no digit crosses a cut, and aligned boundaries divide each other.",
        ("digits.split_at", "digits.aligned"),
        _bijections,
        _split,
        partial(_split, split=_wrong_split),
        _DIGITS,
        96,
    ),
    _law(
        "chain",
        "chained is None exactly where the digits' values are 0..size - 1, each once.",
        ("digits.chained",),
        _chains,
        _whole,
        partial(_whole, chain=_wrong_chain),
        "two digits of weights 1, 2, 3, 4 and 6 and extents 2 and 3",
        100,
    ),
    _law(
        "table",
        "strided gives modes that make the table, or a coordinate where it departs from what earlier entries force.",
        ("recognize.strided",),
        _tables,
        _read,
        partial(_read, read=_silent),
        f"tables of {_DIGITS}, as they are and with one entry moved",
        276,
    ),
)
