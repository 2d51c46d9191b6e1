"""Parametric relations and sets: texts in, texts and plain numbers out, every answer of ISL judged before it is used.

Main definitions: ``collision`` (two points with one value), ``difference``, ``substitute``, ``on_maps`` (operations of
functions and sets), ``turned`` (inverses), ``extents``, ``partial_tiles``.

Implementation notes: ISL is asked in ``questions``, within ``budget``; a text it returns is compared with what it
should say (``confirm``), a witness is evaluated. What is wrong is asked for in another way, or refused (LA793). ISL's
own count is not used: it answers 0 on parametric and on unbounded sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.piecewise import confirm, judges, questions, small, spans
from layoutalg.piecewise.budget import solve, solve_here
from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import DisagreementError, held, judged, plainly, valued
from layoutalg.piecewise.explicit import Witness
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read

TILE_POINTS = 2**20


def collision(text: str, axes: Sequence[str]) -> Witness | None:
    """Return two points with one value, or None where the function is injective.

    Example:
        >>> collision("{ [i] -> [floor(i/2)] : 0 <= i < 4 }", ("i",))
        {'params': {}, 'points': ({'i': 0}, {'i': 1}), 'value': (0,)}
    """
    question = f"is this injective: {text}"
    listed = small.function_points(text)
    if listed is not None:
        equal = small.first_collision(*listed)
        if equal is None:
            return None
        points = tuple(dict(zip(axes, point, strict=True)) for point in equal[:2])
        return {"params": {}, "points": points, "value": equal[2]}
    found = solve(question, questions.collision, None, text, tuple(axes))

    def judge() -> None:
        if found is None:
            judges.injective(read(text))
            return
        params, points, value = found["params"], found["points"], found["value"]
        for point in points:  # type: ignore[attr-defined]
            if confirm.value_at(text, params, point.values()) != value:  # type: ignore[arg-type]
                raise DisagreementError("not this value", {"at": point})
        if points[0] == points[1]:  # type: ignore[index]
            raise DisagreementError("one point", {"at": points})

    judged(question, judge)
    return found


def overlap(texts: Sequence[str], axes: Sequence[str]) -> tuple[int, int, Witness] | None:
    """Return the positions of two sets that overlap, with a common point; None where all are disjoint.

    Example:
        >>> overlap(["{ [i] : i < 3 }", "{ [i] : i > 5 }", "{ [i] : 2 <= i < 4 }"], ("i",))
        (0, 2, {'i': 2})
    """
    question = "do two guards overlap"
    for index in range(len(texts)):
        for before in range(index):
            both = small.found_at([texts[index], texts[before]], len(axes), _shared)
            if both is None:
                break
            if both:
                return before, index, dict(zip(axes, both[0], strict=True))
        else:
            continue
        break
    else:
        return None
    found = solve(question, questions.overlap, None, tuple(texts), tuple(axes))

    def judge() -> None:
        if found is not None:
            for place in found[:2]:
                _member(texts[place], found[2], found[3])
            return
        sets = [read(text) for text in texts]
        for index, mine in enumerate(sets):
            for other in sets[:index]:
                confirm.no_point(partial(_shared, texts=(mine, other)), [mine, other], len(axes))

    judged(question, judge)
    return None if found is None else (found[0], found[1], {**found[2], **found[3]})


def _shared(cloud: Cloud, texts: Sequence[Meaning]) -> Array:
    answer = held(texts[0], cloud)
    for other in texts[1:]:
        answer = answer & held(other, cloud)
    return answer


def difference(left: str, right: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point where two relations (or sets) differ; None where they agree."""
    question = "equality of two relations"
    maps = is_map(left)
    width = None if maps else len(axes)
    apart = small.found_at([left, right], width, lambda cloud, texts: _apart(texts, cloud, maps))
    if apart is not None:
        return dict(zip(axes, apart[0], strict=True)) if apart else None
    found = solve(question, questions.difference, None, left, right, tuple(axes), maps)

    def judge() -> None:
        sides = [read(text) for text in (left, right)]
        if found is not None:
            look: Callable[..., object] = confirm.value_at if maps else confirm.member_at
            if look(left, found[0], found[1].values()) == look(right, found[0], found[1].values()):
                raise DisagreementError("no difference", {**found[0], **found[1]})
        elif maps:
            confirm.function_like(left, lambda cloud: valued(sides[1], cloud), [sides[1]])
        else:
            confirm.set_like(left, lambda cloud: held(sides[1], cloud), [sides[1]])

    judged(question, judge)
    return None if found is None else {**found[0], **found[1]}


