"""Decide whether two functions agree everywhere, or find a point where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layoutalg.piecewise import confirm, questions, small
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clouds import Cloud
from layoutalg.piecewise.confirm import Judged, judged, through
from layoutalg.piecewise.explicit import Witness
from layoutalg.piecewise.meaning import Array, Meaning, UnreadError, read


@dataclass(frozen=True, slots=True)
class Compared:
    """Parameter values and a point where two functions differ, or None if they agree; and how this was confirmed."""

    params: Witness
    point: tuple[int, ...] | None
    confirmed: str


def compared(left: str, right: str, links: tuple[str, str] | None = None, operations: int | None = None) -> Compared:
    """Compare two functions.

    Args:
        left: ISL map, single-valued.
        right: ISL map, single-valued.
        links: Maps from common digits to the inputs of each side, with the same domain; None if the inputs already
            match. The answer is a point of the common digits.
        operations: ISL operation quota; None for the time limit only.

    Returns:
        A point where the functions differ, confirmed by evaluation; or None, with the number of points that were also
        compared directly. ``confirmed`` is empty if a side defines its values only by conditions.

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
            first = small.listed(cloud, apart(sides, ties, cloud))
            return Compared({}, first[0] if first else None, str(Judged(cloud.count, True)))
    except UnreadError:
        found = solve(question, questions.difference, operations, left, right, links)
        return Compared({} if found is None else found[0], None if found is None else found[1], "")
    found = solve(question, questions.difference, operations, left, right, links)
    if found is not None:
        if not apart(sides, ties, confirm.single(*found)).all():
            confirm.doubted(question, "no difference", {**found[0], "at": found[1]})
        return Compared(*found, "the point")
    seen: list[Judged] = []
    judged(
        question,
        lambda: seen.append(confirm.no_point(lambda cloud: apart(sides, ties, cloud), near, near[0].inputs, sides)),
    )
    return Compared({}, None, str(seen[0]))


def apart(sides: Sequence[Meaning], ties: Sequence[Meaning], cloud: Cloud) -> Array:
    """Return where two functions differ, each composed with its tie if there are ties."""
    if not all(clause.by_values(side.inputs) for side in sides for clause in side.clauses):
        raise UnreadError("values defined only by a condition")
    found = [through([*ties[place : place + 1], side], cloud) for place, side in enumerate(sides)]
    (first, defined), (second, also) = found
    apart = defined != also
    for a, b in zip(first, second, strict=True):
        apart = apart | (defined & also & np.asarray(a != b, dtype=bool))
    return np.asarray(apart)


def difference(left: str, right: str, axes: Sequence[str]) -> Witness | None:
    """Return parameter values and a point where two functions differ or only one is defined; None if they agree.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    found = compared(left, right)
    if not found.confirmed:
        confirm.unjudged("equality of two functions", "values defined only by a condition")
    return None if found.point is None else {**found.params, **dict(zip(axes, found.point, strict=True))}
