"""Operations on functions as texts: every answer of ISL is compared with what it should be before it is used.

Main definitions: one function per operation (``after``, ``union``, ``domain``, ...), ``collision``, ``turned``,
``compared``, ``lifted``, ``parameters``.

Implementation notes: ISL is asked in ``questions``, within ``budget``; a text it returns is evaluated and compared
(``confirm``), a witness is evaluated. What is wrong is asked for in another way, or refused (LA793).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.piecewise import confirm, questions, small
from layoutalg.piecewise.budget import solve, solve_here
from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import DisagreementError, Judged, Values, held, judged, moved, same, valued
from layoutalg.piecewise.explicit import Witness
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read


def _function(
    ask: Callable[..., str], texts: Sequence[str], wanted: Callable[[Cloud], Values], near: Sequence[Meaning]
) -> str:
    """Return the function that ISL answers, its values compared with what is wanted; see ``confirm.function_like``."""
    operands = [read(text) for text in texts]
    return confirm.answered(ask, texts, lambda found: confirm.function_like(found, wanted, near, operands))


def union(left: str, right: str) -> str:
    """Return the function that is defined where either is; they agree where both are.

    Raises: MalformedError: LA783.
    """
    first, other = read(left), read(right)

    def either(cloud: Cloud) -> Values:
        (mine, covered), (theirs, also) = valued(first, cloud), valued(other, cloud)
        return [np.where(covered, a, b) for a, b in zip(mine, theirs, strict=True)], covered | also

    return _function(questions.union, (left, right), either, (first, other))


def intersect(left: str, right: str) -> str:
    """Return the function on the points where both are defined and agree."""
    first, other = read(left), read(right)

    def agreed(cloud: Cloud) -> Values:
        values, covered = valued(first, cloud)
        return values, covered & ~_apart([first, other], (), cloud)

    return _function(questions.intersect, (left, right), agreed, (first,))


def restrict(text: str, points: str) -> str:
    """Return the function on the points of a set."""
    first, other = read(text), read(points)

    def cut(cloud: Cloud) -> Values:
        values, covered = valued(first, cloud)
        return values, covered & held(other, cloud)

    return _function(questions.restrict, (text, points), cut, (first,))


def remove(text: str, points: str) -> str:
    """Return the function on the points outside a set."""
    first, other = read(text), read(points)

    def cut(cloud: Cloud) -> Values:
        values, covered = valued(first, cloud)
        return values, covered & ~held(other, cloud)

    return _function(questions.remove, (text, points), cut, (first,))


def within(text: str, points: str) -> str:
    """Return the function where its values lie in a set."""
    first, other = read(text), read(points)

    def cut(cloud: Cloud) -> Values:
        values, covered = valued(first, cloud)
        return values, covered & held(other, moved(cloud, values, covered))

    return _function(questions.within, (text, points), cut, (first,))


def after(outer: str, link: str | None, inner: str) -> str:
    """Return ``outer`` after ``link``, if there is one, after ``inner``, where all have a value."""
    if link is not None:
        inner = after(link, None, inner)
    steps = [read(inner), read(outer)]
    return _function(questions.after, (outer, inner), lambda cloud: _through(steps, cloud), (steps[0],))


def indicator(points: str) -> str:
    """Return a set as a function without outputs."""
    inside = read(points)
    near = confirm.as_inputs(inside)
    return _function(questions.indicator, (points,), lambda cloud: ([], held(inside, cloud)), (near,))


def domain(text: str) -> str:
    """Return the set of the points with a value."""
    function = read(text)
    near = [confirm.as_set(function)]
    return confirm.answered(
        questions.domain,
        (text,),
        lambda found: confirm.set_like(found, lambda cloud: valued(function, cloud)[1], near, [function]),
    )


def image(text: str) -> str:
    """Return the set of the values."""
    function = read(text)
    return confirm.answered(questions.image, (text,), lambda found: confirm.image_like(found, function))


def image_of(text: str, points: str) -> str:
    """Return the set of the values at the points of a set."""
    function, inside = read(text), read(points)
    near = [confirm.as_inputs(inside)]
    return confirm.answered(
        questions.image_of,
        (text, points),
        lambda found: confirm.image_like(found, function, lambda cloud: held(inside, cloud), [inside], near),
    )


def _through(steps: Sequence[Meaning], cloud: Cloud) -> Values:
    """Return the values of functions one after the other, and where all have one."""
    values, covered = valued(steps[0], cloud)
    for step in steps[1:]:
        values, defined = valued(step, moved(cloud, values, covered))
        covered = covered & defined
    return values, covered


def composed(outer: str, link: str | None, inner: str) -> str | tuple[Witness, tuple[int, ...]]:
    """Return ``outer`` after ``link`` after ``inner``, or parameter values and a point of ``inner`` it has no value at.

    Args:
        outer: A function.
        link: A function from the outputs of ``inner`` to the inputs of ``outer``; None where they are the same.
        inner: A function; the answer has its domain.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> composed("{ [x] -> [2x] : 0 <= x < 9 }", None, "{ [i] -> [3i] : 0 <= i < 3 }")
        '{ [i] -> [(6i)] : 0 <= i <= 2 }'
        >>> composed("{ [x] -> [2x] : 0 <= x < 6 }", None, "{ [i] -> [3i] : 0 <= i < 3 }")
        ({}, (2,))
    """
    steps = [read(text) for text in (inner, link, outer) if text is not None]

    def judge(found: str | tuple[Witness, tuple[int, ...]]) -> None:
        if isinstance(found, str):
            confirm.function_like(found, lambda cloud: _through(steps, cloud), steps[:1], steps)
            near = [steps[0]]
            left = lambda cloud: valued(steps[0], cloud)[1] & ~_through(steps, cloud)[1]  # noqa: E731
            confirm.no_point(left, near, steps[0].inputs, steps)
            return
        here = confirm.single(*found)
        if not valued(steps[0], here)[1].all() or _through(steps, here)[1].any():
            raise DisagreementError("not a point that leaves the domain", {**found[0], "at": found[1]})

    return confirm.answered(questions.composed, (outer, link, inner), judge)


def chain(stages: Sequence[str], points: str) -> str:
    """Return a chain of functions, the first stage applied first, on the points of a set.

    Args:
        stages: Functions of one piece; each takes what the one before returns.
        points: The set.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> chain(["{ [i] -> [3i + 1] }", "{ [v] -> [v - v mod 3] }"], "{ [i] : 0 <= i < 4 }")
        '{ [i] -> [(3i)] : 0 <= i <= 3 }'
    """
    found = solve("a chain of functions", questions.chain, None, tuple(stages), points)

    def judge() -> None:
        inside, steps = read(points), [read(stage) for stage in stages]

        def wanted(cloud: Cloud) -> Values:
            values, covered = _through(steps, cloud)
            return values, covered & held(inside, cloud)

        confirm.function_like(found, wanted, [confirm.as_inputs(inside)])

    judged("a chain of functions", judge)
    return found


def substitute(text: str, values: Mapping[str, int]) -> str:
    """Return a function with numbers for some parameters, which then are gone."""
    if not values:
        return text
    whole = read(text)

    def judge(found: str) -> None:
        confirm.parameters_gone(found, whole, values)
        near = confirm.fixed(whole, values)
        confirm.function_like(found, lambda cloud: valued(whole, cloud.at(values)), [near])

    return confirm.answered(questions.substitute, (text, lifted(text), dict(values)), judge)


def parameters(text: str) -> tuple[str, ...]:
    """Return the parameters of a canonical text, in its order.

    Example:
        >>> parameters("[N, M] -> { [i] -> [(i)] : 0 <= i < N }")
        ('N', 'M')
    """
    if text[:1] == "{":
        return ()
    head = text.partition("{")[0].replace("->", "").strip().strip("[]")
    return tuple(name.strip() for name in head.split(",") if name.strip())


def lifted(text: str) -> str:
    """Return the canonical text of a function with its parameters as leading inputs.

    Example:
        >>> lifted("[N] -> { [i] -> [(i)] : 0 <= i < N; [i] -> [(N)] : i >= N }")
        '{ [N, i] -> [(i)] : 0 <= i < N; [N, i] -> [(N)] : i >= N }'
    """
    params = ", ".join(parameters(text))
    if not params:
        return text
    parts = []
    for piece in text.partition("{")[2].rpartition("}")[0].split(";"):
        axes = piece.strip().partition("]")
        inside = axes[0].strip().strip("[").strip()
        parts.append(f"[{params}{', ' if inside else ''}{inside}]{axes[2].rstrip()}")
    return f"{{ {'; '.join(parts)} }}"


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
            _injective(read(text))
            return
        params, value = found["params"], found["value"]
        points: Any = found["points"]
        for point in points:
            if confirm.value_at(text, params, point.values()) != value:  # type: ignore[arg-type]
                raise DisagreementError("not this value", {"at": point})
        if points[0] == points[1]:
            raise DisagreementError("one point", {"at": points})

    judged(question, judge)
    return found


def _injective(function: Meaning) -> None:
    """Confirm that no two of the points compared have one value."""
    for cloud in clouds((function, function.inputs), width=function.inputs):
        values, covered = valued(function, cloud)
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        lines = [value[covered].tolist() for value in values]
        places = [place[covered].tolist() for place in cloud.places]
        for index in range(int(covered.sum())):
            value, point = tuple(line[index] for line in lines), tuple(place[index] for place in places)
            if seen.setdefault(value, point) != point:
                raise DisagreementError("two points have one value", {**cloud.params, "at": (seen[value], point)})


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


def left_inverse(text: str, extents: Sequence[int]) -> str:
    """Return the function from values to the flat index of their only point, 0 between the values.

    Args:
        text: An injective function with one output, none negative, on the box of ``extents``.
        extents: Extents of the box, fastest first.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> left_inverse("{ [a] -> [2a] : 0 <= a < 4 }", (4,)).split(";")[0]
        '{ [v] -> [(0)] : (1 + v) mod 2 = 0 and 0 < v <= 5'
    """
    found = solve("the inverse of a function", questions.left_inverse, None, text, tuple(extents))
    judged("the inverse of a function", lambda: _left_inverse_of(read(found), read(text), extents))
    return found


def _left_inverse_of(found: Meaning, function: Meaning, extents: Sequence[int]) -> None:
    """Confirm the function from values to flat indices, 0 between the values."""
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
        for every in clouds((found, 1), width=1) if cloud.exact else ():
            back, defined = valued(found, every)
            zero = np.array([value not in taken for value in every.places[0].tolist()]) & defined
            same("an index of no value", np.where(zero, back[0], 0), np.zeros_like(back[0]), every)


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether two functions agree: parameter values and a point where they do not, or None; how that was confirmed."""

    params: Witness
    point: tuple[int, ...] | None
    confirmed: str


