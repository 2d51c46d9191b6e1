"""Operations on functions given as ISL text; every answer of ISL is checked before it is used.

Implementation notes: ISL is asked in ``questions``, within ``budget``; returned texts are evaluated and compared
(``confirm``), witnesses are evaluated. A wrong answer is requested in another way, or refused (LA793).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layoutalg.piecewise import confirm, questions, small
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.compare import apart
from layoutalg.piecewise.confirm import DisagreementError, Values, held, judged, moved, through, valued
from layoutalg.piecewise.explicit import Witness
from layoutalg.piecewise.meaning import Meaning, read


def _function(
    ask: Callable[..., str], texts: Sequence[str], wanted: Callable[[Cloud], Values], near: Sequence[Meaning]
) -> str:
    """Return ISL's answer after comparing its values with the expected ones; see ``confirm.function_like``."""
    operands = [read(text) for text in texts]
    return confirm.answered(ask, texts, lambda found: confirm.function_like(found, wanted, near, operands))


def union(left: str, right: str) -> str:
    """Return the union of two functions, which must agree where both are defined.

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
        return values, covered & ~apart([first, other], (), cloud)

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
    """Return the function restricted to the points whose values are in a set."""
    first, other = read(text), read(points)

    def cut(cloud: Cloud) -> Values:
        values, covered = valued(first, cloud)
        return values, covered & held(other, moved(cloud, values, covered))

    return _function(questions.within, (text, points), cut, (first,))


def after(outer: str, link: str | None, inner: str) -> str:
    """Return ``outer`` after ``link`` (if any) after ``inner``, where all have a value."""
    if link is not None:
        inner = after(link, None, inner)
    steps = [read(inner), read(outer)]
    return _function(questions.after, (outer, inner), lambda cloud: through(steps, cloud), (steps[0],))


def indicator(points: str) -> str:
    """Return a set as a function without outputs."""
    inside = read(points)
    near = confirm.as_inputs(inside)
    return _function(questions.indicator, (points,), lambda cloud: ([], held(inside, cloud)), (near,))


def domain(text: str) -> str:
    """Return the set of points with a value."""
    function = read(text)
    near = [confirm.as_set(function)]
    return confirm.answered(
        questions.domain,
        (text,),
        lambda found: confirm.set_like(found, lambda cloud: valued(function, cloud)[1], near, [function]),
    )


def image(text: str) -> str:
    """Return the set of values."""
    function = read(text)
    return confirm.answered(questions.image, (text,), lambda found: confirm.image_like(found, function))


def composed(outer: str, link: str | None, inner: str) -> str | tuple[Witness, tuple[int, ...]]:
    """Return ``outer`` after ``link`` after ``inner``; or parameters and a point of ``inner`` where that is undefined.

    Args:
        outer: A function.
        link: A function from the outputs of ``inner`` to the inputs of ``outer``; None if they match one to one.
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
            confirm.function_like(found, lambda cloud: through(steps, cloud), steps[:1], steps)
            near = [steps[0]]
            left = lambda cloud: valued(steps[0], cloud)[1] & ~through(steps, cloud)[1]  # noqa: E731
            confirm.no_point(left, near, steps[0].inputs, steps)
            return
        here = confirm.single(*found)
        if not valued(steps[0], here)[1].all() or through(steps, here)[1].any():
            raise DisagreementError("not a point that leaves the domain", {**found[0], "at": found[1]})

    return confirm.answered(questions.composed, (outer, link, inner), judge)


def chain(stages: Sequence[str], points: str) -> str:
    """Return a chain of functions on the points of a set, first stage applied first.

    Args:
        stages: Functions of one piece, each applied to the outputs of the one before.
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
            values, covered = through(steps, cloud)
            return values, covered & held(inside, cloud)

        confirm.function_like(found, wanted, [confirm.as_inputs(inside)])

    judged("a chain of functions", judge)
    return found


def substitute(text: str, values: Mapping[str, int]) -> str:
    """Return a function with some parameters replaced by numbers."""
    if not values:
        return text
    whole = read(text)

    def judge(found: str) -> None:
        confirm.parameters_gone(found, whole, values)
        near = confirm.fixed(whole, values)
        confirm.function_like(found, lambda cloud: valued(whole, cloud.at(values)), [near])

    return confirm.answered(questions.substitute, (text, lifted(text), dict(values)), judge)


def parameters(text: str) -> tuple[str, ...]:
    """Return the parameters of a canonical text, in order.

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
    """Return two points with the same value, or None if the function is injective.

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
    """Check that no two sample points have the same value."""
    for cloud in clouds((function, function.inputs), width=function.inputs):
        values, covered = valued(function, cloud)
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        lines = [value[covered].tolist() for value in values]
        places = [place[covered].tolist() for place in cloud.places]
        for index in range(int(covered.sum())):
            value, point = tuple(line[index] for line in lines), tuple(place[index] for place in places)
            if seen.setdefault(value, point) != point:
                raise DisagreementError("two points have one value", {**cloud.params, "at": (seen[value], point)})
