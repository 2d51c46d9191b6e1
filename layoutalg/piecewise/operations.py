"""Operations on functions and sets: ISL answers within its budget, and every answer is confirmed at points.

Implementation notes: what has few points and no parameters is decided by listing them, without ISL. A witness is
evaluated; a wrong answer is refused (LA793), a function or set when something is read from it. ISL's own count is not
used: it returns 0 for parametric and unbounded sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.piecewise import confirm, questions
from layoutalg.piecewise.confirm import Cloud, DisagreementError, Values, comes_after, everywhere, judged, same, single
from layoutalg.piecewise.pieces import Array, evaluated
from layoutalg.piecewise.reading import Point, Witness, read_function, read_set
from layoutalg.piecewise.value import Value, answer, told_question

TILE_POINTS = 2**20


def _asked(ask: Callable[..., Any], judge: Callable[[Any], object], *operands: Any) -> Any:
    """Return ISL's answer to a question, checked; a function or set before anything is read from it."""
    found = answer(ask, *operands)

    def checked(found: Any) -> None:
        judged(lambda: told_question(ask, operands), lambda: judge(found))

    if isinstance(found, Value):
        return found.judged_by(checked)
    checked(found)
    return found


def _combined(
    ask: Callable[..., Any], wanted: Callable[[Cloud], Values], near: Sequence[Value], *operands: Any
) -> Value:
    """Return ISL's answer, to be compared with the expected values; see ``confirm.like``."""
    values = [operand for operand in operands if isinstance(operand, Value)]
    found: Value = _asked(ask, lambda found: confirm.like(found, wanted, near, values), *operands)
    return found


# functions


def union(left: Value, right: Value) -> Value:
    """Return the union of two functions, which must agree where both are defined."""

    def either(cloud: Cloud) -> Values:
        (mine, covered), (theirs, also) = cloud.of(left), cloud.of(right)
        return [np.where(covered, a, b) for a, b in zip(mine, theirs, strict=True)], covered | also

    return _combined(questions.union, either, (left, right), left, right)


def intersect(left: Value, right: Value) -> Value:
    """Return the function on the points where both are defined and agree."""

    def agreed(cloud: Cloud) -> Values:
        values, covered = cloud.of(left)
        return values, covered & ~_apart(left, right, cloud)

    return _combined(questions.intersect, agreed, (left,), left, right)


def restrict(function: Value, points: Value, outside: bool = False) -> Value:
    """Return the function on the points of a set, or on those outside."""

    def cut(cloud: Cloud) -> Values:
        values, covered = cloud.of(function)
        return values, covered & (cloud.of(points)[1] != outside)

    return _combined(questions.restrict, cut, (function,), function, points, outside)


def within(function: Value, points: Value) -> Value:
    """Return the function restricted to the points whose values are in a set."""

    def cut(cloud: Cloud) -> Values:
        values, covered = cloud.of(function)
        return values, covered & cloud.moved(values, covered).of(points)[1]

    return _combined(questions.within, cut, (function,), function, points)


def after(outer: Value, link: Value | None, inner: Value) -> Value:
    """Return ``outer`` after ``link`` (if any) after ``inner``, where all have a value."""
    if link is not None:
        inner = after(link, None, inner)
    return _combined(questions.after, lambda cloud: _through([inner, outer], cloud), (inner,), outer, inner)


