"""What the answers to single questions should be: operations, injectivity, optima, extents, left inverses.

Main definitions: ``operation_like``, ``injective``, ``optimum_of``, ``extents_of``, ``total_on``, ``left_inverse_of``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import (
    DisagreementError,
    Judged,
    Values,
    as_inputs,
    as_set,
    comes_after,
    function_like,
    held,
    image_like,
    moved,
    no_point,
    same,
    set_like,
    valued,
)
from layoutalg.piecewise.meaning import Array, Meaning, read


def operation_like(operation: str, found: str, operands: Sequence[Meaning]) -> object:
    """Compare the answer of an operation, point by point, with what it should be."""
    first, other = operands[0], operands[-1]

    def both(cloud: Cloud) -> tuple[list[Array], Array, list[Array], Array]:
        return (*valued(first, cloud), *valued(other, cloud))

    def either(cloud: Cloud) -> Values:
        mine, covered, theirs, also = both(cloud)
        return [np.where(covered, a, b) for a, b in zip(mine, theirs, strict=True)], covered | also

    def agreed(cloud: Cloud) -> Values:
        mine, covered, theirs, also = both(cloud)
        same = covered & also
        for a, b in zip(mine, theirs, strict=True):
            same = same & np.asarray(a == b, dtype=bool)
        return mine, same

    def cut(keep: Callable[[Cloud, list[Array], Array], Array]) -> Callable[[Cloud], Values]:
        def wanted(cloud: Cloud) -> Values:
            values, covered = valued(first, cloud)
            return values, covered & keep(cloud, values, covered)

        return wanted

    def inner(cloud: Cloud) -> tuple[Cloud, Array]:
        values, covered = valued(other, cloud)
        return moved(cloud, values, covered), covered

    def composed(cloud: Cloud) -> Values:
        there, covered = inner(cloud)
        values, also = valued(first, there)
        return values, covered & also

    def outside(cloud: Cloud) -> Array:
        there, covered = inner(cloud)
        return covered & ~valued(first, there)[1]

    def function(wanted: Callable[[Cloud], Values], *near: Meaning) -> object:
        return function_like(found, wanted, near, operands)

    def points(wanted: Callable[[Cloud], Array], *near: Meaning) -> object:
        return set_like(found, wanted, near, operands)

    match operation:
        case "union":
            return function(either, first, other)
        case "intersect":
            return function(agreed, first)
        case "restrict":
            return function(cut(lambda cloud, *_: held(other, cloud)), first)
        case "remove":
            return function(cut(lambda cloud, *_: ~held(other, cloud)), first)
        case "within":
            return function(cut(lambda cloud, values, covered: held(other, moved(cloud, values, covered))), first)
        case "after":
            return function(composed, other)
        case "constant_set":
            return function(lambda cloud: ([], held(first, cloud)), as_inputs(first))
        case "domain":
            return points(lambda cloud: valued(first, cloud)[1], as_set(first))
        case "outside":
            return points(outside, as_set(other))
        case "range":
            return image_like(found, first)
        case "image":
            return image_like(found, first, lambda cloud: held(other, cloud), [other], [as_inputs(other)])
        case "union_set":
            return points(lambda cloud: held(first, cloud) | held(other, cloud), first, other)
        case "intersect_set":
            return points(lambda cloud: held(first, cloud) & held(other, cloud), first)
        case _:
            return points(lambda cloud: held(first, cloud) & ~held(other, cloud), first)


def injective(function: Meaning) -> Judged:
    """Confirm that no two of the points compared have one value."""
    points, exact = 0, True
    for cloud in clouds((function, function.inputs), width=function.inputs):
        values, covered = valued(function, cloud)
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        lines = [value[covered].tolist() for value in values]
        places = [place[covered].tolist() for place in cloud.places]
        count = int(covered.sum())
        for index in range(count):
            value, point = tuple(line[index] for line in lines), tuple(place[index] for place in places)
            if seen.setdefault(value, point) != point:
                raise DisagreementError("two points have one value", {**cloud.params, "at": (seen[value], point)})
        points, exact = points + cloud.count, exact and cloud.exact and not cloud.params
    return Judged(points, exact)


def optimum_of(text: str, points: Meaning, largest: bool) -> Judged:
    """Confirm that a function without inputs gives a point of a set that none of the points compared comes before."""
    found = read(text)
    seen, exact = 0, True
    for cloud in clouds((points, None), width=points.outputs, also=[found]):
        best, defined, _ = found.values(cloud.given(found), ())
        members = held(points, cloud)
        if not defined.all():
            same("a point where there is no optimum", members, np.zeros_like(members), cloud)
            continue
        one = Cloud(cloud.params, tuple(np.asarray(value).reshape(1) for value in best), 1, False)
        same("an optimum outside the set", held(points, one), np.ones(one.shape, dtype=bool), one)
        lines = [np.broadcast_to(value, cloud.shape) for value in best]
        better = comes_after(cloud.places, lines) if largest else comes_after(lines, cloud.places)
        same("a better point", members & better, np.zeros_like(members), cloud)
        seen, exact = seen + cloud.count, exact and cloud.exact and not cloud.params
    return Judged(seen, exact)


def extents_of(text: str, points: Meaning) -> Judged:
    """Confirm the extents of a box by counting, wherever all points of the set are listed."""
    found = read(text)
    seen, exact = 0, True
    for cloud in clouds((points, None), width=points.outputs, also=[found]):
        sizes, defined, _ = found.values(cloud.given(found), ())
        members = held(points, cloud)
        total = 1
        for size in sizes:
            total *= int(size)
        count = int(members.sum())
        if not defined.all():
            same("a point of an empty box", members, np.zeros_like(members), cloud)
        elif cloud.exact and count != total:
            raise DisagreementError(f"{count} points, not {total}", cloud.params)
        seen, exact = seen + cloud.count, exact and cloud.exact and not cloud.params
    return Judged(seen, exact)


def total_on(text: str, extents: Sequence[int]) -> Judged:
    """Confirm that a function is defined exactly on a box from the origin."""
    box = " and ".join(["0 = 0", *(f"0 <= x{k} < {extent}" for k, extent in enumerate(extents))])
    whole = read(f"{{ [{', '.join(f'x{k}' for k in range(len(extents)))}] : {box} }}")
    found = read(text)
    return no_point(lambda cloud: valued(found, cloud)[1] != held(whole, cloud), [whole, as_set(found)], len(extents))


def left_inverse_of(text: str, function: Meaning, extents: Sequence[int]) -> Judged:
    """Confirm the function from values to flat indices, 0 between the values."""
    found = read(text)
    points, exact = 0, True
    for cloud in clouds((function, function.inputs), width=function.inputs):
        values, covered = valued(function, cloud)
        index, weight = np.zeros(cloud.shape, dtype=object), 1
        for place, extent in zip(cloud.places, extents, strict=True):
            index, weight = index + weight * place.astype(object), weight * extent
        images = Cloud({}, tuple(value[covered] for value in values), int(covered.sum()), False)
        back, defined = valued(found, images)
        same("a value without an index", defined, np.ones_like(defined), images)
        same("another index", back[0], index[covered], images)
        taken = set(images.places[0].tolist())
        for every in clouds((found, 1), width=1):
            back, defined = valued(found, every)
            zero = np.array([value not in taken for value in every.places[0].tolist()]) & defined
            if cloud.exact:
                same("an index of no value", np.where(zero, back[0], 0), np.zeros_like(back[0]), every)
            exact = exact and every.exact
        points, exact = points + cloud.count, exact and cloud.exact
    return Judged(points, exact)
