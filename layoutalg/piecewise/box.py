"""Is the domain of a function a box from the origin?

Main definitions: ``extents``, ``NotABox``, ``link``.

Implementation notes: conditions that each bound one axis are read off; a small domain is listed; ISL is asked last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from layoutalg.ground import limits
from layoutalg.ground.cache import kept
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.piecewise import confirm, functions, questions, small
from layoutalg.piecewise.budget import solve
from layoutalg.piecewise.clauses import Atom
from layoutalg.piecewise.confirm import DisagreementError, held, judged, valued
from layoutalg.piecewise.meaning import Meaning, UnreadError, read


@dataclass(frozen=True, slots=True)
class NotABox:
    """Why a domain is not a box from the origin; ``witness`` holds a missing point where there is one."""

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
        'it has no value everywhere in the box (3, 3)'
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
        sides = _sides(meaning)
        if sides is not None:
            return _of_sides(sides)
    except UnreadError:
        pass
    return _asked(text)


def _of_points(places: list[np.ndarray], count: int) -> tuple[int, ...] | NotABox:
    """Return the extents of a list of distinct points that is a box from the origin, or why it is not."""
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
    return NotABox(f"it has no value everywhere in the box {found}", {"at": hole})


def _sides(meaning: Meaning) -> list[tuple[int | None, int | None]] | None:
    """Return inclusive bounds of every input where one conjunction of bounds on single inputs is the whole domain."""
    if len(meaning.clauses) != 1:
        return None
    clause = meaning.clauses[0]
    known = {clause.known.get(Atom("variable", f"#{place}"), -1): place for place in range(meaning.inputs)}
    if len(known) < meaning.inputs or -1 in known or any(place.denominator != 1 for place in clause.places):
        return None
    sides: list[tuple[int | None, int | None]] = [(None, None)] * meaning.inputs
    waiting = [clause.condition]
    while waiting:
        part = waiting.pop()
        if part[0] == "all":
            waiting += part[1]
            continue
        if part[0] not in {"least", "zero"} or len(part[1].terms) != 1 or part[1].terms[0][0] not in known:
            return None
        atom, factor = part[1].terms[0]
        low, high = sides[known[atom]]
        for sign in (1, -1) if part[0] == "zero" else (1,):
            a, b = sign * factor, sign * part[1].constant  # a x + b >= 0
            if a > 0:
                low = -(b // a) if low is None else max(low, -(b // a))
            else:
                high = b // -a if high is None else min(high, b // -a)
        sides[known[atom]] = low, high
    return sides


def _of_sides(sides: list[tuple[int | None, int | None]]) -> tuple[int, ...] | NotABox:
    if any(low is None or high is None or low > high for low, high in sides):
        return NotABox("its domain is empty or unbounded")
    late = next((k for k, (low, _) in enumerate(sides) if low != 0), None)
    if late is not None:
        return NotABox(f"input {late} does not start at 0")
    return tuple((high or 0) + 1 for _, high in sides)


def _asked(text: str) -> tuple[int, ...] | NotABox:
    """Ask ISL; a box and a hole are confirmed."""
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
        return NotABox(f"it has no value everywhere in the box {sides}", {"at": hole})
    return NotABox("its domain is empty or unbounded")


def _box_text(found: tuple[int, ...]) -> str:
    bounds = " and ".join(["0 = 0", *(f"0 <= x{k} < {extent}" for k, extent in enumerate(found))])
    return f"{{ [{', '.join(f'x{k}' for k in range(len(found)))}] : {bounds} }}"


def link(outer: str, axes: int, inner: str, outputs: int) -> str | None:
    """Return the map from the outputs of an inner function to the axes of an outer one; None where they correspond.

    A single output that meets several axes of a total layout, or none, is their flat index.

    Raises: AdmissibilityError: LA650.

    Example:
        >>> link("{ [r, c] -> [(8r + c)] : 0 <= r <= 3 and 0 <= c <= 7 }", 2, "{ [i] -> [(4i)] : 0 <= i <= 7 }", 1)
        '{ [v] -> [v mod 4, floor(v/4)] }'
    """
    if outputs == axes:
        return None
    found = extents(outer)
    if outputs != 1 or isinstance(found, NotABox):
        because = f"{outputs} outputs meet {axes} axes"
        where = (outer[:200], f"after {inner[:200]}")
        raise AdmissibilityError(Diagnostic("LA650", "the piecewise layouts do not compose", where, because))
    if not found:
        return "{ [v] -> [] : v = 0 }"
    parts, weight = [], 1
    for position, extent in enumerate(found):
        digit = f"floor(v/{weight})" if weight > 1 else "v"
        parts.append(digit if position == len(found) - 1 else f"{digit} mod {extent}")  # the last one is not wrapped
        weight *= extent
    return f"{{ [v] -> [{', '.join(parts)}] }}"