def _apart(texts: Sequence[Meaning], cloud: Cloud, maps: bool) -> Array:
    """Return where two texts differ."""
    if not maps:
        return np.asarray(held(texts[0], cloud) != held(texts[1], cloud))
    (first, defined), (second, also) = (valued(text, cloud) for text in texts)
    answer = defined != also
    for one, other in zip(first, second, strict=True):
        answer = answer | (defined & also & np.asarray(one != other, dtype=bool))
    return np.asarray(answer)


def substitute(text: str, values: Mapping[str, int]) -> str:
    """Return the text of a map or set with numbers for some parameters, which then are gone."""
    question = f"substitution in {text}"
    if not values:
        return text

    def judge(found: str) -> None:
        whole = read(text)

        def fixed(cloud: Cloud) -> Cloud:
            return Cloud({**cloud.params, **values}, cloud.places, cloud.count, cloud.exact)

        free = [name for name in whole.params if name not in values]
        near = confirm.fixed(whole, values)
        if set(read(found).params) - set(free):
            raise DisagreementError("a parameter is left", dict(values))
        if is_map(text):
            confirm.function_like(found, lambda cloud: valued(whole, fixed(cloud)), [near])
        else:
            confirm.set_like(found, lambda cloud: held(whole, fixed(cloud)), [near])

    lift = lifted(text) if is_map(text) else ""
    return plainly(
        question, lambda plain: solve(question, questions.substitute, None, text, lift, dict(values), plain), judge
    )


def is_map(text: str) -> bool:
    """Return whether a text is one of a map."""
    return "->" in text.split("{", 1)[1]


def parameters(text: str) -> tuple[str, ...]:
    """Return the parameters of a canonical text, in its order.

    Example:
        >>> parameters("[N, M] -> { [i] -> [(i)] : 0 <= i < N }")
        ('N', 'M')
    """
    head = text.partition("{")[0].replace("->", "").strip().strip("[]")
    return tuple(name.strip() for name in head.split(",") if name.strip())


def lifted(text: str) -> str:
    """Return the canonical text of a function with its parameters as leading inputs.

    Example:
        >>> lifted("[N] -> { [i] -> [(i)] : 0 <= i < N; [i] -> [(N)] : i >= N }")
        '{ [N, i] -> [(i)] : 0 <= i < N; [N, i] -> [(N)] : i >= N }'
    """
    head, _, body = text.partition("{")
    params = head.replace("->", "").strip().strip("[]").strip()
    if not params:
        return text
    parts = []
    for piece in body.rpartition("}")[0].split(";"):
        axes = piece.strip().partition("]")
        inside = axes[0].strip().strip("[").strip()
        parts.append(f"[{params}{', ' if inside else ''}{inside}]{axes[2].rstrip()}")
    return f"{{ {'; '.join(parts)} }}"


def on_maps(operation: str, *texts: str) -> str:
    """Return the text of an operation on maps and sets, the first of which is a map unless the name ends in ``_set``.

    Args:
        operation: One of ``union``, ``intersect``, ``restrict`` and ``remove`` (map, set), ``domain``, ``range``,
            ``within`` (map, set: where its values lie in the set), ``after`` (outer, inner), ``outside`` (outer,
            inner: points whose value the outer map does not take), ``image`` (map, set), ``union_set``,
            ``intersect_set``, ``subtract_set``, ``constant_set`` (a set as a map without outputs).
        texts: The operands.
    """
    question = f"{operation} of {' and '.join(texts)}"
    return plainly(
        question,
        lambda plain: solve(question, questions.on_maps, None, operation, plain, *texts),
        lambda found: judges.operation_like(operation, found, [read(text) for text in texts]),
    )


