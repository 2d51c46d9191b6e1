"""Bounding boxes of functions and sets by interval arithmetic, without ISL.

Every step keeps a superset of the points, so a box is always valid; if it is finite, testing each of its points finds
all points. An end of None is unbounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from layoutalg.ground import clock
from layoutalg.piecewise.pieces import Form, Region
from layoutalg.piecewise.value import Value

Span: TypeAlias = "tuple[int | None, int | None]"
Terms: TypeAlias = "list[tuple[int, int]]"
ROUNDS = 6


def box(value: Value, params: Mapping[str, int]) -> list[Span] | None:
    """Return inclusive bounds of the axes of all points of a function or set; None if it is empty.

    Example:
        >>> from layoutalg.piecewise.sets import PointSet
        >>> box(PointSet("[N] -> { [i, j] : 0 <= 3i <= N and i <= j }").value, {"N": 8})
        [(0, 2), (0, None)]
    """
    if value.params:
        return _hull_of(value, [(params[name], params[name]) for name in value.params])
    if value.spans is None:
        value.spans = (_hull_of(value, []),)
    found: list[Span] | None = value.spans[0]
    return found


def _hull_of(value: Value, known: list[Span]) -> list[Span] | None:
    """Return the box at these parameters."""
    whole: list[Span] | None = None
    for piece in value.pieces:
        for region in piece.regions:
            clock.check("bounds of a set")
            found = _narrowed(region, [*known, *[(None, None)] * len(value.axes)])
            if found is not None:
                mine = found[len(known) : len(known) + len(value.axes)]
                whole = mine if whole is None else [hull(a, b) for a, b in zip(whole, mine, strict=True)]
    return whole


def finite_box(value: Value, params: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """Return an inclusive bounding box, (0, -1) per axis of an empty set; None if it is not bounded that way.

    Example:
        >>> from layoutalg.piecewise.sets import PointSet
        >>> finite_box(PointSet("[N] -> { [i, j] : 0 <= 3i <= N and 0 <= j < i }").value, {"N": 8})
        [(1, 2), (0, 1)]
    """
    found = box(value, params)
    if found is None:
        return [(0, -1)] * len(value.axes) if value.axes else None
    return None if any(None in span for span in found) else [(low or 0, high or 0) for low, high in found]


def _narrowed(region: Region, dims: list[Span]) -> list[Span] | None:
    """Return spans of the inputs and floors that contain all solutions of a region; None if it has no solution."""
    spans = [*dims, *[(None, None)] * len(region.floors)]
    floors = [(*_terms(form, len(dims)), form.denominator) for form in region.floors]
    demands: list[tuple[Terms, int]] = []
    for form, is_equality in region.constraints:
        terms, constant = _terms(form, len(dims))
        demands.append((terms, constant))
        if is_equality:
            demands.append(([(k, -a) for k, a in terms], -constant))
    for _ in range(ROUNDS):
        before = list(spans)
        for place, (terms, constant, n) in enumerate(floors, len(dims)):
            low, high = span_of(terms, constant, spans)
            spans[place] = meet(spans[place], (None if low is None else low // n, None if high is None else high // n))
        for terms, constant in demands:
            demand(terms, constant, spans)
        for place in range(len(spans) - 1, len(dims) - 1, -1):
            terms, constant, n = floors[place - len(dims)]
            low, high = spans[place]
            if low is not None:
                demand(terms, constant - low * n, spans)
            if high is not None:
                demand([(k, -a) for k, a in terms], high * n + n - 1 - constant, spans)
        if any(low is not None and high is not None and low > high for low, high in spans):
            return None
        if spans == before:
            break
    return spans


def _terms(form: Form, dims: int) -> tuple[Terms, int]:
    terms = [(k, a) for k, a in enumerate(form.dims) if a]
    return [*terms, *((dims + k, a) for k, a in enumerate(form.floors) if a)], form.constant


def span_of(terms: Sequence[tuple[int, int]], constant: int, spans: Sequence[Span]) -> Span:
    """Return the span of a sum of terms (place, coefficient)."""
    low: int | None = constant
    high: int | None = constant
    for place, a in terms:
        least, most = spans[place] if a > 0 else spans[place][::-1]
        low = None if low is None or least is None else low + a * least
        high = None if high is None or most is None else high + a * most
    return low, high


def demand(terms: Sequence[tuple[int, int]], constant: int, spans: list[Span]) -> None:
    """Narrow spans by the condition that a sum of terms is >= 0."""
    finite, open_at = constant, -1
    for place, (atom, a) in enumerate(terms):
        most = spans[atom][1] if a > 0 else spans[atom][0]
        if most is None:
            if open_at >= 0:
                return
            open_at = place
        else:
            finite += a * most
    for place, (atom, a) in enumerate(terms):
        if open_at >= 0 and place != open_at:
            continue
        low, high = spans[atom]
        most = high if a > 0 else low
        others = finite - (a * most if most is not None and open_at < 0 else 0)
        if a > 0:  # x >= -others / a
            least = -(others // a)
            spans[atom] = (least if low is None else max(low, least), high)
        else:
            top = others // -a
            spans[atom] = (low, top if high is None else min(high, top))


def meet(first: Span, second: Span) -> Span:
    """Return the intersection of two spans."""
    lows = [a for a in (first[0], second[0]) if a is not None]
    highs = [b for b in (first[1], second[1]) if b is not None]
    return max(lows, default=None), min(highs, default=None)


def hull(first: Span, second: Span) -> Span:
    """Return the least span that contains two spans."""
    low = None if first[0] is None or second[0] is None else min(first[0], second[0])
    return low, None if first[1] is None or second[1] is None else max(first[1], second[1])
