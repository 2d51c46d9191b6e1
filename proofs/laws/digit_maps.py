"""Digit maps: digits and carries, composition, inverses, the normal form.

Notation: two digits of any extents m, n >= 2 are the step of every induction here: one digit and all that follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import permutations, product
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ground.digits import placed, point_at
from layoutalg.hierarchy import (
    DigitMap,
    TableMap,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import composed, reversed_as, turned_back, value_at
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import every
from layoutalg.proofs.laws.trial import Trial

Maps = Callable[..., Any]
Digit: TypeAlias = tuple[Any, Any]
_TWO = "two digits of any extents >= 2 in either order, each reversed or not; the step of the induction"
_FLAGS = tuple(product((False, True), repeat=3))
"""Whether the digits change places, and whether each is reversed."""


def _extents(trial: Trial) -> tuple[Any, Any]:
    m, n = trial.integer("m"), trial.integer("n")
    trial.assume(m >= 2, n >= 2)
    return m, n


def _point(trial: Trial, m: Any, n: Any) -> tuple[Any, Any, Any]:
    """Return an index and its two digits."""
    low, high = trial.digit("x", m), trial.digit("y", n)
    trial.divides(low + m * high, m, high, low)
    trial.divides(high, n, 0, high)
    return low + m * high, low, high


def _modes(m: Any, n: Any, flags: Sequence[bool]) -> tuple[Digit, Digit]:
    """Return the digits m, n, in the target in this order or the other one."""
    crossed, first, second = flags
    low, high = (n, 1) if crossed else (1, m)
    return (m, -low if first else low), (n, -high if second else high)


def _image(m: Any, n: Any, flags: Sequence[bool], low: Any, high: Any) -> tuple[Any, Any]:
    """Return the target's digits, fastest first."""
    crossed, first, second = flags
    low, high = m - 1 - low if first else low, n - 1 - high if second else high
    return (high, low) if crossed else (low, high)


def _carries(trial: Trial, point_at: Maps = point_at) -> None:
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    point = point_at((("x", m), ("y", n)), index)
    trial.claim(every(point["x"] == low, point["y"] == high), "the coordinates of x + m y are x and y")


def _row_major(axes: Sequence[tuple[str, Any]], index: Any) -> dict[str, Any]:
    """Read the last axis as the fastest."""
    return dict(reversed(point_at(tuple(reversed(axes)), index).items()))


def _bijective(trial: Trial, value_at: Maps = value_at) -> None:
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    for flags in _FLAGS:
        one, two = _image(m, n, flags, low, high)
        weight = n if flags[0] else m
        found = value_at(_modes(m, n, flags), (), index)
        trial.claim(found == one + weight * two, "the value has the digits that the source has, moved and reversed")


def _mirrored(modes: Sequence[Digit], flips: Sequence[int], index: Any) -> Any:
    """Reverse a digit as e - c instead of e - 1 - c."""
    return value_at(modes, flips, index) + sum([-stride for _, stride in modes if stride < 0])  # type: ignore[arg-type]


def _composes(trial: Trial, composed: Maps = composed, turned: Maps = reversed_as) -> None:
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    trial.divides(m, m, 1)
    trial.divides(n, n, 1)
    inner, outer = (trial.flag("u"), True, False), (trial.flag("v"), False, True)
    here = _modes(m, n, inner)
    a, b = (n, m) if inner[0] else (m, n)
    there = _modes(a, b, outer)
    middle, (one, two) = value_at(here, (), index), _image(m, n, inner, low, high)
    trial.divides(middle, a, two, one)
    trial.divides(two, b, 0, two)
    digits = composed(list(placed(there)), here)
    last, (first, second) = _image(a, b, outer, one, two), _image(a, b, outer, *_image(m, n, inner, 0, 0))
    c, d = (b, a) if outer[0] else (a, b)
    origin = first + c * second
    trial.divides(origin, 1, origin)
    trial.divides(origin, c, second, first)
    trial.divides(second, d, 0, second)
    whole = turned(tuple(digits), (), origin)
    trial.claim(value_at(whole, (), index) == last[0] + c * last[1], "the digits of the composition")
    trial.claim(value_at(there, (), middle) == last[0] + c * last[1], "one map after the other")


def _by_place(outer_modes: Sequence[tuple[Any, Any, Any]], pieces: Sequence[Digit]) -> list[Digit]:
    """Match the digits by their place in the lists."""
    return [(extent, abs(stride)) for (extent, _), (_, _, stride) in zip(pieces, outer_modes, strict=True)]