def compared(left: str, right: str, links: tuple[str, str] | None = None, operations: int | None = None) -> Compared:
    """Compare two functions.

    Args:
        left: ISL map, single-valued.
        right: ISL map, single-valued.
        links: Maps from common digits to the inputs of either side, with the same domain; None where the inputs are
            the same already. The answer is a point of the common digits.
        operations: ISL operation quota; None for time alone.

    Returns:
        A point where the functions differ, evaluated there; or none, with the number of points that were compared
        besides. Of sides that give their values by conditions only, nothing is confirmed here: ``confirmed`` is empty.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> compared("{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [x + x] : 0 <= x < 4 }")
        Compared(params={}, point=None, confirmed='all 4 points')
        >>> compared("{ [x] -> [2x] : 0 <= x < 4 }", "{ [x] -> [2x + floor(x/3)] : 0 <= x < 4 }").point
        (3,)
    """
    question = "equality of two functions"
    try:
        sides, ties = [read(left), read(right)], [read(link) for link in links or ()]
        near = ties[:1] or sides
        cloud = small.everywhere(near, near[0].inputs)
        if cloud is not None:
            first = small.listed(cloud, _apart(sides, ties, cloud))
            return Compared({}, first[0] if first else None, str(Judged(cloud.count, True)))
    except UnreadError:
        found = solve(question, questions.difference, operations, left, right, links)
        return Compared({} if found is None else found[0], None if found is None else found[1], "")
    found = solve(question, questions.difference, operations, left, right, links)
    if found is not None:
        if not _apart(sides, ties, confirm.single(*found)).all():
            confirm.doubted(question, "no difference", {**found[0], "at": found[1]})
        return Compared(*found, "the point")
    seen: list[Judged] = []
    judged(
        question,
        lambda: seen.append(confirm.no_point(lambda cloud: _apart(sides, ties, cloud), near, near[0].inputs, sides)),
    )
    return Compared({}, None, str(seen[0]))


def _apart(sides: Sequence[Meaning], ties: Sequence[Meaning], cloud: Cloud) -> Array:
    """Return where two functions differ, each after its tie if there are ties."""
    if not all(clause.by_values(side.inputs) for side in sides for clause in side.clauses):
        raise UnreadError("values that only a condition gives")
    found = [_through([*ties[place : place + 1], side], cloud) for place, side in enumerate(sides)]
    (first, defined), (second, also) = found
    apart = defined != also
    for a, b in zip(first, second, strict=True):
        apart = apart | (defined & also & np.asarray(a != b, dtype=bool))
    return np.asarray(apart)


def difference(left: str, right: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point where two functions differ or only one is defined; None where they agree.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    found = compared(left, right)
    if not found.confirmed:
        confirm.unjudged("equality of two functions", "values that only a condition gives")
    return None if found.point is None else {**found.params, **dict(zip(axes, found.point, strict=True))}
