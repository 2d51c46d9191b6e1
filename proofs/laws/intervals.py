"""Intervals: what sums and demands can be is never more than what their bounds say.

Notation: an interval is a pair of ends, None for an open one; gamma of it is the set of integers between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from layoutalg.ground.facts import Facts, _tighten
from layoutalg.piecewise import boxes
from layoutalg.proofs.laws.engines import integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import Condition, every, some
from layoutalg.proofs.laws.trial import Trial

Span = tuple[Any, Any]
Terms = Sequence[tuple[int, Any]]
Spanning = Callable[[Terms, Any, Sequence[Span]], Span]
Narrowing = Callable[[Terms, Any, list[Span]], None]


def within(value: Any, interval: Span) -> Condition:
    """Return that a value lies in an interval."""
    low, high = interval
    return every(low is None or value >= low, high is None or value <= high)


def _interval(trial: Trial, name: str, alike: bool = False) -> Span:
    """Return any interval, its ends open or not, or both alike."""
    low = None if trial.flag(f"{name}open_below") else trial.integer(f"{name}low")
    high = None if (low is None if alike else trial.flag(f"{name}open_above")) else trial.integer(f"{name}high")
    return low, high


def _point(trial: Trial, name: str, alike: bool = False) -> tuple[Any, Span]:
    """Return an integer and an interval that holds it."""
    value, interval = trial.integer(name), _interval(trial, name, alike)
    trial.assume(within(value, interval))
    return value, interval


def _monotone(trial: Trial, slope: Any, value: Any, interval: Span) -> None:
    """State what a product of a slope and a distance to an end is, so that the solvers need not multiply."""
    low, high = interval
    for end, above in ((low, True), (high, False)):
        if end is not None:
            gap = value - end if above else end - value
            trial.claim(slope * gap >= 0 if slope > 0 else slope * gap <= 0, "a product of signs")


def _wrong_span(terms: Terms, constant: Any, spans: Sequence[Span]) -> Span:
    """Take the lower end whatever the sign of the coefficient."""
    low: Any = constant
    high: Any = constant
    for atom, a in terms:
        least, most = spans[atom]
        low = None if low is None or least is None else low + a * least
        high = None if high is None or most is None else high + a * most
    return low, high


def _sums(trial: Trial, span: Spanning = boxes.span_of) -> None:
    (x, first), (y, second) = _point(trial, "x"), _point(trial, "y", alike=True)
    a, b, c = [trial.integer(name) for name in "abc"]
    found = span(((0, a), (1, b)), c, [first, second])
    _monotone(trial, a, x, first)
    _monotone(trial, b, y, second)
    trial.claim(within(a * x + b * y + c, found), "the sum lies in its bounds")


def _wrong_demand(terms: Terms, constant: Any, known: list[Span]) -> None:
    """Round the other way."""
    ((_, a), *_), (low, high) = terms, known[0]
    others = constant
    for atom, b in terms[1:]:
        most = known[atom][1] if b > 0 else known[atom][0]
        if most is None:
            return
        others += b * most
    if a > 0:
        known[0] = (-others // a + 1 if low is None else max(low, -others // a + 1), high)


def _demands(trial: Trial, demand: Narrowing = boxes.demand) -> None:
    (x, first), (y, second) = _point(trial, "x", alike=True), _point(trial, "y", alike=True)
    a, c = trial.integer("a"), trial.integer("c")
    trial.assume(a != 0, a * x + y + c >= 0)
    _monotone(trial, a, x, first)
    if second[1] is not None:  # the quotient of the new end, and the sign of its distance times the coefficient
        size, x_or_less = (a, x) if a > 0 else (-a, -x)
        quotient = (c + second[1]) // size
        trial.claim(some(x_or_less + quotient >= 0, size * (x_or_less + quotient + 1) <= 0), "a product of signs")
    found = [first, second]
    demand(((0, a), (1, 1)), c, found)
    trial.claim(within(x, found[0]), "what satisfies the demand stays")
    trial.claim(within(y, found[1]), "what satisfies the demand stays, of the second name")


def _wrong_meet(first: Span, second: Span) -> Span:
    """Take the higher of the lower ends, and of the upper ones too."""
    lows, highs = [[end for end in ends if end is not None] for ends in zip(first, second, strict=True)]
    return max(lows, default=None), max(highs, default=None)


def _sets(trial: Trial, meet: Callable[[Span, Span], Span] = boxes.meet) -> None:
    x = trial.integer("x")
    first, second = _interval(trial, "a"), _interval(trial, "b", alike=True)
    in_first, in_second = bool(within(x, first)), bool(within(x, second))
    in_both = bool(within(x, meet(first, second)))
    trial.claim(in_both == (in_first and in_second), "what lies in both lies in the meet, and nothing else")
    if in_first or in_second:
        trial.claim(within(x, boxes.hull(first, second)), "what lies in one lies in the hull")


def _wrong_tighten(facts: Facts, name: str) -> None:
    """Move the lower end down into the class."""
    modulus, rest = facts.residue[name]
    facts.low[name] -= (facts.low[name] - rest) % modulus
    facts.high[name] -= (facts.high[name] - rest) % modulus + modulus


def _classes(trial: Trial, tighten: Callable[[Facts, str], None] = _tighten) -> None:
    m, steps, up, down = trial.extent("m"), trial.integer("q"), trial.integer("up"), trial.integer("down")
    r, past, short = trial.digit("r", m), trial.digit("past", m), trial.digit("short", m)
    x, low, high = m * steps + r, r - m * up - past, m * down + r + short
    trial.divides(r - low, m, up, past)
    trial.divides(high - r, m, down, short)
    trial.assume(low <= x, x <= high)
    facts = Facts({"x": None}, {"x": low}, {"x": high}, {"x": (m, r)})  # type: ignore[dict-item]
    tighten(facts, "x")
    trial.claim(within(x, (facts.low["x"], facts.high["x"])), "what lies in interval and class stays")
    trial.claim(not facts.contradiction, "no contradiction where something lies in both")


_OPEN = "all integers, all intervals, ends open or not, of a second one both alike"

LAWS = (
    Law(
        "intervals.sum",
        "x_k in gamma(I_k) for all k implies sum of a_k x_k + c in gamma(span(I)); by induction over the terms.",
        ("layoutalg.piecewise.boxes.span_of",),
        integers(_sums, partial(_sums, span=_wrong_span), f"{_OPEN}; two terms: base and step of the induction"),
    ),
    Law(
        "intervals.demand",
        "x_k in gamma(I_k) and sum of a_k x_k + c >= 0 imply x_k in gamma(I_k narrowed by this demand).",
        ("layoutalg.piecewise.boxes.demand",),
        integers(
            _demands,
            partial(_demands, demand=_wrong_demand),
            "all integers, all intervals with both ends or none; two terms, as the others only add up",
        ),
    ),
    Law(
        "intervals.meet_and_hull",
        "gamma(meet(I, J)) is the intersection, and gamma(hull(I, J)) holds the union.",
        ("layoutalg.piecewise.boxes.meet", "layoutalg.piecewise.boxes.hull"),
        integers(_sets, partial(_sets, meet=_wrong_meet), _OPEN),
    ),
    Law(
        "intervals.class",
        "x in [low, high] and x = r mod m imply x in the interval moved into the class, and no contradiction is seen.",
        ("layoutalg.ground.facts._tighten",),
        integers(_classes, partial(_classes, tighten=_wrong_tighten)),
    ),
)