def composed(outer: Value, link: Value | None, inner: Value) -> Value | tuple[Witness, Point]:
    """Return ``outer`` after ``link`` after ``inner``; or parameters and a point of ``inner`` where that is undefined.

    Args:
        outer: A function.
        link: A function from the outputs of ``inner`` to the inputs of ``outer``; None if they match one to one.
        inner: A function; the answer has its domain.

    Example:
        >>> f, g = (read_function(f"{{ [x] -> [{a}x] : 0 <= x < {n} }}")[0] for a, n in ((2, 7), (3, 3)))
        >>> composed(f, None, g).text, composed(g, None, f)
        ('{ [x] -> [(6x)] : 0 <= x <= 2 }', ({}, (2,)))
    """
    steps = [inner, *([] if link is None else [link]), outer]

    def judge(found: Value | tuple[Witness, Point]) -> None:
        if isinstance(found, Value):
            confirm.like(found, lambda cloud: _through(steps, cloud), steps[:1], steps)
            confirm.never("undefined", lambda cloud: cloud.of(inner)[1] & ~_through(steps, cloud)[1], steps[:1], steps)
            return
        here = single(*found)
        if not here.of(inner)[1].all() or _through(steps, here)[1].any():
            raise DisagreementError("not a point that leaves the domain", {**found[0], "at": found[1]})

    found: Value | tuple[Witness, Point] = _asked(questions.composed, judge, *steps)
    return found


def chain(stages: Sequence[str], points: str) -> Value:
    """Return a chain of one-piece functions given as text on the points of a set, first stage applied first.

    Example:
        >>> chain(["{ [i] -> [3i + 1] }", "{ [v] -> [v - v mod 3] }"], "{ [i] : 0 <= i < 4 }").text
        '{ [i] -> [(3i)] : 0 <= i <= 3 }'
    """
    found: Value = answer(questions.chain, points, *stages)
    return found


def substitute(value: Value, values: Mapping[str, int]) -> Value:
    """Return a function or set with some parameters replaced by numbers."""
    if not values:
        return value

    def put(cloud: Cloud) -> Values:
        return evaluated(value, {**cloud.params, **values}, cloud.places, (cloud.count,))

    def judge(found: Value) -> None:
        if set(found.params) - (set(value.params) - set(values)):
            raise DisagreementError("a parameter is left", dict(values))
        confirm.like(found, put, [])

    asked = value if value.is_set else value.settled()  # a function by its text
    found: Value = _asked(questions.substitute, judge, asked, dict(values))
    return found


def domain(function: Value) -> Value:
    """Return the set of points with a value."""
    return _combined(questions.domain, lambda cloud: ([], cloud.of(function)[1]), (function,), function)


def image(function: Value) -> Value:
    """Return the set of values."""
    found: Value = _asked(questions.image, lambda found: confirm.image_like(found, function), function)
    return found


def collision(function: Value) -> Witness | None:
    """Return two points with the same value, or None if the function is injective.

    Example:
        >>> collision(read_function("{ [i] -> [floor(i/2)] : 0 <= i < 4 }")[0])
        {'params': {}, 'points': ({'i': 0}, {'i': 1}), 'value': (0,)}
    """
    listed = table(function)
    if listed is not None:
        equal = confirm.first_collision(*listed)
        if equal is None:
            return None
        named = tuple(dict(zip(function.axes, point, strict=True)) for point in equal[:2])
        return {"params": {}, "points": named, "value": equal[2]}

    def judge(found: Any) -> None:
        if found is None:
            confirm.injective(function)
            return
        first, second = found["points"]
        for point in (first, second):
            if confirm.value_at(function, found["params"], tuple(point.values())) != found["value"]:
                raise DisagreementError("not this value", {"at": point})
        if first == second:
            raise DisagreementError("one point", {"at": first})

    found: Witness | None = _asked(questions.collision, judge, function)
    return found


def table(function: Value) -> tuple[list[Point], list[Point]] | None:
    """Return the points of a small function in lexicographic order and the values there; None if it is not small.

    Example:
        >>> table(read_function("{ [i] -> [i mod 2, i] : 0 <= i < 3 }")[0])
        ([(0,), (1,), (2,)], [(0, 0), (1, 1), (0, 2)])
    """
    cloud = everywhere([function])
    if cloud is None:
        return None
    values, covered = cloud.of(function)
    return cloud.rows(covered), cloud.chosen(covered, values).rows(covered[covered])


