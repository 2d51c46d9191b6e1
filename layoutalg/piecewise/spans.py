"""Bounding box of the points of a clause by interval arithmetic, without ISL.

Every step keeps a superset of the points, so the box is always valid; if it is finite, testing each of its points finds
all solutions. An end of None is unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from layoutalg.piecewise.clauses import Atom, Clause, Condition, Linear

Span: TypeAlias = "tuple[int | None, int | None]"
ROUNDS = 6
BRANCHES = 64


def places_within(clause: Clause, spans: Sequence[Span], places: int | None = None) -> list[Span] | None:
    """Return inclusive bounds of the places of a clause whose atoms are within spans; None if it is never true."""
    found = narrowed(clause, clause.condition, spans)
    if found is None:
        return None
    answer = []
    for place in clause.places[:places]:
        low, high = _span(place, found)
        n = place.denominator
        answer.append((None if low is None else -(-low // n), None if high is None else high // n))
    return answer


def narrowed(clause: Clause, condition: Condition, spans: Sequence[Span]) -> list[Span] | None:
    """Return spans of the atoms that contain all solutions of a condition; None if there is none in the given spans."""
    sums: list[tuple[str, Linear]] = []
    choices: list[tuple[Condition, ...]] = []
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        match part[0]:
            case "all":
                waiting += part[1]
            case "any":
                choices.append(part[1])
            case "some":
                waiting.append(part[2])
            case "zero" | "least":
                sums.append((part[0], part[1]))
    found = list(spans)
    for _ in range(ROUNDS):
        before = list(found)
        if not _round(clause, sums, found):
            return None
        if found == before:
            break
    for parts in choices[:BRANCHES]:
        union: list[Span] | None = None
        for part in parts[:BRANCHES]:
            inner = narrowed(clause, part, found)
            if inner is not None:
                union = inner if union is None else [hull(a, b) for a, b in zip(union, inner, strict=True)]
        if len(parts) > BRANCHES:
            continue
        if union is None:
            return None
        found = union
    return found


def _round(clause: Clause, sums: Sequence[tuple[str, Linear]], spans: list[Span]) -> bool:
    """Narrow once: forward through the atoms, by the sums' conditions, and back into floors; False if empty."""
    for place, atom in enumerate(clause.atoms):
        if atom.kind != "variable":
            spans[place] = _meet(spans[place], _forward(atom, spans))
    for kind, linear in sums:
        _demand(linear, spans)
        if kind == "zero":
            _demand(linear.scaled(-1), spans)
    for place in range(len(clause.atoms) - 1, -1, -1):
        atom, (low, high) = clause.atoms[place], spans[place]
        if atom.kind == "floor":
            inner = atom.sums[0]
            n, plain = inner.denominator, Linear(inner.terms, inner.constant)
            if low is not None:
                _demand(Linear(plain.terms, plain.constant - low * n), spans)
            if high is not None:
                negative = plain.scaled(-1)
                _demand(Linear(negative.terms, negative.constant + high * n + n - 1), spans)
    return not any(low is not None and high is not None and low > high for low, high in spans)


def _forward(atom: Atom, spans: Sequence[Span]) -> Span:
    """Return the span of an atom from the spans of its sums."""
    inner = [_span(part, spans) for part in atom.sums]
    low, high = inner[0]
    if atom.kind == "floor":
        n = atom.sums[0].denominator
        return None if low is None else low // n, None if high is None else high // n
    if atom.kind == "mod":
        n = atom.modulus
        if low is not None and high is not None and low // n == high // n:
            return low % n, high % n
        return 0, n - 1
    lows, highs = [a for a, _ in inner], [b for _, b in inner]
    known_lows, known_highs = [a for a in lows if a is not None], [b for b in highs if b is not None]
    if atom.kind == "min":
        return (
            min(known_lows) if len(known_lows) == len(lows) else None,
            min(known_highs) if known_highs else None,
        )
    return max(known_lows) if known_lows else None, max(known_highs) if len(known_highs) == len(highs) else None


def _span(linear: Linear, spans: Sequence[Span]) -> Span:
    """Return the span of the numerator of a sum."""
    low: int | None = linear.constant
    high: int | None = linear.constant
    for atom, a in linear.terms:
        least, most = spans[atom] if a > 0 else spans[atom][::-1]
        low = None if low is None or least is None else low + a * least
        high = None if high is None or most is None else high + a * most
    return low, high


def _demand(linear: Linear, spans: list[Span]) -> None:
    """Narrow spans by the condition that a sum's numerator is >= 0."""
    finite, open_at = linear.constant, -1
    for place, (atom, a) in enumerate(linear.terms):
        most = spans[atom][1] if a > 0 else spans[atom][0]
        if most is None:
            if open_at >= 0:
                return
            open_at = place
        else:
            finite += a * most
    for place, (atom, a) in enumerate(linear.terms):
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


def _meet(first: Span, second: Span) -> Span:
    lows = [a for a in (first[0], second[0]) if a is not None]
    highs = [b for b in (first[1], second[1]) if b is not None]
    return max(lows, default=None), min(highs, default=None)


def hull(first: Span, second: Span) -> Span:
    low = None if first[0] is None or second[0] is None else min(first[0], second[0])
    return low, None if first[1] is None or second[1] is None else max(first[1], second[1])
