"""Confirm ISL's answers at points: both sides are evaluated with numpy and compared.

A small box is compared at all its points; a larger or parametric one at a corner and random points, which can refute
but not prove. The boxes come from interval arithmetic, not from ISL; the choice of points is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Any, NoReturn, TypeAlias

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.piecewise.boxes import Span, box, hull
from layoutalg.piecewise.pieces import SAFE, Array, evaluated
from layoutalg.piecewise.value import Value

Values: TypeAlias = "tuple[list[Array], Array]"
Point: TypeAlias = "tuple[int, ...]"
POINTS = 2**13
"""Most points of a box that is listed whole."""
WORK = 2**24
SAMPLES = 512
VECTORS = 6
TRIED = 14
FAR = 2**24
"""How far an open span is looked at."""


WRONG = "LA793"
"""Code of the error for an answer of ISL that is wrong."""


class DisagreementError(Exception):
    """The answer is wrong at a point."""

    def __init__(self, what: str, at: Mapping[str, object]) -> None:
        super().__init__(f"{what} at {dict(at)}")
        self.at = dict(at)


def doubted(question: str | Callable[[], str], error: DisagreementError) -> NoReturn:
    """Raise: ISL's answer is wrong."""
    what = "ISL's answer is wrong, and no other method worked"
    told = question if isinstance(question, str) else question()
    raise BudgetError(Diagnostic(WRONG, what, (told[:200],), str(error)[:400], error.at))