def difference(
    left: str | Value, right: str | Value, links: tuple[str, str] | None = None, operations: int | None = None
) -> tuple[Witness, Point] | None:
    """Return parameter values and a point where two functions differ or only one is defined; None if they are equal.

    Args:
        left: A function, or its text.
        right: A function, or its text.
        links: Maps from common digits to the inputs of each side, with the same domain; None if the inputs already
            match. The answer is a point of the common digits.
        operations: ISL operation quota; None for the time limit only.

    Example:
        >>> f, g = "{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [2x + floor(x/3)] : 0 <= x < 4 }"
        >>> difference(f, f), difference(f, g)
        (None, ({}, (3,)))
    """
    sides = (left, right, *(links or ()))
    read = [side if isinstance(side, Value) else read_function(side, "", operations)[0] for side in sides]
    first, other, *ties = read
    near = ties[:1] or [first, other]

    def apart(cloud: Cloud) -> Array:
        return _apart(first, other, cloud, ties)

    cloud = everywhere(near)
    if cloud is not None:
        listed = cloud.rows(apart(cloud))
        return ({}, listed[0]) if listed else None
    found: tuple[Witness, Point] | None = answer(questions.difference, first, other, *ties, operations=operations)

    def judge() -> None:
        if found is None:
            confirm.never("a difference", apart, near, [first, other])
        elif not apart(single(*found)).all():
            raise DisagreementError("no difference", {**found[0], "at": found[1]})

    judged("equality of two functions", judge)
    return found


def _apart(left: Value, right: Value, cloud: Cloud, ties: Sequence[Value] = ()) -> Array:
    """Return where two functions differ, each composed with its tie if there are ties."""
    (first, defined), (second, also) = (
        _through([*ties[place : place + 1], side], cloud) for place, side in enumerate((left, right))
    )
    apart = defined != also
    for a, b in zip(first, second, strict=True):
        apart = apart | (defined & also & np.asarray(a != b, dtype=bool))
    return np.asarray(apart)


def _through(steps: Sequence[Value], cloud: Cloud) -> Values:
    """Return the values of a chain of functions, and where all are defined."""
    values, covered = cloud.of(steps[0])
    for step in steps[1:]:
        values, defined = cloud.moved(values, covered).of(step)
        covered = covered & defined
    return values, covered


# sets


_RULES: dict[str, Callable[[Array, Array], Array]] = {
    "union": lambda a, b: a | b,
    "intersect": lambda a, b: a & b,
    "subtract": lambda a, b: a & ~b,
}


def combined_sets(operation: str, left: Value, right: Value) -> Value:
    """Return the union, intersect or subtract of two sets."""

    def wanted(cloud: Cloud) -> Values:
        return [], _RULES[operation](cloud.of(left)[1], cloud.of(right)[1])

    return _combined(questions.combined_sets, wanted, (left, right), left, right, operation)


def overlap(sets: Sequence[Value]) -> tuple[int, int, Witness] | None:
    """Return the positions of two sets that overlap, with a common point; None if all are disjoint.

    Example:
        >>> overlap([read_set(f"{{ [i] : {guard} }}") for guard in ("i < 3", "i > 5", "2 <= i < 4")])
        (0, 2, {'i': 2})
    """
    question = "do two guards overlap"
    found = answer(questions.overlap, *sets)
    if found is None:
        return None
    before, index, params, point = found
    for place in (before, index):
        judged(question, partial(_member, sets[place], params, point))
    return before, index, {**params, **dict(zip(sets[0].axes, point, strict=True))}


def set_difference(left: Value, right: Value) -> Witness | None:
    """Return parameter values and a point in exactly one of two sets; None if they are equal."""

    def apart(cloud: Cloud) -> Array:
        return np.asarray(cloud.of(left)[1] != cloud.of(right)[1])

    def judge(found: Any) -> None:
        if found is None:
            confirm.never("a difference", apart, [left, right])
        elif not apart(single(*found)).all():
            raise DisagreementError("no difference", {**found[0], "at": found[1]})

    cloud = everywhere([left, right])
    if cloud is not None:
        listed = cloud.rows(apart(cloud))
        return dict(zip(left.axes, listed[0], strict=True)) if listed else None
    found = _asked(questions.set_difference, judge, left, right)
    return None if found is None else {**found[0], **dict(zip(left.axes, found[1], strict=True))}