def turned(text: str, names: Sequence[str], least: bool) -> str:
    """Return the inverse of an injective function, or with ``least`` the least point of every value of any function.

    Args:
        text: Canonical text of a function.
        names: Names of its outputs, none of them a parameter or an axis.
        least: Whether points are compared.

    Raises: BudgetError: LA222, LA793.

    Example:
        >>> turned("{ [i] -> [floor(i/3)] : 0 <= i < 9 }", ("y",), True)
        '{ [y] -> [(3y)] : 0 <= y <= 2 }'
    """
    question = f"the inverse of {text}"
    function = confirm.meant(text)
    because: DisagreementError | None = None
    unread: UnreadError | None = None
    gave_up: BudgetError | None = None
    ways = ((0, False), (0, True), (1, False), (1, True))
    for engine, (route, plain) in (
        [("short", way) for way in ways] + [("runs", ways[0])] + [("long", way) for way in ways]
    ):
        clock.check(question[:200])
        if gave_up is not None and engine == "long":
            continue
        found: str | None
        try:
            if engine == "runs":
                found = small.inverse_text(text, names)
            elif engine == "short":
                found = solve_here(question, questions.turned, text, tuple(names), least, route, plain)
            else:
                found = solve(question, questions.turned, None, text, tuple(names), least, route, plain)
            if found is None:
                continue
            confirm.twice(partial(confirm.inverse_of, found, function, least))
        except DisagreementError as error:
            because = error
        except UnreadError as error:
            unread = error
        except BudgetError as error:
            gave_up = error
        else:
            return found
    if gave_up is None and because is not None:
        confirm.doubted(question, str(because), because.at)
    if gave_up is None:
        confirm.unjudged(question, str(unread))
    raise gave_up


def confirmed_inverse(found: str, text: str) -> None:
    """Compare an inverse with the function that it should invert.

    Raises: BudgetError: LA793, LA794.
    """
    judged(f"the inverse of {text}", lambda: confirm.inverse_of(found, read(text)))


def is_empty(text: str) -> bool:
    """Return whether a set has no point for any parameter values."""
    return _sampled(text) is None