def judged(question: str | Callable[[], str], judge: Callable[[], object]) -> None:
    """Check an answer of ISL."""
    try:
        judge()
    except DisagreementError as error:
        doubted(question, error)


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points, each with its own parameters."""

    params: Mapping[str, Array]  # one array per parameter
    places: tuple[Array, ...]  # one array per axis
    count: int  # number of points
    exact: bool  # whether these are all points of the box they were chosen from, at these parameters

    def of(self, value: Value) -> Values:
        """Return the outputs of a function at the points, and where it is defined."""
        return evaluated(value, self.params, self.places, (self.count,))

    def moved(self, values: Sequence[Array], covered: Array) -> Cloud:
        """Return other points at the same parameters, 0 where not covered."""
        return Cloud(self.params, tuple(np.where(covered, value, 0) for value in values), self.count, False)

    def chosen(self, covered: Array, values: Sequence[Array]) -> Cloud:
        """Return other points at the same parameters, only those covered."""
        params = {name: value[covered] for name, value in self.params.items()}
        return Cloud(params, tuple(value[covered] for value in values), int(covered.sum()), False)

    def rows(self, covered: Array) -> list[Point]:
        """Return the covered points as tuples."""
        if not self.places:
            return [()] * int(covered.sum())
        return list(zip(*(place[covered].tolist() for place in self.places), strict=True))


def clouds(near: Sequence[Value], also: Sequence[Value] = ()) -> list[Cloud]:
    """Return points of the boxes of some functions or sets on the same axes, one cloud per choice of the parameters.

    Args:
        near: The functions.
        also: Others whose parameters need values.

    Example:
        >>> from layoutalg.piecewise.sets import PointSet
        >>> [cloud] = clouds([PointSet("{ [i, j] : 0 <= i <= j < 2 }").value])
        >>> [place.tolist() for place in cloud.places], cloud.exact
        ([[0, 0, 1, 1], [0, 1, 0, 1]], True)
    """
    names = sorted({name for value in (*near, *also) for name in value.params})
    limit = max(16, min(POINTS, WORK // (1 + sum(value.weight for value in (*near, *also)))))
    if not names:
        return [_cloud(near, {}, limit, SAMPLES, 0)]
    found: list[Cloud] = []
    source = Random(len(names))
    for tried in range(TRIED):
        clock.check("points to judge an answer at")
        params = {name: _parameter(tried, source) for name in names}
        found.append(_cloud(near, params, max(16, limit // VECTORS), SAMPLES // 2, tried))
        if sum(1 for cloud in found if cloud.count) >= VECTORS:
            break
    return found


def together(near: Sequence[Value], also: Sequence[Value] = ()) -> Cloud:
    """Return the points of ``clouds`` as one cloud."""
    found = clouds(near, also)
    if len(found) == 1:
        return found[0]
    params = {name: np.concatenate([cloud.params[name] for cloud in found]) for name in found[0].params}
    places = tuple(np.concatenate(lines) for lines in zip(*(cloud.places for cloud in found), strict=True))
    return Cloud(params, places, sum(cloud.count for cloud in found), False)


def everywhere(near: Sequence[Value]) -> Cloud | None:
    """Return all points of the boxes of some functions without parameters, if these are few; else None."""
    if any(value.params for value in near):
        return None
    [cloud] = clouds(near)
    return cloud if cloud.exact else None


def single(params: Mapping[str, object], point: Sequence[int]) -> Cloud:
    """Return one point as a cloud."""
    known = {name: np.array([value], dtype=object) for name, value in params.items()}
    return Cloud(known, tuple(np.array([value], dtype=object) for value in point), 1, False)


def _parameter(tried: int, source: Random) -> int:
    """Return a value for a parameter: small positive ones first, then also negative and large ones."""
    if tried < TRIED // 2:
        return source.randint(1, 12)
    power: int = 2 ** source.randint(0, 20)
    return source.choice([source.randint(-6, 40), source.randint(0, 6), source.randint(0, 2000), power])


def _cloud(near: Sequence[Value], params: Mapping[str, int], limit: int, samples: int, vector: int) -> Cloud:
    spans = [found for found in (box(value, params) for value in near) if found is not None]
    if not spans:
        return _at(params, tuple(np.zeros(0, dtype=np.int64) for _ in near[0].axes), 0, True)
    whole = [reduce(hull, axis) for axis in zip(*spans, strict=True)]
    lengths = [None if low is None or high is None else max(0, high - low + 1) for low, high in whole]
    size = math.prod(length or 0 for length in lengths)
    if None not in lengths and 0 < size <= limit:
        return _at(params, _grid([low or 0 for low, _ in whole], [length or 0 for length in lengths]), size, True)
    side = max(1, int((samples // 2) ** (1 / max(1, len(whole)))))
    starts = [low if low is not None else min(high - 4, -2) if high is not None else -2 for low, high in whole]
    sides = [
        side if high is None else max(1, min(side, high - start + 1))
        for start, (_, high) in zip(starts, whole, strict=True)
    ]
    source = np.random.default_rng(vector)
    drawn = [_drawn(span, source, samples // 2) for span in whole]
    places = tuple(np.concatenate(pair) for pair in zip(_grid(starts, sides), drawn, strict=True))
    return _at(params, places, len(places[0]) if places else 1, False)


def _at(params: Mapping[str, int], places: tuple[Array, ...], count: int, exact: bool) -> Cloud:
    return Cloud({name: _line([value] * count) for name, value in params.items()}, places, count, exact)


def _line(values: Sequence[int]) -> Array:
    return np.array(values, dtype=object if max(map(abs, values), default=0) >= SAFE // 2 else np.int64)


def _grid(starts: Sequence[int], lengths: Sequence[int]) -> tuple[Array, ...]:
    """Return all points of a box, last axis fastest; numpy itself is limited to 64 axes."""
    rest, lines = np.arange(math.prod(lengths), dtype=np.int64), []
    for start, length in zip(reversed(starts), reversed(lengths), strict=True):
        rest, digit = np.divmod(rest, length)
        wide = abs(start) + length >= SAFE // 2
        lines.append((digit.astype(object) if wide else digit) + start)
    return tuple(reversed(lines))


def _drawn(span: Span, source: np.random.Generator, count: int) -> Array:
    """Return numbers of a span: a third of any size, and a third near each end."""
    low, high = span
    if low is None and high is None:
        low, high = -FAR, FAR
    low, high = (high or 0) - FAR if low is None else low, (low or 0) + FAR if high is None else high
    width, part, cases = max(0, high - low), source.random(count), source.integers(0, 3, count)
    if None in span:  # powers favour places near the end of the span, or near 0
        part = part**4
        if span[0] is None:
            part = 1 - part if span[1] is not None else 0.5 + np.where(cases == 1, part, -part) / 2
    near = source.integers(0, min(8, width) + 1, count)
    wide = max(abs(low), abs(high)) >= SAFE // 2
    inside = _line([int(x * 2**53) * width >> 53 for x in part.tolist()])
    near, inside = (line.astype(object) if wide else line for line in (near, inside))
    return np.where(cases == 0, inside, np.where(cases == 1, near, width - near)) + low


# what an answer is compared with


def same(what: str, found: Array, wanted: Array, cloud: Cloud) -> None:
    """Raise at the first point where two arrays differ."""
    wrong = np.asarray(found != wanted, dtype=bool)
    if wrong.any():
        at = int(np.argmax(np.broadcast_to(wrong, (cloud.count,))))
        params = {name: int(value[at]) for name, value in cloud.params.items()}
        raise DisagreementError(what, {**params, "at": tuple(int(place[at]) for place in cloud.places)})


def never(what: str, test: Callable[[Cloud], Array], near: Sequence[Value], also: Sequence[Value] = ()) -> None:
    """Check that a predicate is false at the points of the boxes of some functions."""
    cloud = together(near, also)
    same(what, test(cloud), np.zeros(cloud.count, dtype=bool), cloud)


def like(found: Value, wanted: Callable[[Cloud], Values], near: Sequence[Value], also: Sequence[Value] = ()) -> None:
    """Compare a function or set with its expected values.

    Args:
        found: The function.
        wanted: Returns the expected values at points, and where they are defined.
        near: Functions whose boxes, with that of ``found``, contain all points where anything is defined.
        also: Others that ``wanted`` evaluates.

    Raises: DisagreementError: With a point.
    """
    cloud = together([found, *near], also)
    values, covered = cloud.of(found)
    expected, defined = wanted(cloud)
    same("defined or not", covered, defined, cloud)
    for value, other in zip(values, expected, strict=True):
        same("another value", np.where(covered, value, 0), np.where(covered, other, 0), cloud)


def image_like(found: Value, function: Value) -> None:
    """Compare a set with the values of a function: nothing missing and, if all points are listed, nothing extra."""
    for cloud in clouds([function], [found]):
        values, covered = cloud.of(function)
        images = cloud.chosen(covered, values)
        inside = images.of(found)[1]
        same("a value that is missing", inside, np.ones(images.count, dtype=bool), images)
        if not cloud.exact or cloud.params or not values:
            continue
        taken = set(images.rows(inside))
        for every in clouds([found]):
            members = every.rows(every.of(found)[1])
            wrong = next((point for point in members if point not in taken), None)
            if wrong is not None:
                raise DisagreementError("a point that is not a value", {"value": wrong})


def inverse_of(found: Value, function: Value, least: bool = False) -> int:
    """Compare a function with the inverse of another; with ``least``, to the least point of every value.

    Returns:
        At how many points of ``function``.
    """
    cloud = together([function], [found])
    values, covered = cloud.of(function)
    covered_points = covered.sum()
    images, start = cloud.chosen(covered, values), cloud.chosen(covered, cloud.places).places
    back, inside = images.of(found)
    true = np.ones(images.count, dtype=bool)
    same("a value without a point", inside, true, images)
    if least:
        there, defined = images.moved(back, inside).of(function)
        same("a point outside", defined, true, images)
        for value, image in zip(there, images.places, strict=True):
            same("a point with another value", value, image, images)
        same("a point that is not the least", comes_after(back, start, images.count), ~true, images)
    else:
        for line, origin in zip(back, start, strict=True):
            same("another point", line, origin, images)
    every = together([found], [function])
    back, inside = every.of(found)
    there, covered = every.moved(back, inside).of(function)
    same("not a value", inside & ~covered, np.zeros(every.count, dtype=bool), every)
    for value, place in zip(there, every.places, strict=True):
        same("another value", np.where(inside, value, 0), np.where(inside, place, 0), every)
    return int(covered_points)


def injective(function: Value) -> None:
    """Check that no two sample points have the same value."""
    for cloud in clouds([function]):
        values, covered = cloud.of(function)
        equal = first_collision(cloud.rows(covered), cloud.chosen(covered, values).rows(covered[covered]))
        if equal is not None:
            raise DisagreementError("two points have one value", {"at": equal[:2]})


def first_collision(points: Sequence[Point], values: Sequence[Point]) -> tuple[Point, Point, Point] | None:
    """Return two different points with the same value, and the value; or None.

    Example:
        >>> first_collision([(0,), (1,), (2,)], [(5,), (6,), (5,)])
        ((0,), (2,), (5,))
    """
    seen: dict[Point, Point] = {}
    for point, value in zip(points, values, strict=True):
        if seen.setdefault(value, point) != point:
            return seen[value], point, value
    return None


def comes_after(first: Sequence[Array], second: Sequence[Array], count: int) -> Array:
    """Return where the first points are lexicographically greater than the second ones."""
    answer, equal = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for left, right in zip(first, second, strict=True):
        answer = answer | (equal & np.asarray(left > right, dtype=bool))
        equal = equal & np.asarray(left == right, dtype=bool)
    return answer


def value_at(function: Value, params: Mapping[str, Any], point: Sequence[int]) -> Point | None:
    """Return the value of a function at one point, None if it is undefined."""
    values, covered = single(params, point).of(function)
    return tuple(int(value.item()) for value in values) if covered.all() else None