def _turns_back(trial: Trial, back: Maps = turned_back) -> None:
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    for flags in _FLAGS:
        here = _modes(m, n, flags)
        value, (one, two) = value_at(here, (), index), _image(m, n, flags, low, high)
        a, b = (n, m) if flags[0] else (m, n)
        trial.divides(value, a, two, one)
        trial.divides(two, b, 0, two)
        found, origin = back(placed(here))
        first, second = (m - 1 if flags[1] else 0), (n - 1 if flags[2] else 0)
        trial.claim(origin == first + m * second, "the image of 0")
        trial.divides(origin, 1, origin)
        trial.divides(origin, m, second, first)
        trial.divides(second, n, 0, second)
        modes = [mode for _, mode in (found[::-1] if flags[0] else found)]
        trial.claim(value_at(reversed_as(tuple(modes), (), origin), (), value) == index, "the inverse undoes the map")


def _from_zero(digits: Iterator[tuple[Any, Any, Any]]) -> tuple[list[tuple[Any, Digit]], Any]:
    """Take 0 for the point that is mapped to 0."""
    return turned_back(digits)[0], 0


@cache
def _digit_maps(extents: tuple[int, ...]) -> tuple[DigitMap, ...]:
    """Return all permutations of these digits, reversed in all ways."""
    found = []
    for order in permutations(range(len(extents))):
        weight, here = [0] * len(extents), 1
        for k in order:
            weight[k], here = here, here * extents[k]
        for signs in product((1, -1), repeat=len(extents)):
            found.append(DigitMap(tuple([(e, w * s) for e, w, s in zip(extents, weight, signs, strict=True)])))
    return tuple(dict.fromkeys(found))


@cache
def some_maps() -> tuple[DigitMap, ...]:
    """Return maps of 12 points: digits 2, 2, 3 and 4, 3 and 2, 6 in any order, and bits mixed over F2."""
    plain = [each for extents in ((2, 2, 3), (3, 2, 2), (4, 3), (6, 2)) for each in _digit_maps(extents)]
    mixed = [DigitMap(((2, a), (2, b), (3, 4))) for a, b in ((1, (1, 2)), ((1, 2), 1), ((1, 2), 2), (2, (1, 2)))]
    high = [DigitMap(((3, 1), (2, 3), (2, (3, 6)))), DigitMap(((2, (1, 2)), (2, 1), (3, -4)), (2,))]
    return tuple(dict.fromkeys([*plain, *mixed, *high]))


def pairs() -> Iterator[tuple[DigitMap, DigitMap]]:
    """Return every fourth of these maps with each of them."""
    return ((outer, inner) for outer in some_maps()[2::4] for inner in some_maps())


def _composition(pair: tuple[DigitMap, DigitMap], compose: Maps = maps.compose) -> str | None:
    outer, inner = pair
    found = compose(outer, inner)
    if not np.array_equal(found.table(), outer.table()[inner.table()]):
        return "the values of the composition"
    return None if maps.canonical(TableMap(tuple(found.table().tolist()))) == found else "it is not in normal form"


def _unflipped(outer: DigitMap, inner: DigitMap) -> Any:
    """Compose the digits and take the image of 0 of the outer map."""
    found = maps.compose(outer, inner)
    if not isinstance(found, DigitMap):
        return found
    modes = tuple([(e, d if isinstance(d, tuple) else abs(d)) for e, d in found.modes])
    return DigitMap(reversed_as(modes, (), outer.offset)) if found.is_plain else found


def _group(mapping: DigitMap, inverse: Maps = maps.inverse) -> str | None:
    one, back = maps.identity(mapping.size), inverse(mapping)
    if maps.compose(back, mapping) != one or maps.compose(mapping, back) != one:
        return "the inverse does not undo the map"
    return None if maps.compose(mapping, one) == mapping == maps.compose(one, mapping) else "the identity"


def _plain_inverse(mapping: DigitMap) -> Any:
    """Invert the digits and keep the reversals where they were."""
    found = maps.inverse(mapping)
    if not mapping.is_plain or not isinstance(found, DigitMap):
        return found
    turned = {extent for extent, stride in mapping.modes if isinstance(stride, int) and stride < 0}
    modes = [(e, -abs(d) if k < len(turned) else abs(d)) for k, (e, d) in enumerate(found.modes) if isinstance(d, int)]
    return DigitMap(tuple(modes))