def sample(points: Value) -> Witness | None:
    """Return parameter values and a point of a set, or None if it is empty."""
    listed = members(points)
    if listed is not None:
        return dict(zip(points.axes, listed[0], strict=True)) if listed else None

    def judge(found: Any) -> None:
        if found is None:
            confirm.never("a point", lambda cloud: cloud.of(points)[1], [points])
        else:
            _member(points, *found)

    found = _asked(questions.sample, judge, points)
    return None if found is None else {**found[0], **dict(zip(points.axes, found[1], strict=True))}


def members(points: Value) -> list[Point] | None:
    """Return all points of a small set, in lexicographic order; None if it is not small.

    Example:
        >>> members(read_set("{ [i, j] : 0 <= i < 3 and 0 <= j < 3 and (3i + j) mod 2 = 0 }"))
        [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)]
    """
    cloud = everywhere([points])
    return None if cloud is None else cloud.rows(cloud.of(points)[1])


def _member(points: Value, params: Mapping[str, Any], point: Sequence[int]) -> None:
    if not single(params, point).of(points)[1].all():
        raise DisagreementError("not a point of the set", {**params, "at": tuple(point)})


def bounds(points: Value) -> tuple[tuple[int, int] | None, ...] | None:
    """Return the inclusive bounds per axis for all parameter values, None for an axis without; None for no points."""
    listed = members(points)
    if listed is not None:
        return _spans(listed)

    def judge(found: Any) -> None:
        def outside(cloud: Cloud) -> Array:
            inside = np.full(cloud.count, found is not None)
            for place, bound in zip(cloud.places, found or (), strict=found is not None):
                if bound is not None:
                    inside = inside & np.asarray((place >= bound[0]) & (place <= bound[1]), dtype=bool)
            return np.asarray(cloud.of(points)[1] & ~inside)

        confirm.never("a point outside its bounds", outside, [points])

    found: tuple[tuple[int, int] | None, ...] | None = _asked(questions.bounds, judge, points)
    return found


def _spans(listed: Sequence[Point]) -> tuple[tuple[int, int] | None, ...] | None:
    return tuple((min(line), max(line)) for line in zip(*listed, strict=True)) if listed else None


def extreme(points: Value, largest: bool) -> Value | tuple[Witness, Point]:
    """Return the lexicographic optimum of a set as a function without inputs; a point of the set if it is unbounded."""

    def judge(found: Any) -> None:
        if not isinstance(found, Value):
            _member(points, *found)
            return
        cloud = confirm.together([points], [found])
        best, defined = evaluated(found, cloud.params, (), (cloud.count,))
        inside = cloud.of(points)[1]
        same("a point where there is no optimum", inside & ~defined, np.zeros(cloud.count, dtype=bool), cloud)
        chosen = cloud.moved(best, defined).of(points)[1]
        same("an optimum outside the set", defined & ~chosen, np.zeros(cloud.count, dtype=bool), cloud)
        first, second = (cloud.places, best) if largest else (best, cloud.places)
        better = inside & comes_after(first, second, cloud.count)
        same("a better point", better, np.zeros(cloud.count, dtype=bool), cloud)

    found: Value | tuple[Witness, Point] = _asked(questions.extreme, judge, points, largest)
    return found


