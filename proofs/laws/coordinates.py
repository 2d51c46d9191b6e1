"""Coordinates: digits and back, colexicographic order, and the ways to write a coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import (
    CoordinateLayout,
    CuteLayout,
    E,
    composition,
    crd2crd,
    crd2idx,
    idx2crd,
    make_identity_layout,
    right_inverse,
)
from layoutalg.cute.inttuple import IntTuple, congruent, flatten
from layoutalg.ground.digits import split
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index
from layoutalg.proofs.laws.term import every, implies, some
from layoutalg.proofs.laws.trial import Trial

_TWO = "all extents of two modes, all coordinates: step of the induction"
_THREE = "all extents of three modes, all coordinates"

Split = Callable[[Any, Iterable[Any]], tuple[tuple[Any, ...], Any]]


def _extents(trial: Trial) -> tuple[Any, Any]:
    return trial.extent("s"), trial.extent("t")


def _there_and_back(trial: Trial, split: Split = split) -> None:
    extents, i = _extents(trial), trial.integer("i")
    s, t = extents
    trial.assume(i >= 0, i < s * t)
    digits, rest = split(i, extents)
    for digit, extent in zip(digits, extents, strict=True):
        trial.claim(every(digit >= 0, digit < extent), "digits lie inside their extents")
    trial.claim(digits[0] + s * (digits[1] + t * rest) == i, "the digits make the coordinate")
    trial.claim(s * (digits[1] + t * rest) < s * t, "the slower digit lies inside")
    trial.claim(digits[1] + t * rest < t, "below its extent")
    trial.claim(rest == 0, "nothing is left behind the last digit")


def _truncating(index: Any, extents: Iterable[Any]) -> tuple[tuple[Any, ...], Any]:
    """Take every digit modulo the extent of the next mode."""
    digits, extents = [], tuple(extents)
    for place, extent in enumerate(extents):
        digits.append(index % extents[min(place + 1, len(extents) - 1)])
        index = index // extent
    return tuple(digits), index


def _back_and_there(trial: Trial, split: Split = split) -> None:
    extents = (*_extents(trial), trial.extent("u"))
    digits = digits_of(trial, "c", extents)
    found, rest = split(index(trial, digits, extents), extents)
    for digit, wanted in zip(found, digits, strict=True):
        trial.claim(digit == wanted, "splitting gives the digits back")
    trial.claim(rest == 0, "nothing is left")


def _ordered(trial: Trial, slow: int = 1) -> None:
    extents = _extents(trial)
    s = extents[0]
    given = digits_of(trial, "a", extents), digits_of(trial, "b", extents)
    i, j = [index(trial, digits, extents) for digits in given]
    one, two = [split(number, extents)[0] for number in (i, j)]
    trial.claim(implies(one[1] < two[1], s * (one[1] + 1) <= s * two[1]), "a slower digit outweighs a faster one")
    trial.claim(implies(two[1] < one[1], s * (two[1] + 1) <= s * one[1]), "on both sides")
    fast = 1 - slow
    before = some(one[slow] < two[slow], every(one[slow] == two[slow], one[fast] < two[fast]))
    trial.claim(implies(before, i < j), "coordinates in order have numbers in order")
    trial.claim(implies(i < j, before), "and numbers in order have coordinates in order")


def _row_major(index: Any, extents: Iterable[Any]) -> tuple[tuple[Any, ...], Any]:
    """Let the last mode run fastest, as in C."""
    digits, rest = split(index, tuple(extents)[::-1])
    return digits[::-1], rest


def _regrouped(trial: Trial, split: Split = split) -> None:
    s, t, u = trial.extent("s"), trial.extent("t"), trial.extent("u")
    a, b, c = digits_of(trial, "c", (s, t, u))
    i = index(trial, (a, b + t * c), (s, t * u))
    trial.claim(s * (b + 1) <= s * t, "the first two digits lie inside")
    trial.divides(i, s * t, c, a + s * b)
    trial.divides(c, u, 0, c)
    (first, second), rest = split(i, (s * t, u))
    trial.claim(every(first == a + s * b, second == c, rest == 0), "the coordinate in the other shape")
    trial.claim(first + s * t * second == i, "which has the same number")
    (first, second), rest = split(i, (s, t * u))
    trial.claim(every(first == a, second == b + t * c, rest == 0), "and back")


Case = tuple[IntTuple, int]
_SHAPES: tuple[IntTuple, ...] = (
    6, (2, 3), (3, 1, 2), ((2, 2), 3), (2, (3, (1, 2))), ((3,), (2, 2)), ((2, (3,)), 2), (1, (2, 1)), (4, (2, 3)),
)  # fmt: skip


def _cases() -> Iterator[Case]:
    for shape in _SHAPES:
        for i in range(math.prod(flatten(shape))):
            yield shape, i


def _natural(case: Case, idx2crd: Callable[[int, IntTuple], IntTuple] = idx2crd) -> str | None:
    shape, i = case
    coordinate = idx2crd(i, shape)
    if not congruent(coordinate, shape):
        return "the coordinate nests otherwise than the shape"
    if crd2idx(coordinate, shape) != i:
        return "the coordinate has another number"
    before = None if i == 0 else flatten(idx2crd(i - 1, shape))[::-1]
    return None if before is None or before < flatten(coordinate)[::-1] else "coordinates are not in order"


def _lexicographic(i: int, shape: IntTuple) -> IntTuple:
    """Let the last mode run fastest, as in C."""
    digits = iter(_row_major(i, flatten(shape))[0])

    def nested(value: IntTuple) -> IntTuple:
        return next(digits) if isinstance(value, int) else tuple([nested(entry) for entry in value])

    return nested(shape)


def _converted(case: tuple[IntTuple, IntTuple], convert: Callable[..., IntTuple] = crd2crd) -> str | None:
    source, target = case
    for i in range(math.prod(flatten(source))):
        coordinate = idx2crd(i, source)
        there = convert(coordinate, source, target)
        if convert(there, target, source) != coordinate:
            return "converting there and back changes the coordinate"
        if crd2idx(there, target) != i:
            return "the conversion has another number"
    return None


def _shape_pairs() -> Iterator[tuple[IntTuple, IntTuple]]:
    return ((a, b) for a, b in product(_SHAPES, repeat=2) if math.prod(flatten(a)) == math.prod(flatten(b)))


def _leaf_by_leaf(coordinate: IntTuple, source: IntTuple, target: IntTuple) -> IntTuple:
    """Keep the digits and nest them like the target."""
    return _lexicographic(crd2idx(coordinate, source), target)


def _forms(case: Case, call: Callable[..., int] = CuteLayout.__call__) -> str | None:
    shape, i = case
    strides = iter([7, 5, 100, 31])

    def nested(value: IntTuple) -> IntTuple:
        return next(strides) if isinstance(value, int) else tuple([nested(entry) for entry in value])

    layout = CuteLayout(shape, nested(shape))
    coordinate = idx2crd(i, shape)
    modes = coordinate if isinstance(coordinate, tuple) else (coordinate,)
    entries = shape if isinstance(shape, tuple) else (shape,)
    by_mode = tuple([crd2idx(mode, entry) for mode, entry in zip(modes, entries, strict=True)])
    values = {call(layout, i), call(layout, coordinate), call(layout, *modes), call(layout, *by_mode)}
    wanted = sum([c * d for c, d in zip(flatten(coordinate), flatten(layout.stride), strict=True)])
    return None if values == {wanted} else "a way to write the coordinate gives another offset"


def _past_the_end(layout: CuteLayout, *coordinate: IntTuple) -> int:
    """Read a 1-D coordinate as one of the first mode, which is never past its end."""
    first = coordinate[0]
    if len(coordinate) == 1 and isinstance(first, int):
        return first * flatten(layout.stride)[0]
    return layout(*coordinate)


Tensor = tuple[CoordinateLayout, CuteLayout, CuteLayout]


def _tensors() -> Iterator[Tensor]:
    tensors = [make_identity_layout((4, 6)), make_identity_layout((2, (2, 6)))]
    tensors += [CoordinateLayout((6, 4), (E(1), E(0))), CoordinateLayout((2, 3), (2 * E(0), E(0) + E(1)))]
    inner = [CuteLayout((2, 3), stride) for stride in product(range(5), repeat=2)]
    outer = [CuteLayout((4, 6), stride) for stride in ((1, 4), (6, 1), (0, 3))] + [
        CuteLayout((4, (2, 3)), (1, (12, 4)))
    ]
    return product(tensors, inner, outer)


def _read(case: Tensor, compose: Callable[[Any, Any], Any] = composition) -> str | None:
    tensor, inner, outer = case
    for one, two in ((tensor, inner), (outer, tensor)):
        try:
            found = compose(one, two)
        except LayoutError:
            continue
        if [found(i) for i in range(two.size)] != [one(two(i)) for i in range(two.size)]:
            return "the composition has another value"
    found = right_inverse(tensor)
    coordinates = [idx2crd(i, found.shape) for i in range(found.size)]
    return None if all(tensor(found(c)) == c for c in coordinates) else "the right inverse leads to another coordinate"


def _in_place(outer: Any, inner: Any) -> Any:
    """Put the strides where the modes stand, whatever basis element they name."""
    if isinstance(inner, CoordinateLayout):
        return composition(outer, make_identity_layout(inner.shape))
    return composition(outer, inner)


_NATURAL = "all coordinates of 9 nested shapes of at most 4 leaves"

LAWS = (
    Law(
        "coordinates.round_trip",
        "The digits of a 1-D coordinate lie inside their extents, make the coordinate again and leave nothing: "
        "crd2idx(idx2crd(i, S), S) = i; by induction over the modes.",
        ("layoutalg.cute.idx2crd", "layoutalg.ground.digits.split"),
        (
            *integers(_there_and_back, partial(_there_and_back, split=_truncating), _TWO),
            *enumerated(_cases, _natural, partial(_natural, idx2crd=_lexicographic), _NATURAL, 92),
        ),
    ),
    Law(
        "coordinates.unique",
        "idx2crd(crd2idx(c, S), S) = c: a coordinate is the only one with its number.",
        ("layoutalg.cute.idx2crd", "layoutalg.ground.digits.split"),
        integers(_back_and_there, partial(_back_and_there, split=_truncating), _THREE),
    ),
    Law(
        "coordinates.colexicographic",
        "Coordinates are numbered in colexicographic order: the first mode runs fastest.",
        ("layoutalg.cute.crd2idx", "layoutalg.cute.idx2crd", "layoutalg.ground.digits.split"),
        integers(_ordered, partial(_ordered, slow=0), _TWO),
    ),
    Law(
        "coordinates.tensors",
        "A coordinate layout C after L takes i to C(L(i)), L after C takes it to L(C(i)), and right_inverse(C) is an "
        "inverse on the coordinates that it has, wherever they are defined.",
        (
            "layoutalg.cute.composition.coordinates_after",
            "layoutalg.cute.composition.at_coordinates",
            "layoutalg.cute.composition._mode",
            "layoutalg.cute.inverse._right_of_coordinates",
        ),
        enumerated(
            _tensors, _read, partial(_read, compose=_in_place), "4 coordinate layouts, 25 inner and 4 outer", 400
        ),
        "a coordinate layout is one layout for each leaf of its value, and composition.value is about these",
    ),
    Law(
        "coordinates.conversion",
        "crd2crd keeps the 1-D coordinate, and converting there and back is the identity.",
        ("layoutalg.cute.crd2crd", "layoutalg.ground.digits.split"),
        (
            *integers(_regrouped, partial(_regrouped, split=_truncating), "(s, t u) and (s t, u) for all s, t and u"),
            *enumerated(
                _shape_pairs,
                _converted,
                partial(_converted, convert=_leaf_by_leaf),
                "all coordinates of all pairs of equal size of 9 nested shapes",
                27,
            ),
        ),
    ),
    Law(
        "coordinates.forms",
        "L(i), L(c), L(c_0, c_1, ...) with every mode as a number or nested are one offset: the sum of digits times "
        "strides.",
        ("layoutalg.cute.layout.CuteLayout.__call__", "layoutalg.cute.inttuple.offset_of"),
        enumerated(_cases, _forms, partial(_forms, call=_past_the_end), _NATURAL, 92),
        "how a coordinate nests is structure, not a value; the digits of each mode are proved for all values",
    ),
)
