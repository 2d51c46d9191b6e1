"""Integers: affine forms on boxes, matrices, sizes and what is known of them."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, permutations, product
from typing import Any

from layoutalg.ground.digits import span as digit_span
from layoutalg.ground.facts import Facts, _tighten
from layoutalg.integer.axes import Modes, _first_difference, coalesced
from layoutalg.integer.engines import _Shift, _union
from layoutalg.integer.forms import first_at_least, growing, residue_form, span
from layoutalg.integer.layout import IntegerLayout, outputs_at
from layoutalg.integer.matrix import _subtracted, apply, identity, multiply, transpose
from layoutalg.piecewise import boxes
from layoutalg.proofs.laws.law import BIT_VECTORS, INTEGERS, Law, stated
from layoutalg.proofs.laws.solvers import CVC5, Z3
from layoutalg.proofs.laws.term import Condition as Holds
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial

LAWS: list[Law] = []
law = partial(stated, LAWS)

_TWO = "all boxes, all coefficients; two axes: base and step of the induction"


def _signs(trial: Trial, slope: Any, extent: Any, digit: Any) -> None:
    """State the signs of products, so that the solvers need not multiply."""
    for distance in (digit, extent - 1 - digit):
        trial.claim(slope * distance >= 0 if slope > 0 else slope * distance <= 0, "a product of signs")


def _form(trial: Trial) -> tuple[Any, ...]:
    """Return any form of two axes, its box, and a point of it."""
    a, b, c = [trial.integer(name) for name in "abc"]
    m, n = trial.extent("m"), trial.extent("n")
    return a, b, c, m, n, trial.digit("x", m), trial.digit("y", n)


@law("boxes.range", INTEGERS, _TWO)
def _ranges(trial: Trial) -> None:
    """span(a, c) is the least and the greatest value of a x + c on a box."""
    a, b, c, m, n, x, y = _form(trial)
    low, high = span((a, b), c, (m, n))
    _signs(trial, a, m, x)
    _signs(trial, b, n, y)
    trial.claim(every(low <= a * x + b * y + c, a * x + b * y + c <= high), "no value leaves the range")
    corners = [c + s * a * (m - 1) + t * b * (n - 1) for s, t in product((0, 1), repeat=2)]
    digits = ((m, a), (n, b))
    trial.claim(every(digit_span(digits)[0] + c == low, digit_span(digits)[1] + c == high), "digits have the same span")
    trial.claim(every(some(*[low == at for at in corners]), some(*[high == at for at in corners])), "both ends occur")


@law("boxes.residue", INTEGERS, "all moduli, all boxes, all coefficients; one axis")
def _residues(trial: Trial) -> None:
    """(a x + c) mod m is an affine function of x on a box exactly where residue_form gives one, and is that one."""
    m, n, extent = trial.extent("m"), trial.integer("q"), trial.extent("n")
    base, after, turns = trial.digit("base", m), trial.digit("after", m), trial.integer("turns")
    constant, slope = m * n + base, m * turns + after - base
    x = trial.digit("x", extent)
    trial.divides(constant, m, n, base)
    trial.divides(constant + slope, m, n + turns, after)
    found = residue_form((slope,), constant, m, (extent,))
    if found is None:
        last = (extent - 1) * (after - base) + base
        trial.claim(some(last < 0, last >= m), "refused only where the affine candidate leaves the residues")
        return
    (step,), start = found
    if x == 0:
        trial.divides(slope * x + constant, m, n, base)
    else:
        _signs(trial, step, extent, x)
        trial.divides(slope * x + constant, m, n + x * turns, start + step * x)
    trial.claim((slope * x + constant) % m == start + step * x, "the residue is the affine form")


@law("boxes.first_at_least", INTEGERS, "all boxes, bounds and coefficients; two axes, the slower one of coefficient 1")
def _firsts(trial: Trial) -> None:
    """first_at_least is the first point of a box, in the order of the flat index, where a form reaches a bound."""
    a, _, c, m, n, x, y = _form(trial)
    bound = trial.integer("bound")
    _signs(trial, a, m, x)
    found = first_at_least((a, 1), c, (m, n), bound)
    if found is None:
        trial.claim(a * x + y + c < bound, "None only where no point reaches the bound")
        return
    p, q = found
    trial.claim(a * p + q + c >= bound, "the point reaches the bound")
    trial.claim(every(p >= 0, p < m, q >= 0, q < n), "the point lies in the box")
    if y < q:
        trial.claim(a * x + y + c < bound, "no earlier row reaches it")
    elif y == q and x < p:
        if a > 0:
            trial.claim(a * (p - 1 - x) >= 0, "a product of signs")
        trial.claim(a * x + y + c < bound, "no earlier point of the row reaches it")


@law("boxes.growing", INTEGERS, _TWO)
def _grows(trial: Trial) -> None:
    """Where each stride exceeds the reach of the smaller ones, no two points of a box share a value."""
    a, b, _, m, n, x, y = _form(trial)
    trial.assume(m >= 2, n >= 2, a >= 0, b >= a)
    s, t = trial.digit("s", m), trial.digit("t", n)
    if growing((a, b), (m, n)) is None:
        return
    trial.assume(a * x + b * y == a * s + b * t)
    for distance in (m - 1 - (x - s), m - 1 - (s - x)):
        trial.claim(a * distance >= 0, "a product of signs")
    for gap in (y - t - 1, t - y - 1):
        trial.claim(some(gap < 0, b * gap >= 0), "a product of signs")
    trial.claim(y == t, "the slow digits agree")
    trial.claim(some(a * (x - s) != 0, x == s), "a stride other than 0 tells digits apart")
    trial.claim(x == s, "the fast digits agree")


@law("boxes.shifted_sets", BIT_VECTORS, "all sets of 8 values; d up to 5, n up to 7")
def _unions(trial: Trial) -> None:
    """Doubling gives the union of a set moved by 0, d, ..., (n - 1) d."""
    bits = trial.bits("bits", 9)
    trial.assume(bits >= 0)
    for stride, extent in product((0, 1, 2, 3, 5), range(1, 8)):
        wanted = bits
        for k in range(1, extent):
            wanted = wanted | (bits << k * stride)
        trial.claim(_union(bits, stride, extent, _Shift(0)) == wanted, f"the union of {extent} sets, {stride} apart")


Span = tuple[Any, Any]


def within(value: Any, interval: Span) -> Holds:
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


_OPEN = "all integers, all intervals, ends open or not, of a second one both alike"


@law("intervals.sum", INTEGERS, f"{_OPEN}; two terms: base and step of the induction")
def _sums(trial: Trial) -> None:
    """x_k in gamma(I_k) for all k implies sum of a_k x_k + c in gamma(span(I)); by induction over the terms."""
    (x, first), (y, second) = _point(trial, "x"), _point(trial, "y", alike=True)
    a, b, c = [trial.integer(name) for name in "abc"]
    found = boxes.span_of(((0, a), (1, b)), c, [first, second])
    _monotone(trial, a, x, first)
    _monotone(trial, b, y, second)
    trial.claim(within(a * x + b * y + c, found), "the sum lies in its bounds")


@law(
    "intervals.demand",
    INTEGERS,
    "all integers, all intervals with both ends or none; two terms, as the others only add up",
)
def _demands(trial: Trial) -> None:
    """x_k in gamma(I_k) and sum of a_k x_k + c >= 0 imply x_k in gamma(I_k narrowed by this demand)."""
    (x, first), (y, second) = _point(trial, "x", alike=True), _point(trial, "y", alike=True)
    a, c = trial.integer("a"), trial.integer("c")
    trial.assume(a != 0, a * x + y + c >= 0)
    _monotone(trial, a, x, first)
    if second[1] is not None:  # the quotient of the new end, and the sign of its distance times the coefficient
        size, x_or_less = (a, x) if a > 0 else (-a, -x)
        quotient = (c + second[1]) // size
        trial.claim(some(x_or_less + quotient >= 0, size * (x_or_less + quotient + 1) <= 0), "a product of signs")
    found = [first, second]
    boxes.demand(((0, a), (1, 1)), c, found)
    trial.claim(within(x, found[0]), "what satisfies the demand stays")
    trial.claim(within(y, found[1]), "what satisfies the demand stays, of the second name")


@law("intervals.meet_and_hull", INTEGERS, _OPEN)
def _sets(trial: Trial) -> None:
    """gamma(meet(I, J)) is the intersection, and gamma(hull(I, J)) holds the union."""
    x = trial.integer("x")
    first, second = _interval(trial, "a"), _interval(trial, "b", alike=True)
    in_first, in_second = bool(within(x, first)), bool(within(x, second))
    in_both = bool(within(x, boxes.meet(first, second)))
    trial.claim(in_both == (in_first and in_second), "what lies in both lies in the meet, and nothing else")
    if in_first or in_second:
        trial.claim(within(x, boxes.hull(first, second)), "what lies in one lies in the hull")


@law("intervals.class", INTEGERS, "all integers")
def _classes(trial: Trial) -> None:
    """x in [low, high] and x = r mod m imply x in the interval moved into the class, and no contradiction is seen."""
    m, steps, up, down = trial.extent("m"), trial.integer("q"), trial.integer("up"), trial.integer("down")
    r, past, short = trial.digit("r", m), trial.digit("past", m), trial.digit("short", m)
    x, low, high = m * steps + r, r - m * up - past, m * down + r + short
    trial.divides(r - low, m, up, past)
    trial.divides(high - r, m, down, short)
    trial.assume(low <= x, x <= high)
    facts = Facts({"x": None}, {"x": low}, {"x": high}, {"x": (m, r)})  # type: ignore[dict-item]
    _tighten(facts, "x")
    trial.claim(within(x, (facts.low["x"], facts.high["x"])), "what lies in interval and class stays")
    trial.claim(not facts.contradiction, "no contradiction where something lies in both")


def leibniz(A: Any) -> Any:
    """Return the determinant as the sum over all permutations."""
    total: Any = 0
    for order in permutations(range(len(A))):
        sign = (-1) ** sum(a > b for a, b in combinations(order, 2))
        total = total + sign * math.prod([A[k][place] for k, place in enumerate(order)])
    return total


def _symbols(trial: Trial, name: str, n: int) -> Any:
    return tuple([tuple([trial.integer(f"{name}{i}{j}") for j in range(n)]) for i in range(n)])


def _equal(trial: Trial, left: Any, right: Any, what: str) -> None:
    trial.claim(len(left) == len(right), what)
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            trial.claim(a == b, what)


def _ring(trial: Trial, n: int) -> None:
    A, B, C = [_symbols(trial, name, n) for name in "ABC"]
    x = tuple([trial.integer(f"x{k}") for k in range(n)])
    _equal(trial, multiply(multiply(A, B), C), multiply(A, multiply(B, C)), "(A B) C = A (B C)")
    _equal(trial, [apply(multiply(A, B), x)], [apply(A, apply(B, x))], "(A B) x = A (B x)")
    _equal(trial, transpose(multiply(A, B)), multiply(transpose(B), transpose(A)), "(A B)^T = B^T A^T")
    _equal(trial, multiply(identity(n), A), A, "I A = A")


law(
    "matrices.ring",
    CVC5,
    "all integer matrices; 3 x 3",
    says="(A B) C = A (B C), (A B) x = A (B x), (A B)^T = B^T A^T, I A = A.",
)(partial(_ring, n=3))
law("matrices.ring", Z3, "all integer matrices; 2 x 2")(partial(_ring, n=2))


@law("matrices.row_operation", INTEGERS, "all integer matrices; 2 x 2")
def _operation(trial: Trial) -> None:
    """A row less q times another is what elimination writes, and the determinant stays."""
    A, q = _symbols(trial, "A", 2), trial.integer("q")
    changed = (tuple(_subtracted(list(A[0]), q, list(A[1]))), *A[1:])
    for entry, a, b in zip(changed[0], A[0], A[1], strict=True):
        trial.claim(entry == a - q * b, "row - q base")
    trial.claim(leibniz(changed) == leibniz(A), "the determinant stays")


_STEP = "all extents >= 1, all strides; two axes: base and step of the induction"


def _of_symbols(extents: Any, rows: Any, moduli: Any) -> IntegerLayout:
    layout = object.__new__(IntegerLayout)
    fields = {
        "inputs": tuple([(f"x{k}", extent) for k, extent in enumerate(extents)]),
        "outputs": tuple([(f"y{k}", m) for k, m in enumerate(moduli)]),
        "matrix": rows,
        "offset": (0,) * len(rows),
    }
    for name, value in fields.items():
        object.__setattr__(layout, name, value)
    return layout


def _evaluated(modes: Modes, index: Any, output: int) -> Any:
    total: Any = 0
    for extent, stride in modes:
        index, digit = divmod(index, extent)
        total = total + digit * stride[output]
    return total


@law("integer_layouts.coalesced", INTEGERS, f"{_STEP}; two outputs over Z")
def _keeps(trial: Trial) -> None:
    """The coalesced form is the same function of the flat index; by induction over the axes."""
    m, n = trial.extent("m"), trial.extent("n")
    rows = tuple([tuple([trial.integer(f"{name}{k}") for k in (0, 1)]) for name in "de"])
    x, y = trial.digit("x", m), trial.digit("y", n)
    layout = _of_symbols((m, n), rows, (0, 0))
    trial.divides(x + m * y, m, y, x)
    for output, value in enumerate(outputs_at(layout, (x, y))):
        trial.claim(_evaluated(coalesced(layout), x + m * y, output) == value, "the value at a flat index stays")


@law("integer_layouts.one_form", INTEGERS, "all extents >= 2, all strides; two modes each")
def _differ(trial: Trial) -> None:
    """Coalesced forms of one size whose extents differ are different functions, and first_difference is a flat index
    where they differ.
    """
    m, n, d, e = trial.extent("m"), trial.extent("n"), trial.integer("d"), trial.integer("e")
    s, t, a, b = trial.extent("s"), trial.extent("t"), trial.integer("a"), trial.integer("b")
    trial.assume(m >= 2, n >= 2, s >= 2, t >= 2, m * d != e, s * a != b, m * n == s * t)
    left: Any = ((m, (d,)), (n, (e,)))
    right: Any = ((s, (a,)), (t, (b,)))
    if m == s:
        return
    at = _first_difference(left, right)
    if at is None:
        trial.claim(False, "forms of unequal extents differ somewhere")
    for extent in (m, s):
        trial.divides(1, extent, 0, 1)
    if at != 1:
        small, large = (m, s) if m < s else (s, m)
        trial.claim(at == small, "the end of the shorter mode")
        trial.divides(small, small, 1)
        trial.divides(small, large, 0, small)
    trial.claim(_evaluated(left, at, 0) != _evaluated(right, at, 0), "the forms differ there")