def _associated(triple: tuple[DigitMap, DigitMap, DigitMap], wrong: bool = False) -> str | None:
    a, b, c = triple
    left, right = (
        maps.compose(maps.compose(a, b), c),
        maps.compose(a, maps.compose(c, b) if wrong else maps.compose(b, c)),
    )
    return None if left == right else "the brackets matter"


def _triples() -> Iterator[tuple[DigitMap, DigitMap, DigitMap]]:
    some = some_maps()[::7]
    return product(some, some, some)


def tables(size: int = 6) -> Iterator[tuple[int, ...]]:
    """Return all permutations of some points."""
    return permutations(range(size))


def _normal(values: tuple[int, ...], canonical: Maps = maps.canonical) -> str | None:
    """The form has the values, and is a digit map exactly where one of all digit maps has them."""
    form = canonical(TableMap(values))
    if tuple(form.table().tolist()) != values:
        return "other values"
    known = {tuple(each.table().tolist()): each for e in ((6,), (2, 3), (3, 2)) for each in _digit_maps(e)}
    if isinstance(form, DigitMap) != (values in known):
        return "a digit map is not found"
    return None if form == known.get(values, TableMap(values)) else "another form of the same map"


def _increasing(table: TableMap) -> Any:
    """Look for digits that are not reversed."""
    form = maps.canonical(table)
    return table if isinstance(form, DigitMap) and any(isinstance(d, int) and d < 0 for _, d in form.modes) else form


_DIGITS = "layoutalg.hierarchy.bijection."
_MAPS = "layoutalg.hierarchy.bijection."
_TWELVE = "100 digit maps of 12 points, mixed bits too"

LAWS = (
    Law(
        "digits.carries",
        "The coordinates of the flat index x + m y are x and y.",
        ("layoutalg.ground.digits.point_at", "layoutalg.hierarchy.Box.point"),
        integers(_carries, partial(_carries, point_at=_row_major), "all extents >= 2, one axis before all others"),
    ),
    Law(
        "digits.bijection",
        "A permutation of digits, some reversed, has as digits of its value those of the index, moved, c or "
        "e - 1 - c; so it is a bijection.",
        (f"{_DIGITS}DigitMap.at", f"{_DIGITS}value_at"),
        integers(_bijective, partial(_bijective, value_at=_mirrored), _TWO),
    ),
    Law(
        "digits.composition",
        "A digit goes where the outer map takes it, reversed as the image of 0 shows: this is one map after the other.",
        (f"{_DIGITS}compose_digits", f"{_DIGITS}composed", f"{_DIGITS}reversed_as"),
        (
            *integers(
                _composes,
                partial(_composes, composed=_by_place),
                "two digits of any extents >= 2, both maps in either order, the inner one reversing the first and the "
                "outer one the second; the step of the induction",
            ),
            *enumerated(
                pairs,
                _composition,
                partial(_composition, compose=_unflipped),
                f"25 with each of {_TWELVE}",
                2500,
            ),
        ),
    ),
    Law(
        "digits.inverse",
        "A digit goes back to its weight, reversed again: A^-1 o A = 1 = A o A^-1.",
        (f"{_DIGITS}inverse_digits", f"{_DIGITS}turned_back"),
        (
            *integers(_turns_back, partial(_turns_back, back=_from_zero), _TWO),
            *enumerated(lambda: iter(some_maps()), _group, partial(_group, inverse=_plain_inverse), _TWELVE, 100),
        ),
    ),
    Law(
        "digits.associative",
        "(A o B) o C = A o (B o C), tables where the digits have no common refinement.",
        (f"{_MAPS}compose",),
        enumerated(
            _triples, _associated, partial(_associated, wrong=True), f"triples of every seventh of {_TWELVE}", 3375
        ),
        why_bounded="Equality of values is `digits.composition`; this law adds that the normal forms are equal.",
    ),
    Law(
        "digits.normal_form",
        "canonical(f) is f, a digit map exactly where one has its values, and equal functions have equal forms.",
        (f"{_MAPS}canonical", f"{_DIGITS}from_table", "layoutalg.ground.digits.read_table"),
        enumerated(tables, _normal, partial(_normal, canonical=_increasing), "all 720 permutations of 6 points", 720),
        why_bounded="That no other digit map has the values is seen on the list of all of them.",
    ),
)
