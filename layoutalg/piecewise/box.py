"""Decide whether the domain of a function is a box from the origin.

Implementation notes: a small domain is listed; if every condition bounds a single axis, points are counted; ISL is
asked last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.piecewise import confirm, functions, questions, small
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clauses import Atom, Condition
from layoutalg.piecewise.confirm import DisagreementError, held, judged, valued
from layoutalg.piecewise.meaning import Meaning, UnreadError, read

Sides: TypeAlias = "tuple[tuple[int | None, int | None], ...]"
"""Inclusive bounds of every input; None for no bound."""
BOXES = 64


@dataclass(frozen=True, slots=True)
class NotABox:
    """Why a domain is not a box from the origin; ``witness`` may give a missing point."""

    because: str
    witness: dict[str, object] = field(default_factory=dict)


@kept(limits.ISL_CACHE_BYTES)
def extents(text: str) -> tuple[int, ...] | NotABox:
    """Return the extents of the domain of a function, or why it is not a box from the origin.

    Args:
        text: Canonical text of a function.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> extents("{ [i, j] -> [(i)] : 0 <= i <= 2 and 0 <= j <= 3 }")
        (3, 4)
        >>> extents("{ [i, j] -> [(i)] : 0 <= i <= 2 and 0 <= j <= i }").because
        'its domain has holes in the box (3, 3)'
    """
    params = functions.parameters(text)
    if params:
        return NotABox(f"it has the parameter {params[0]}")
    try:
        meaning = read(text)
        listed = small.everywhere([meaning], meaning.inputs)
        if listed is not None:
            inside = valued(meaning, listed)[1]
            return _of_points([place[inside] for place in listed.places], int(np.sum(inside)))
        found = _of_boxes(meaning)
        if found is not None:
            return found
    except UnreadError:
        pass
    return _asked(text)


def _of_points(places: list[np.ndarray], count: int) -> tuple[int, ...] | NotABox:
    """Return the extents of distinct points that form a box from the origin, or why they do not."""
    if not count:
        return NotABox("its domain is empty or unbounded")
    late = next((k for k, place in enumerate(places) if int(place.min()) != 0), None)
    if late is not None:
        return NotABox(f"input {late} does not start at 0")
    found = tuple(int(place.max()) + 1 for place in places)
    if count == math.prod(found):
        return found
    taken = set(zip(*(place.tolist() for place in places), strict=True))
    hole = next(point for point in np.ndindex(*found) if point not in taken)
    return NotABox(f"its domain has holes in the box {found}", {"at": hole})


def _narrowed(sides: list[Sides], condition: Condition, places: Mapping[int, int]) -> list[Sides]:
    """Return the parts of some boxes where a condition is true.

    Raises: UnreadError: A condition does not bound a single input.
    """
    kind, parts = condition[0], condition[1]
    if kind == "all":
        for part in parts:
            sides = _narrowed(sides, part, places)
        return sides
    if kind == "any":
        return [box for part in parts for box in _narrowed(sides, part, places)]
    if kind not in {"least", "zero"} or len(parts.terms) != 1 or parts.terms[0][0] not in places:
        raise UnreadError("a condition that does not bound one input")
    atom, factor = parts.terms[0]
    k = places[atom]
    answer = []
    for box in sides:
        low, high = box[k]
        for sign in (1, -1) if kind == "zero" else (1,):
            a, b = sign * factor, sign * parts.constant  # a x + b >= 0
            if a > 0:
                low = -(b // a) if low is None else max(low, -(b // a))
            else:
                high = b // -a if high is None else min(high, b // -a)
        if low is None or high is None or low <= high:
            answer.append((*box[:k], (low, high), *box[k + 1 :]))
    return answer


def _of_boxes(meaning: Meaning) -> tuple[int, ...] | NotABox | None:
    """Decide a domain that is a few disjoint boxes; None if it is not, or the boxes leave holes."""
    boxes: list[Sides] = []
    for clause in meaning.clauses:
        known = {clause.known.get(Atom("variable", f"#{place}"), -1): place for place in range(meaning.inputs)}
        if len(known) < meaning.inputs or -1 in known or any(place.denominator != 1 for place in clause.places):
            return None
        boxes += _narrowed([((None, None),) * meaning.inputs], clause.condition, known)
    if len(boxes) > BOXES or any(_meet(one, other) for k, one in enumerate(boxes) for other in boxes[:k]):
        return None
    if not boxes or any(low is None or high is None for box in boxes for low, high in box):
        return NotABox("its domain is empty or unbounded")
    ends = [[(low or 0, high or 0) for low, high in axis] for axis in zip(*boxes, strict=True)]
    late = next((k for k, axis in enumerate(ends) if min(axis)[0] != 0), None)
    if late is not None:
        return NotABox(f"input {late} does not start at 0")
    found = tuple(max(high for _, high in axis) + 1 for axis in ends)
    points = sum(math.prod((high or 0) - (low or 0) + 1 for low, high in box) for box in boxes)
    return found if points == math.prod(found) else None


def _meet(one: Sides, other: Sides) -> bool:
    """Return whether two boxes share a point."""
    return all(
        (a is None or d is None or a <= d) and (c is None or b is None or c <= b)
        for (a, b), (c, d) in zip(one, other, strict=True)
    )


def _asked(text: str) -> tuple[int, ...] | NotABox:
    """Ask ISL, and check the box or the hole that it returns."""
    question = f"the domain of {text}"
    found, because, point = solve(question, questions.box, None, text)

    def judge() -> None:
        if because == "hole" and confirm.value_at(text, {}, point[len(point) // 2 :]) is not None:
            raise DisagreementError("a hole that has a value", {"at": point[len(point) // 2 :]})
        if found is not None:
            function, whole = read(text), read(_box_text(found))
            near = [whole, confirm.as_set(function)]
            confirm.no_point(lambda cloud: valued(function, cloud)[1] != held(whole, cloud), near, len(found))

    judged(question, judge)
    if found is not None:
        return found
    if because == "late":
        return NotABox(f"input {point[0]} does not start at 0")
    if because == "hole":
        sides, hole = point[: len(point) // 2], point[len(point) // 2 :]
        return NotABox(f"its domain has holes in the box {sides}", {"at": hole})
    return NotABox("its domain is empty or unbounded")


def _box_text(found: tuple[int, ...]) -> str:
    bounds = " and ".join(["0 = 0", *(f"0 <= x{k} < {extent}" for k, extent in enumerate(found))])
    return f"{{ [{', '.join(f'x{k}' for k in range(len(found)))}] : {bounds} }}"


def link(outer: str, axes: int, inner: str, outputs: int) -> str | None:
    """Return the map from the outputs of an inner function to the axes of an outer one; None if they match one to one.

    A single output is read as the flat index of a total layout with several axes or none.

    Raises: AdmissibilityError: LA650.

    Example:
        >>> link("{ [r, c] -> [(8r + c)] : 0 <= r <= 3 and 0 <= c <= 7 }", 2, "{ [i] -> [(4i)] : 0 <= i <= 7 }", 1)
        '{ [v] -> [v mod 4, floor(v/4)] }'
    """
    if outputs == axes:
        return None
    found = extents(outer)
    if outputs != 1 or isinstance(found, NotABox):
        because = f"{outputs} outputs cannot feed {axes} axes"
        where = (outer[:200], f"after {inner[:200]}")
        raise AdmissibilityError(Diagnostic("LA650", "the piecewise layouts do not compose", where, because))
    if not found:
        return "{ [v] -> [] : v = 0 }"
    parts, weight = [], 1
    for position, extent in enumerate(found):
        digit = f"floor(v/{weight})" if weight > 1 else "v"
        parts.append(digit if position == len(found) - 1 else f"{digit} mod {extent}")  # no mod on the last digit
        weight *= extent
    return f"{{ [v] -> [{', '.join(parts)}] }}"