def partial_tiles(points: Value, position: int, tile: int) -> Value:
    """Return the points of a digit set whose tile (all values of one axis in [0, tile)) is incomplete.

    Args:
        points: A set.
        position: Position of the axis within the tile.
        tile: Its extent.
    """

    def ragged(cloud: Cloud) -> Values:
        whole = np.ones(cloud.count, dtype=bool)
        count = max(1, TILE_POINTS // max(1, cloud.count))
        steps = range(tile) if tile <= count else np.random.default_rng(0).integers(0, tile, count).tolist()
        for step in steps:
            places = [np.full_like(place, step) if k == position else place for k, place in enumerate(cloud.places)]
            whole = whole & evaluated(points, cloud.params, places, (cloud.count,))[1]
        return [], cloud.of(points)[1] & ~whole

    def judge(found: Value) -> None:
        if tile <= TILE_POINTS // 512:
            confirm.like(found, ragged, [points])

    found: Value = _asked(questions.partial_tiles, judge, points, position, tile)
    return found


# boxes from the origin


@dataclass(frozen=True, slots=True)
class NotABox:
    """Why a domain is not a box from the origin; ``witness`` may give a missing point."""

    because: str
    witness: dict[str, object] = field(default_factory=dict)


def extents(function: Value) -> tuple[int, ...] | NotABox:
    """Return the extents of the domain of a function, or why it is not a box from the origin.

    A small domain is listed; ISL is asked about others.

    Example:
        >>> extents(read_function("{ [i, j] -> [i] : 0 <= i <= 2 and 0 <= j <= 3 }")[0])
        (3, 4)
        >>> extents(read_function("{ [i, j] -> [i] : 0 <= i <= 2 and 0 <= j <= i }")[0]).because
        'its domain has holes in the box (3, 3)'
    """
    if function.params:
        return NotABox(f"it has the parameter {function.params[0]}")
    if function.box is None:
        function.box = _extents(function)
    found: tuple[int, ...] | NotABox = function.box
    return found


def _extents(function: Value) -> tuple[int, ...] | NotABox:
    listed = members(function)
    inside = function if listed is not None else domain(function)
    spans = bounds(inside) if listed is None else _spans(listed)
    if spans is None or None in spans:
        return NotABox("its domain is empty or unbounded")
    late = next((k for k, span in enumerate(spans) if span is not None and span[0] != 0), None)
    if late is not None:
        return NotABox(f"input {late} does not start at 0")
    found = tuple(span[1] + 1 for span in spans if span is not None)
    if listed is not None and len(listed) == math.prod(found):
        return found
    hole = set_difference(_whole_box(found), inside)
    return found if hole is None else NotABox(f"its domain has holes in the box {found}", {"at": tuple(hole.values())})


def _whole_box(found: Sequence[int]) -> Value:
    names = [f"x{k}" for k in range(len(found))]
    bounds = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, n in zip(names, found, strict=True))])
    return read_set(f"{{ [{', '.join(names)}] : {bounds} }}")


def link(outer: Value, inner: Value) -> Value | None:
    """Return the map from the outputs of an inner function to the axes of an outer one; None if they match one to one.

    A single output is read as the flat index of a total layout with several axes or none.

    Example:
        >>> f = read_function("{ [r, c] -> [(8r + c)] : 0 <= r <= 3 and 0 <= c <= 7 }")[0]
        >>> link(f, read_function("{ [i] -> [(4i)] : 0 <= i <= 7 }")[0]).text
        '{ [v] -> [((v) mod 4), (floor((v)/4))] }'
    """
    axes, outputs = len(outer.axes), len(inner.outputs)
    if outputs == axes:
        return None
    found = extents(outer)
    if outputs != 1 or isinstance(found, NotABox):
        because = f"{outputs} outputs cannot feed {axes} axes"
        where = (outer.text[:200], f"after {inner.text[:200]}")
        raise AdmissibilityError(Diagnostic("LA650", "the piecewise layouts do not compose", where, because))
    if not found:
        return read_function("{ [v] -> [] : v = 0 }")[0]
    parts, weight = [], 1
    for position, extent in enumerate(found):
        digit = f"floor(v/{weight})" if weight > 1 else "v"
        parts.append(digit if position == len(found) - 1 else f"{digit} mod {extent}")  # no mod on the last digit
        weight *= extent
    return read_function(f"{{ [v] -> [{', '.join(parts)}] }}")[0]
