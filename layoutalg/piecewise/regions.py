"""Operations on sets given as ISL text; every answer of ISL is checked before it is used.

Implementation notes: as in ``functions``. ISL's own count is not used: it returns 0 for parametric and unbounded sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from layoutalg.piecewise import confirm, questions, small
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import DisagreementError, comes_after, held, judged, same
from layoutalg.piecewise.explicit import Witness
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read

TILE_POINTS = 2**20


def _combined(
    ask: Callable[..., str], left: str, right: str, rule: Callable[[Array, Array], Array], both: bool = False
) -> str:
    """Return the set of points selected by a rule of their membership in two sets."""
    first, other = read(left), read(right)

    def wanted(cloud: Cloud) -> Array:
        return rule(held(first, cloud), held(other, cloud))

    near = [first, other] if both else [first]
    return confirm.answered(ask, (left, right), lambda found: confirm.set_like(found, wanted, near, [first, other]))


def union(left: str, right: str) -> str:
    """Return the points in either set."""
    return _combined(questions.union_sets, left, right, lambda a, b: a | b, both=True)


def intersect(left: str, right: str) -> str:
    """Return the points in both sets."""
    return _combined(questions.intersect_sets, left, right, lambda a, b: a & b)


def subtract(left: str, right: str) -> str:
    """Return the points of the first set outside the second."""
    return _combined(questions.subtract_sets, left, right, lambda a, b: a & ~b)


def substitute(text: str, values: Mapping[str, int]) -> str:
    """Return a set with some parameters replaced by numbers."""
    if not values:
        return text
    whole = read(text)

    def judge(found: str) -> None:
        confirm.parameters_gone(found, whole, values)
        near = confirm.fixed(whole, values)
        confirm.set_like(found, lambda cloud: held(whole, cloud.at(values)), [near])

    return confirm.answered(questions.substitute_in_set, (text, dict(values)), judge)


def overlap(texts: Sequence[str], axes: Sequence[str]) -> tuple[int, int, Witness] | None:
    """Return the positions of two sets that overlap, with a common point; None if all are disjoint.

    Example:
        >>> overlap(["{ [i] : i < 3 }", "{ [i] : i > 5 }", "{ [i] : 2 <= i < 4 }"], ("i",))
        (0, 2, {'i': 2})
    """
    question = "do two guards overlap"
    places = [(before, index) for index in range(len(texts)) for before in range(index)]
    for before, index in places:
        both = small.found_at([texts[index], texts[before]], len(axes), _shared)
        if both is None:
            break
        if both:
            return before, index, dict(zip(axes, both[0], strict=True))
    else:
        return None
    found = solve(question, questions.overlap, None, tuple(texts))

    def judge() -> None:
        if found is not None:
            for place in found[:2]:
                _member(texts[place], found[2], found[3])
            return
        sets = [read(text) for text in texts]
        for before, index in places:
            pair = (sets[index], sets[before])
            confirm.no_point(partial(_shared, texts=pair), pair, len(axes))

    judged(question, judge)
    return None if found is None else (found[0], found[1], {**found[2], **dict(zip(axes, found[3], strict=True))})


def _shared(cloud: Cloud, texts: Sequence[Meaning]) -> Array:
    return np.asarray(held(texts[0], cloud) & held(texts[1], cloud))


def difference(left: str, right: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point in exactly one of two sets; None if they are equal."""
    question = "equality of two sets"
    apart = small.found_at(
        [left, right], len(axes), lambda cloud, texts: held(texts[0], cloud) != held(texts[1], cloud)
    )
    if apart is not None:
        return dict(zip(axes, apart[0], strict=True)) if apart else None
    found = solve(question, questions.set_difference, None, left, right)

    def judge() -> None:
        if found is None:
            other = read(right)
            confirm.set_like(left, lambda cloud: held(other, cloud), [other])
        elif confirm.member_at(left, *found) == confirm.member_at(right, *found):
            raise DisagreementError("no difference", {**found[0], "at": found[1]})

    judged(question, judge)
    return None if found is None else {**found[0], **dict(zip(axes, found[1], strict=True))}


def is_empty(text: str) -> bool:
    """Return whether a set is empty for all parameter values."""
    return _sampled(text) is None