def sample(text: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point of a set, or None where it is empty."""
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
            _member(text, found[0], dict(enumerate(found[1])))
            return
        points = read(text)
        confirm.no_point(lambda cloud: held(points, cloud), [points], points.outputs)

    judged(question, judge)
    return found


def bounds(text: str) -> tuple[tuple[int, int], ...] | int | None:
    """Return the inclusive bounds of a set without parameters, None where it is empty, an unbounded axis's position."""
    listed = small.set_points(text)
    if listed is not None:
        return tuple((min(line), max(line)) for line in zip(*listed, strict=True)) if listed else None
    question = f"the bounds of {text}"
    found = solve(question, questions.bounds, None, text)
    judged(question, lambda: _within(text, found) if not isinstance(found, int) else None)
    return found


def constant_extents(text: str) -> tuple[tuple[int, int] | None, ...]:
    """Return, per axis, the bounds that hold for all parameter values, or None where there are none."""
    listed = small.set_points(text)
    if listed:
        return tuple((min(line), max(line)) for line in zip(*listed, strict=True))
    question = f"the bounds of {text}"
    found = solve(question, questions.constant_extents, None, text)
    judged(question, lambda: _within(text, found))
    return found


def _within(text: str, box: Sequence[tuple[int, int] | None] | None) -> None:
    """Confirm that no point lies outside a box (None: anywhere)."""
    points = read(text)

    def outside(cloud: Cloud) -> Array:
        inside = np.ones(cloud.shape, dtype=bool)
        for place, bound in zip(cloud.places, box or [], strict=box is not None):
            if bound is not None:
                inside = inside & np.asarray((place >= bound[0]) & (place <= bound[1]), dtype=bool)
        return held(points, cloud) & ~inside if box is not None else held(points, cloud)

    confirm.no_point(outside, [points], points.outputs)


def extreme(text: str, largest: bool, axes: Sequence[str]) -> str | Witness:
    """Return the lexicographic optimum of a set as a map from no inputs, or where there is none.

    The witness, where the set is unbounded in the wanted direction, is a point of the set.
    """
    listed = small.set_points(text)
    if listed:
        best = listed[-1] if largest else listed[0]
        return f"{{ [] -> [{', '.join(map(str, best))}] }}"
    question = f"the optimum of {text}"
    found = solve(question, questions.extreme, None, text, largest, tuple(axes))

    def judge() -> None:
        if isinstance(found, str):
            judges.optimum_of(found, read(text), largest)
        else:
            _member(text, *found)

    judged(question, judge)
    return found if isinstance(found, str) else {**found[0], **found[1]}


def flat_extents(text: str, terms: str, names: Sequence[str]) -> str | None:
    """Return the number of points of a set as a map from no inputs, where a sum takes it one to one onto an interval.

    Args:
        text: A set.
        terms: A sum over its axes, injective on it.
        names: Names of the axes in the sum.
    """
    question = f"the extents of {text}"
    found = solve(question, questions.flat_extents, None, text, terms, tuple(names))
    if found is not None:
        judged(question, lambda: judges.extents_of(found, read(text)))
    return found


def extents(text: str) -> str | None:
    """Return the extents of a parametric interval or box as a map from no inputs; None where the set is no box."""
    question = f"the extents of {text}"
    found = solve(question, questions.extents, None, text)
    if found is not None:
        judged(question, lambda: judges.extents_of(found, read(text)))
    return found


def partial_tiles(text: str, position: int, tile: int) -> str:
    """Return the points of a digit set whose tile (all values of one axis in [0, tile)) is not whole.

    Args:
        text: A set.
        position: Position of the axis within the tile.
        tile: Its extent.
    """
    question = "full tiles"
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

    return plainly(
        question,
        lambda plain: solve(question, questions.partial_tiles, None, text, position, tile, plain),
        lambda found: confirm.set_like(found, ragged, [points]) if tile <= TILE_POINTS // 512 else None,
    )


def _member(text: str, params: Mapping[str, Any], point: Mapping[Any, Any]) -> None:
    if not confirm.member_at(text, params, point.values()):
        raise DisagreementError("no point of the set", {**params, "at": tuple(point.values())})


def box_of(text: str, params: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """Return inclusive bounds that hold for every point of a set, found without ISL; None where there are none.

    Example:
        >>> box_of("[N] -> { [i, j] : 0 <= 3i <= N and 0 <= j < i }", {"N": 8})
        [(1, 2), (0, 1)]
    """
    try:
        meaning = read(text)
    except UnreadError:
        return None
    found = spans.box(meaning, params)
    if found is None:
        return [(0, -1)] * meaning.outputs if meaning.outputs else None
    if any(low is None or high is None for low, high in found):
        return None
    return [(low or 0, high or 0) for low, high in found]


def members(text: str, params: Mapping[str, int], arrays: Sequence[Array]) -> Array | None:
    """Return where points lie in a set; None where its text is not read without ISL."""
    try:
        return held(read(text), Cloud(params, tuple(arrays), 0, False))
    except UnreadError:
        return None


def counts(text: str) -> list[tuple[dict[str, int], int]]:
    """Return the number of points of a set at some parameter values where all its points are listed."""
    found: list[tuple[dict[str, int], int]] = []

    def judge() -> None:
        points = read(text)
        for cloud in clouds((points, None), width=points.outputs):
            if cloud.exact:
                found.append((dict(cloud.params), int(held(points, cloud).sum())))

    judged(f"the number of points of {text}", judge)
    return found