def sample(text: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point of a set, or None if it is empty."""
    found = _sampled(text)
    return None if found is None else {**found[0], **dict(zip(axes, found[1], strict=True))}


def _sampled(text: str) -> tuple[Witness, tuple[int, ...]] | None:
    listed = small.set_points(text)
    if listed is not None:
        return ({}, listed[0]) if listed else None
    question = f"a point of {text}"
    found = solve(question, questions.sample, None, text)

    def judge() -> None:
        if found is not None:
            _member(text, *found)
            return
        points = read(text)
        confirm.no_point(lambda cloud: held(points, cloud), [points], points.outputs)

    judged(question, judge)
    return found


def _member(text: str, params: Mapping[str, Any], point: Sequence[int]) -> None:
    if not confirm.member_at(text, params, point):
        raise DisagreementError("not a point of the set", {**params, "at": tuple(point)})


def bounds(text: str) -> tuple[tuple[int, int], ...] | int | None:
    """Return the inclusive bounds of a set without parameters; None if empty; the position of an unbounded axis."""
    listed = small.set_points(text)
    if listed is not None:
        return tuple((min(line), max(line)) for line in zip(*listed, strict=True)) if listed else None
    question = f"the bounds of {text}"
    found = solve(question, questions.bounds, None, text)
    judged(question, lambda: _within(text, found) if not isinstance(found, int) else None)
    return found


def constant_extents(text: str) -> tuple[tuple[int, int] | None, ...]:
    """Return, per axis, bounds valid for all parameter values, or None."""
    listed = small.set_points(text)
    if listed:
        return tuple((min(line), max(line)) for line in zip(*listed, strict=True))
    question = f"the bounds of {text}"
    found = solve(question, questions.constant_extents, None, text)
    judged(question, lambda: _within(text, found))
    return found


def _within(text: str, box: Sequence[tuple[int, int] | None] | None) -> None:
    """Check that no point is outside a box (None for the empty box)."""
    points = read(text)

    def outside(cloud: Cloud) -> Array:
        inside = np.full(cloud.shape, box is not None)
        for place, bound in zip(cloud.places, box or (), strict=box is not None):
            if bound is not None:
                inside = inside & np.asarray((place >= bound[0]) & (place <= bound[1]), dtype=bool)
        return np.asarray(held(points, cloud) & ~inside)

    confirm.no_point(outside, [points], points.outputs)


def extreme(text: str, largest: bool) -> str | tuple[Witness, tuple[int, ...]]:
    """Return the lexicographic optimum of a set as a function without inputs; a point of the set if it is unbounded."""
    listed = small.set_points(text)
    if listed:
        best = listed[-1] if largest else listed[0]
        return f"{{ [] -> [{', '.join(map(str, best))}] }}"
    question = f"the optimum of {text}"
    found = solve(question, questions.extreme, None, text, largest)

    def judge() -> None:
        if isinstance(found, str):
            _optimum_of(read(found), read(text), largest)
        else:
            _member(text, *found)

    judged(question, judge)
    return found


def _optimum_of(found: Meaning, points: Meaning, largest: bool) -> None:
    """Check that a function without inputs returns a point of a set that no sample point beats."""
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


def extents(text: str) -> str | None:
    """Return the extents of a parametric interval or box as a function without inputs; None if it is not a box."""
    return _extents(text, questions.extents)


def flat_extents(text: str, terms: str, names: Sequence[str]) -> str | None:
    """Return the number of points of a set as a function without inputs; None unless a sum maps it onto an interval.

    Args:
        text: A set.
        terms: A sum over its axes, injective on it.
        names: Names of the axes in the sum.
    """
    return _extents(text, questions.flat_extents, terms, tuple(names))


def _extents(text: str, ask: Callable[..., str | None], *more: Any) -> str | None:
    """Ask for the extents of a box; check them by counting wherever all points of the set are listed."""
    question = f"the extents of {text}"
    answer = solve(question, ask, None, text, *more)

    def judge() -> None:
        points, found = read(text), read(answer or "")
        for cloud in clouds((points, None), width=points.outputs, also=[found]):
            sizes, defined, _ = found.values(cloud.given(found), ())
            members = held(points, cloud)
            total = 1
            for size in sizes:
                total *= int(size)
            if not defined.all():
                same("a point of an empty box", members, np.zeros_like(members), cloud)
            elif cloud.exact and int(members.sum()) != total:
                raise DisagreementError(f"{int(members.sum())} points, not {total}", cloud.params)

    if answer is not None:
        judged(question, judge)
    return answer


def partial_tiles(text: str, position: int, tile: int) -> str:
    """Return the points of a digit set whose tile (all values of one axis in [0, tile)) is incomplete.

    Args:
        text: A set.
        position: Position of the axis within the tile.
        tile: Its extent.
    """
    points = confirm.meant(text)

    def ragged(cloud: Cloud) -> Array:
        inside, whole = held(points, cloud), np.ones(1, dtype=bool)
        count = max(1, TILE_POINTS // max(1, cloud.count))
        steps = range(tile) if tile <= count else np.random.default_rng(0).integers(0, tile, count).tolist()
        for step in steps:
            places = tuple(
                np.full_like(place, step) if k == position else place for k, place in enumerate(cloud.places)
            )
            whole = whole & held(points, Cloud(cloud.params, places, cloud.count, False))
        return inside & ~whole

    return confirm.answered(
        questions.partial_tiles,
        (text, position, tile),
        lambda found: confirm.set_like(found, ragged, [points]) if tile <= TILE_POINTS // 512 else None,
    )


def box_of(text: str, params: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """Return an inclusive bounding box of a set, found without ISL; None if there is none.

    Example:
        >>> box_of("[N] -> { [i, j] : 0 <= 3i <= N and 0 <= j < i }", {"N": 8})
        [(1, 2), (0, 1)]
    """
    try:
        meaning = read(text)
    except UnreadError:
        return None
    found = meaning.box(params)
    if found is None:
        return [(0, -1)] * meaning.outputs if meaning.outputs else None
    if any(low is None or high is None for low, high in found):
        return None
    return [(low or 0, high or 0) for low, high in found]


def members(text: str, params: Mapping[str, int], arrays: Sequence[Array]) -> Array | None:
    """Return which points are in a set; None if its text cannot be parsed without ISL."""
    try:
        return held(read(text), Cloud(params, tuple(arrays), 0, False))
    except UnreadError:
        return None


def counts(text: str) -> list[tuple[dict[str, int], int]]:
    """Return the number of points of a set at some parameter values for which all points are listed."""
    found: list[tuple[dict[str, int], int]] = []

    def judge() -> None:
        points = read(text)
        for cloud in clouds((points, None), width=points.outputs):
            if cloud.exact:
                found.append((dict(cloud.params), int(held(points, cloud).sum())))

    judged(f"the number of points of {text}", judge)
    return found
