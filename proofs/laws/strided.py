"""Strided layouts: coordinates, coalescing, complements, composition, inverses, tilings and recasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from layoutalg.cute.complement import Chain, divisible_chain, gaps, still_digits
from layoutalg.cute.factor import Broken, factor_run, first_interaction
from layoutalg.cute.inttuple import steps_over
from layoutalg.cute.inverse import left_digits, right_digits
from layoutalg.cute.pointed import prefix_products
from layoutalg.cute.recast import inner_counts, narrower, wider
from layoutalg.ground.digits import Flat, evaluate, merge, split
from layoutalg.proofs.laws.law import INTEGERS, Law, stated
from layoutalg.proofs.laws.solvers import CVC5, Z3
from layoutalg.proofs.laws.term import denied, every, implies, some
from layoutalg.proofs.laws.trial import Trial, digits_of, index, modes

LAWS: list[Law] = []
law = partial(stated, LAWS)

_TWO = "all extents of two modes, all coordinates: step of the induction"
_THREE = "all extents of three modes, all coordinates"


def _extents(trial: Trial) -> tuple[Any, Any]:
    return trial.extent("s"), trial.extent("t")


@law("coordinates.round_trip", INTEGERS, _TWO)
def _there_and_back(trial: Trial) -> None:
    """The digits of a 1-D coordinate lie inside their extents, make the coordinate again and leave nothing:
    crd2idx(idx2crd(i, S), S) = i; by induction over the modes.
    """
    extents, i = _extents(trial), trial.integer("i")
    s, t = extents
    trial.assume(i >= 0, i < s * t)
    digits, rest = split(i, extents)
    for digit, extent in zip(digits, extents, strict=True):
        trial.claim(every(digit >= 0, digit < extent), "digits lie inside their extents")
    trial.claim(digits[0] + s * (digits[1] + t * rest) == i, "the digits make the coordinate")
    trial.claim(s * (digits[1] + t * rest) < s * t, "the slower digit lies inside")
    trial.claim(digits[1] + t * rest < t, "below its extent")
    trial.claim(rest == 0, "nothing is left behind the last digit")


@law("coordinates.unique", INTEGERS, _THREE)
def _back_and_there(trial: Trial) -> None:
    """idx2crd(crd2idx(c, S), S) = c: a coordinate is the only one with its number."""
    extents = (*_extents(trial), trial.extent("u"))
    digits = digits_of(trial, "c", extents)
    found, rest = split(index(trial, digits, extents), extents)
    for digit, wanted in zip(found, digits, strict=True):
        trial.claim(digit == wanted, "splitting gives the digits back")
    trial.claim(rest == 0, "nothing is left")


@law("coordinates.colexicographic", INTEGERS, _TWO)
def _ordered(trial: Trial) -> None:
    """Coordinates are numbered in colexicographic order: the first mode runs fastest."""
    extents = _extents(trial)
    s = extents[0]
    given = digits_of(trial, "a", extents), digits_of(trial, "b", extents)
    i, j = [index(trial, digits, extents) for digits in given]
    one, two = [split(number, extents)[0] for number in (i, j)]
    trial.claim(implies(one[1] < two[1], s * (one[1] + 1) <= s * two[1]), "a slower digit outweighs a faster one")
    trial.claim(implies(two[1] < one[1], s * (two[1] + 1) <= s * one[1]), "on both sides")
    before = some(one[1] < two[1], every(one[1] == two[1], one[0] < two[0]))
    trial.claim(implies(before, i < j), "coordinates in order have numbers in order")
    trial.claim(implies(i < j, before), "and numbers in order have coordinates in order")


@law("coordinates.conversion", INTEGERS, "(s, t u) and (s t, u) for all s, t and u")
def _regrouped(trial: Trial) -> None:
    """crd2crd keeps the 1-D coordinate, and converting there and back is the identity."""
    s, t, u = trial.extent("s"), trial.extent("t"), trial.extent("u")
    a, b, c = digits_of(trial, "c", (s, t, u))
    i = index(trial, (a, b + t * c), (s, t * u))
    trial.claim(s * (b + 1) <= s * t, "the first two digits lie inside")
    trial.divides(i, s * t, c, a + s * b)
    trial.divides(c, u, 0, c)
    (first, second), rest = split(i, (s * t, u))
    trial.claim(every(first == a + s * b, second == c, rest == 0), "the coordinate in the other shape")
    trial.claim(first + s * t * second == i, "which has the same number")
    (first, second), rest = split(i, (s, t * u))
    trial.claim(every(first == a, second == b + t * c, rest == 0), "and back")


_STEP = "all extents >= 1, all strides; two modes: base and step of the induction"


@law("coalesce.function", INTEGERS, _STEP)
def _keeps(trial: Trial) -> None:
    """coalesce(L)(i) = L(i) for every 1-D coordinate i; by induction over the modes, as merge compares each mode with
    the last one kept alone.
    """
    flat = modes(trial, 2)
    index = trial.digit("i", flat[0][0] * flat[1][0])
    trial.claim(evaluate(merge(flat), index) == evaluate(flat, index), "merge keeps the value at i")


@law("coalesce.idempotent", INTEGERS, "all extents, all strides; three modes")
def _idempotent(trial: Trial) -> None:
    """coalesce(coalesce(L)) = coalesce(L): a list without extents 1 whose neighbours do not continue each other stays
    as it is.
    """
    flat = modes(trial, 3)
    for (s, d), (_, e) in pairwise(flat):
        trial.assume(s >= 2, s * d != e)
    trial.assume(flat[-1][0] >= 2)
    again = merge(flat)
    trial.claim(len(again) == len(flat), "merge keeps every mode of a normal form")
    for kept, mode in zip(again, flat, strict=True):
        trial.claim(kept[0] == mode[0], "merge keeps its extents")
        trial.claim(kept[1] == mode[1], "merge keeps its strides")


@law("coalesce.complete", INTEGERS, _STEP)
def _complete(trial: Trial) -> None:
    """coalesce(A) = coalesce(B) exactly where A and B are the same function: normal forms whose first modes differ
    differ at 1 or at the end of the shorter mode, and those with the same first mode reduce to the rest.
    """
    one, two = modes(trial, 2), modes(trial, 2, "t", "e")
    for (s, d), (t, e) in (one, two):
        trial.assume(s >= 2, t >= 2)
        trial.assume(s * d != e)
    (s, _), (t, _) = one[0], two[0]
    trial.assume(some(s != t, one[0][1] != two[0][1]))
    if s > t:
        one, two, s, t = two, one, t, s
    trial.divides(1, s, 0, 1)
    trial.divides(1, t, 0, 1)
    if s < t:
        trial.divides(s, s, 1)
        trial.divides(s, t, 0, s)
    differ = [evaluate(one, point) != evaluate(two, point) for point in (1, s)]
    trial.claim(
        some(*differ), "normal forms whose first modes differ are unequal at 1 or at the end of the shorter mode"
    )


@law("common.nullspace", INTEGERS, "all extents >= 2, all strides; two modes")
def _still(trial: Trial) -> None:
    """L(nullspace(L)(i)) = 0 for distinct coordinates, size(L) / size(filter(L)) of them; by induction over modes."""
    flat = modes(trial, 2)
    extents = [extent for extent, _ in flat]
    trial.assume(extents[0] >= 2, extents[1] >= 2)
    found = still_digits(flat)
    digits = digits_of(trial, "i", [extent for extent, _ in found])
    i = index(trial, digits, [extent for extent, _ in found]) if found else 0
    c = evaluate(found, i)
    if len(found) == 1 and found[0][0] == extents[0] * extents[1]:
        trial.claim(evaluate(flat, c) == 0, "L is 0 everywhere")
        return
    at = [0, 0]
    if found:
        at[0 if found[0][1] == 1 else 1] = digits[0]
    trial.divides(c, extents[0], at[1], at[0])
    trial.divides(at[1], extents[1], 0, at[1])
    trial.claim(evaluate(flat, c) == 0, "L(R(i)) = 0")


@law("common.ceil_div", INTEGERS, "all extents, all steps >= 1")
def _least_steps(trial: Trial) -> None:
    """ceil_div counts the least number of steps that cover a shape, mode by mode."""
    extent, step = trial.integer("extent"), trial.extent("step")
    count = steps_over(extent, step)
    trial.claim(count * step >= extent, "the steps cover the extent")
    trial.claim((count - 1) * step < extent, "one step less does not")


_CHAIN = "two modes with strides g and g s h, all g, h >= 1, all extents >= 2, all bounds: step of the induction"


def _chained(trial: Trial) -> tuple[list[Any], Chain, Any]:
    """Return g, s, h, t and the number of outermost steps; the modes s:g and t:(g s h); and the bound."""
    g, s, h, t, steps = [trial.extent(name) for name in ("g", "s", "h", "t", "steps")]
    end, slack = t * (s * g * h), trial.integer("slack")
    trial.assume(s >= 2, t >= 2, slack >= 0, slack < end)
    bound = steps * end - slack
    trial.assume(bound >= 1)
    trial.divides(-bound, end, -steps, slack)
    trial.divides(s * g * h, s * g, h)
    return [g, s, h, t, steps], ((s, g, 1), (t, s * g * h, s)), bound


@law("complement.bijective", INTEGERS, _CHAIN)
def _covers(trial: Trial) -> None:
    """Every x below the bound is A(c) + C(j) for one c and one j: the digits of x in the radix of both; so A and C are
    disjoint but for 0, and complete; by induction over the chain.
    """
    radix, chain, bound = _chained(trial)
    found = gaps(chain, bound)
    digits = [trial.digit(f"x{k}", extent) for k, extent in enumerate(radix)]
    outside = [(digits[k], radix[k]) for k in (0, 2, 4) if radix[k] != 1]
    trial.claim(len(outside) == len(found), "a digit for every gap")
    for (_, extent), (count, _) in zip(outside, found, strict=True):
        trial.claim(count == extent, "a digit has the extent of its gap")
    x = digits[4]
    for digit, extent in zip(digits[3::-1], radix[3::-1], strict=True):
        x = digit + extent * x
    place = index(trial, [digit for digit, _ in outside], [count for count, _ in found]) if found else 0
    inside = evaluate(((radix[1], chain[0][1]), (radix[3], chain[1][1])), index(trial, digits[1:4:2], radix[1:4:2]))
    trial.claim(inside + evaluate(found, place) == x, "A(c) + C(j) = x")


@law("complement.ordered", INTEGERS, _CHAIN)
def _ascending(trial: Trial) -> None:
    """The modes of the complement are in order of their strides, each behind the reach of the one before, none of
    extent 1: C is increasing.
    """
    _, chain, bound = _chained(trial)
    found = gaps(chain, bound)
    for (count, stride), (_, following) in pairwise(found):
        trial.claim(stride * count <= following, "a mode starts behind the mode before it")
    for count, stride in found:
        trial.claim(count >= 2, "no mode is superfluous")
        trial.claim(stride >= 1, "strides are positive")


@law("complement.least", INTEGERS, f"{_CHAIN}; bounds past the layout")
def _least(trial: Trial) -> None:
    """The outermost gap is counted to the least number of whole steps that covers the bound."""
    (_, _, _, _, steps), chain, bound = _chained(trial)
    (_, _, _), (t, e, _) = chain
    trial.assume(steps >= 2)
    count, stride = gaps(chain, bound)[-1]
    trial.claim(stride == t * e, "the outermost step follows the last mode")
    trial.claim(count * stride >= bound, "the bound is covered")
    trial.claim((count - 1) * stride < bound, "no step is superfluous")


@law("complement.chain", INTEGERS, "two modes of a chain in either order")
def _sorted_chain(trial: Trial) -> None:
    """divisible_chain brings modes into the order of their strides and keeps the weight that each has in the 1-D
    coordinate.
    """
    _, ((s, d, _), (t, e, _)), _ = _chained(trial)
    trial.assume(s * d != e)
    swapped = trial.flag("swapped")
    flat = ((t, e), (s, d)) if swapped else ((s, d), (t, e))
    trial.claim(d < e, "the second stride is greater")
    trial.claim(denied(e < s * d), "and not below the reach of the first mode")
    found = divisible_chain(flat, "")
    for mode, wanted in zip(found, ((s, d, t if swapped else 1), (t, e, 1 if swapped else s)), strict=True):
        for got, given in zip(mode, wanted, strict=True):
            trial.claim(got == given, "modes keep extent, stride and weight")


_RUNS = "A of two modes in normal form, all strides; all steps that divide its first extent, all extents of the run"
_THROUGH = "A of two modes in normal form, B and C of one that pass its first extent, all extents >= 2, all strides"
_DIGITS = "A of two modes in normal form, all strides; two runs, one below and one past its first extent"


def _outer(trial: Trial) -> tuple[Any, Any, Flat]:
    """Return step, q and A = (step q, s1):(d0, d1) in normal form."""
    step, q = trial.extent("step"), trial.extent("q")
    (_, d0), (s1, d1) = modes(trial, 2)
    trial.assume(step * q >= 2, s1 >= 2, step * q * d0 != d1)
    return step, q, ((step * q, d0), (s1, d1))


@law("composition.run", INTEGERS, _RUNS)
def _run(trial: Trial) -> None:
    """Where i -> A(step i) is strided on a run, factor_run gives its digits; where it breaks, the index named has
    another value than a layout: by induction over the modes of A.
    """
    step, q, outer = _outer(trial)
    (s0, _), (s1, _) = outer
    r, e, i0, i1 = trial.integer("r"), trial.digit("e", q), trial.digit("i0", q), trial.integer("i1")
    extent, i = e + q * r, i0 + q * i1
    trial.assume(r >= 0, extent >= 2, step * (extent - 1) < s0 * s1, i1 >= 0, i < extent)
    trial.divides(extent, q, r, e)
    trial.divides(s0, step, q)
    trial.divides(step, s0, *((1, 0) if q == 1 else (0, step)))
    trial.divides(s0, s0, 1)
    found = factor_run(outer, step, extent)
    if isinstance(found, Broken):
        trial.claim(found.actual == evaluate(outer, step * found.index), "the value at the break is A's")
        trial.claim(found.actual != found.expected, "the value at the break is not the one of a layout")
        return
    trial.claim(math.prod([count for count, _ in found]) == extent, "the run has the extent of B's mode")
    trial.claim(i1 * s0 <= step * (extent - 1), "the coordinate lies inside A")
    trial.claim(i1 < s1, "and so does its last digit")
    trial.divides(step * i, s0, i1, step * i0)
    trial.divides(i1, s1, 0, i1)
    if len(found) == 1:
        trial.divides(i, extent, 0, i)
    else:
        trial.divides(i, q, i1, i0)
        trial.divides(i1, r, 0, i1)
    trial.claim(evaluate(found, i) == evaluate(outer, step * i), "R(i) = A(step i)")


@law("composition.adds", Z3, _DIGITS)
def _adds(trial: Trial) -> None:
    """A adds up over the modes of B exactly where first_interaction finds nothing: the digits it names are a place
    where A does not.
    """
    outer = modes(trial, 2)
    (s0, d0), (s1, d1) = outer
    a, m, b, t, u = trial.extent("a"), trial.integer("m"), trial.integer("b"), trial.extent("t"), trial.extent("u")
    x, y, h, last = trial.digit("x", t), trial.digit("y", u), b + s0 * m, (t - 1, u - 1)
    trial.assume(s0 >= 2, s1 >= 2, s0 * d0 != d1, m >= 0, b >= 0, t >= 2, u >= 2)
    trial.assume(a * (t - 1) < s0, b * (u - 1) < s0, last[0] * a + last[1] * h < s0 * s1)
    trial.divides(h, s0, m, b)
    trial.divides(a, s0, 0, a)
    carries = bool(a * (t - 1) + b * (u - 1) >= s0)
    if carries:
        _state_sum(trial, outer, last, (a, m, b, h), 1)
        trial.claim(denied(_additive(outer, last, (a, h))), "a carry changes the value: A is in normal form")
    found = first_interaction(outer, ((t, a), (u, h)))
    trial.claim((found is None) is not carries, "an interaction is found exactly where digits carry")
    if found is None:
        for smaller, greater in ((a * x, a * (t - 1)), (b * y, b * (u - 1)), (h * y, h * (u - 1))):
            trial.claim(smaller <= greater, "a product grows with its factor")
        _state_sum(trial, outer, (x, y), (a, m, b, h), 0)
        trial.claim(_additive(outer, (x, y), (a, h)), "A adds up where no interaction is found")
    else:
        trial.claim(every(*[every(at >= 0, at < end) for at, end in zip(found, (t, u), strict=True)]), "a place in B")
        trial.claim(denied(_additive(outer, found, (a, h))), "A does not add up at the place named")


def _additive(outer: Flat, at: Sequence[Any], steps: Sequence[Any]) -> Any:
    first, second = [digit * step for digit, step in zip(at, steps, strict=True)]
    return evaluate(outer, first + second) == evaluate(outer, first) + evaluate(outer, second)


def _state_sum(trial: Trial, outer: Flat, at: Sequence[Any], steps: Sequence[Any], carry: int) -> None:
    """State the digits in A of x a, y h and their sum, with h = b + s0 m and that carry into the last one."""
    (s0, _), (s1, _) = outer
    (x, y), (a, m, b, h) = at, steps
    low = x * a + y * b
    trial.claim(s0 * (m * y + carry) <= x * a + y * h, "the first digits are left out")
    trial.claim(s0 * (m * y + carry) < s0 * s1, "the sum lies inside A")
    trial.claim(m * y + carry < s1, "and so does its last digit")
    trial.divides(x * a, s0, 0, x * a)
    trial.divides(y * h, s0, m * y, y * b)
    trial.divides(x * a + y * h, s0, m * y + carry, low - s0 * carry)
    trial.divides(m * y + carry, s1, 0, m * y + carry)
    if carry:
        trial.divides(m * y, s1, 0, m * y)


@law("composition.identity", INTEGERS, "all extents >= 2, all strides; at most two modes")
def _neutral(trial: Trial) -> None:
    """The identity of A's domain is neutral on the right, an identity that contains B's values on the left."""
    (s0, d0), (s1, d1) = modes(trial, 2)
    n, step = trial.extent("n"), trial.extent("step")
    trial.assume(s0 >= 2, s1 >= 2, s0 * d0 != d1, step * (s0 - 1) < n)
    trial.divides(1, s0, 0, 1)
    trial.divides(s0, s0, 1)
    trial.divides(s0 * s1, s0, s1)
    trial.divides(1, s1, 0, 1)
    for found, wanted in (
        (factor_run(((n, 1),), step, s0), ((s0, step),)),
        (factor_run(((s0, d0), (s1, d1)), 1, s0 * s1), ((s0, d0), (s1, d1))),
    ):
        digits = () if isinstance(found, Broken) else found
        trial.claim(len(digits) == len(wanted), "the run has as many digits")
        for got, given in zip(digits, wanted, strict=True):
            trial.claim(every(got[0] == given[0], got[1] == given[1]), "the run is the operand")


def _both_ways(trial: Trial) -> None:
    """(A o B) o C and A o (B o C) for A = (b c q, s):(d, e), B = (c q r):b and C = (q t):c with t <= r <= s."""
    b, c, q, r, s, t = [trial.extent(name) for name in ("b", "c", "q", "r", "s", "t")]
    d, e = trial.integer("d"), trial.integer("e")
    trial.assume(t >= 2, t <= r, r <= s, b >= 2, c >= 2, q >= 2, b * c * q * d != e)
    outer, middle, count = ((b * c * q, d), (s, e)), c * q * r, q * t
    for value, divisor, quotient, rest in (
        (b, b * c * q, 0, b), (b * c * q, b, c * q, 0), (middle, c * q, r, 0), (b * (c * q), b * c * q, 1, 0),
        (c, c * q, 0, c), (c * q, c, q, 0), (count, q, t, 0), (c * q, c * q, 1, 0),
        (b * c, b * c * q, 0, b * c), (b * c * q, b * c, q, 0), (b * c * q, b * c * q, 1, 0),
        (c * b, b * c * q, 0, c * b), (b * c * q, c * b, q, 0), (c * b * q, b * c * q, 1, 0),
        (1, s, 0, 1), (1, r, 0, 1),
    ):  # fmt: skip
        trial.divides(value, divisor, quotient, rest)
    for step, extent, end in ((b, middle, b * c * q), (c, count, c * q), (c * b, count, b * c * q)):
        trial.claim(denied(step * (extent - 1) < end), "the run passes the first extent")
    below = factor_run(((middle, b),), c, count)
    left: list[tuple[Any, Any]] = []
    right: list[tuple[Any, Any]] = []
    first = factor_run(outer, b, middle)
    trial.claim(not isinstance(first, Broken) and not isinstance(below, Broken), "both inner compositions exist")
    if not isinstance(first, Broken) and not isinstance(below, Broken):
        for found, side in ((factor_run(first, c, count), left), (factor_run(outer, below[0][1], count), right)):
            trial.claim(not isinstance(found, Broken), "both sides exist")
            side += [] if isinstance(found, Broken) else found
    trial.claim(len(left) == len(right) == 2, "both sides have the two digits")
    for one, two in zip(left, right, strict=True):
        trial.claim(every(one[0] == two[0], one[1] == two[1]), "the digits are the same")


law("composition.associative", CVC5, _THROUGH, says="(A o B) o C = A o (B o C) wherever both sides exist.")(_both_ways)

_STEP_OF_INVERSES = "all extents >= 2, all strides; two modes: the step of the induction"
_PADDED = "two modes with strides d and d m, any m >= s, all extents"


@law("inverse.right", INTEGERS, _STEP_OF_INVERSES)
def _right(trial: Trial) -> None:
    """L(right_inverse(L)(i)) = i for every i in its domain, by induction over the modes."""
    flat = modes(trial, 2)
    (s0, _), (s1, _) = flat
    trial.assume(s0 >= 2, s1 >= 2)
    found = right_digits(flat)
    if len(found) == 1 and found[0][1] == 1 and found[0][0] == s0 * s1:
        at = digits_of(trial, "j", (s0, s1))
        i = index(trial, at, (s0, s1))
        trial.divides(i, found[0][0], 0, i)
    else:
        digits = digits_of(trial, "k", [extent for extent, _ in found])
        i = index(trial, digits, [extent for extent, _ in found]) if found else 0
        at = [0, 0]
        for digit, (_, weight) in zip(digits, found, strict=True):
            at[0 if weight == 1 else 1] = digit
    c = evaluate(found, i)
    trial.divides(c, s0, at[1], at[0])
    trial.divides(at[1], s1, 0, at[1])
    trial.claim(evaluate(flat, c) == i, "L(R(i)) = i")


def _left(trial: Trial, swapped: bool = False) -> None:
    d, s, t, g = [trial.extent(name) for name in ("d", "s", "t", "g")]
    p, j, k = trial.digit("p", s), trial.digit("j", s), trial.digit("k", t)
    v, w = (t, 1) if swapped else (1, s)
    trial.assume(s >= 2, t >= 2)
    m = p + s * g
    trial.divides(d * m, s * d, g, d * p)
    trial.divides(d * m, d, m)
    found = left_digits(((s, d, v), (t, d * m, w)))
    offset = j * d + k * (d * m)
    place = offset if d == 1 else j + m * k
    trial.divides(offset, d, place, 0)
    trial.divides(k, t, 0, k)
    if len(found) == (1 if d == 1 else 2):  # the modes became one digit
        trial.claim(m * k <= m * (t - 1), "the last row")
        trial.divides(place, found[-1][0], 0, place)
    elif p == 0:
        trial.divides(place, s, g * k, j)
        trial.divides(g * k, g, k)
    else:
        trial.divides(place, m, k, j)
    trial.claim(evaluate(found, offset) == j * v + k * w, "R(L(c)) = c")


_swapped = partial(_left, swapped=True)


@law("inverse.two_sided", INTEGERS, "all extents >= 2; two modes of a chain in either order")
def _onto(trial: Trial) -> None:
    """L.inverse() exists exactly where the values of L are 0, ..., size - 1; it undoes L on both sides, so it is
    unique.
    """
    s, t = trial.extent("s"), trial.extent("t")
    trial.assume(s >= 2, t >= 2)
    flat = ((s, t), (t, 1)) if trial.flag("swapped") else ((s, 1), (t, s))
    c0, c1 = digits_of(trial, "c", (s, t))
    c = index(trial, (c0, c1), (s, t))
    value = evaluate(flat, c)
    found = right_digits(flat)
    trial.claim(math.prod([extent for extent, _ in found]) == s * t, "the inverse has the size of the layout")
    if len(found) == 1:
        trial.divides(value, found[0][0], 0, value)
    else:
        trial.divides(value, t, c0, c1)
        trial.divides(c0, s, 0, c0)
    trial.claim(evaluate(found, value) == c, "R(L(c)) = c")


law(
    "inverse.left",
    Z3,
    f"{_PADDED}; in this order",
    says=(
        "left_inverse(L)(L(c)) = c for strides that divide one another, rows padded by any amount, by induction "
        "over the modes in the order of their strides."
    ),
)(_left)

law("inverse.left", CVC5, f"{_PADDED}; in this order")(_left)

law("inverse.left", CVC5, f"{_PADDED}; in the other order")(_swapped)

_SPLIT = "one mode of extent t q r with stride d, the tile t:q; all t, q, r >= 1, all strides"
_COPIES = "a block s:g, all s >= 2, all g >= 1, all places; step of the induction over the chain"


def _found_run(outer: Flat, step: Any, extent: Any) -> Flat:
    found = factor_run(outer, step, extent)
    return () if isinstance(found, Broken) else found


@law("division.tiles", INTEGERS, _SPLIT)
def _divided(trial: Trial) -> None:
    """A / T = A o (T, C) with C the complement of T: element x of tile (y, z) is A's at y + q (x + t z), each element
    of A once; by induction over the modes of T.
    """
    t, q, r, d = trial.extent("t"), trial.extent("q"), trial.extent("r"), trial.integer("d")
    trial.assume(t >= 2)
    outer = ((t * q * r, d),)
    end = t * q
    trial.divides(-(t * q * r), end, -r, 0)
    rest = gaps(((t, q, 1),), t * q * r)
    x, y, z = trial.digit("x", t), trial.digit("y", q), trial.digit("z", r)
    inside = [(digit, extent) for digit, extent in ((y, q), (z, r)) if extent != 1]
    trial.claim(math.prod([extent for extent, _ in rest]) == q * r, "as many tiles as fit")
    trial.claim(len(rest) == len(inside), "a digit of the rest for every gap")
    tile, runs = _found_run(outer, q, t), [_found_run(outer, stride, extent) for extent, stride in rest]
    trial.claim(len(tile) == 1, "the tile is one run")
    trial.claim(all(len(run) == 1 for run in runs), "so is every digit of the rest")
    value = x * tile[0][1] + sum([digit * run[0][1] for (digit, _), run in zip(inside, runs, strict=True)])
    element = y + q * (x + t * z)
    trial.claim(element < t * q * r, "the element lies inside A")
    trial.divides(element, t * q * r, 0, element)
    trial.claim(value == evaluate(outer, element), "element (x, (y, z)) of A / T is A's at y + q (x + t z)")


@law("product.copies", INTEGERS, _COPIES)
def _copied(trial: Trial) -> None:
    """A * T = (A, C o T) with C the complement of A: copy j starts at C(T(j)), and from any offset its copy, the
    element in it and the start within the gap are read back, so copies at different places are disjoint.
    """
    s, g, steps = [trial.extent(name) for name in ("s", "g", "steps")]
    a, b, c = trial.digit("a", s), trial.digit("b", g), trial.digit("c", steps)
    trial.assume(s >= 2)
    chain, end = ((s, g, 1),), s * g
    trial.divides(-(steps * end), end, -steps, 0)
    rest = gaps(chain, steps * end)
    trial.claim(math.prod([extent for extent, _ in rest]) == g * steps, "every place is counted")
    digits = [(digit, extent) for digit, extent in ((b, g), (c, steps)) if extent != 1]
    trial.claim(len(rest) == len(digits), "a digit for every gap")
    place = index(trial, [digit for digit, _ in digits], [extent for extent, _ in rest]) if rest else 0
    offset = a * g + evaluate(rest, place)
    trial.divides(offset, end, c, b + a * g)
    trial.divides(b + a * g, g, a, b)
    trial.claim(offset // end == c, "the place of the copy is read back")
    trial.claim(offset % end // g == a, "so is the element of the block")
    trial.claim(offset % end % g == b, "so is the start within the gap: copies at two places are disjoint")


@law("partition.additive", INTEGERS, "all extents and strides of one mode before two")
def _adds_up(trial: Trial) -> None:
    """A layout adds up over its modes, so a slice is the layout of the free modes behind the offset of the fixed ones;
    by induction over the modes.
    """
    flat = modes(trial, 3)
    extents = [extent for extent, _ in flat]
    digits = digits_of(trial, "c", extents)
    i, x, y = [index(trial, digits[part], extents[part]) for part in (_ALL, _FIRST, _REST)]
    trial.claim(evaluate(flat, i) == evaluate(flat[_FIRST], x) + evaluate(flat[_REST], y), "L(x, y) = L_0(x) + L_1(y)")


_ALL, _FIRST, _REST = slice(0, 3), slice(0, 1), slice(1, 3)


_NARROW = "a mode of stride 1 beside any other mode, all extents, all N >= 2"
_INSIDE = "N ends inside a mode (N q):1 beside a mode of any extent and a multiple of N as stride; all N >= 2, q >= 1"
_ACROSS = "N = s u ends inside the second mode of s:1, (u v):s; all s, u >= 2, v >= 1"


@law("recast.downcast", INTEGERS, _NARROW)
def _narrowed(trial: Trial) -> None:
    """downcast(L, N)(N c + r) = N L(c) + r, where the digit of one mode is N c + r and the others are c's."""
    s, t, d, count = trial.extent("s"), trial.extent("t"), trial.integer("d"), trial.extent("N")
    trial.assume(count >= 2)
    flat = ((s, 1), (t, d))
    a, b = digits_of(trial, "c", (s, t))
    r = trial.digit("r", count)
    found = narrower(flat, 0, count)
    trial.claim(found[0][0] == s * count, "the mode of stride 1 takes the new elements")
    trial.claim(found[1][0] == t, "the other mode keeps its extent")
    old = evaluate(flat, index(trial, (a, b), (s, t)))
    new = evaluate(found, index(trial, (r + count * a, b), (found[0][0], found[1][0])))
    trial.claim(new == count * old + r, "D(N c + r) = N L(c) + r")


@law("recast.upcast", INTEGERS, _INSIDE)
def _inside(trial: Trial) -> None:
    """L(g c + rest) = N upcast(L, N)(c) + r, r running over 0, ..., N - 1: an element is whole, and the inner parts
    follow the chain of strides; by induction over the modes of the chain.
    """
    count, q, t, m = trial.extent("N"), trial.extent("q"), trial.extent("t"), trial.integer("m")
    trial.assume(count >= 2)
    flat = ((count * q, 1), (t, count * m))
    trial.divides(1, count, 0, 1)
    trial.divides(count * m, count, m)
    trial.divides(-(count * m), count, -m)
    trial.divides(-1, count, -1, count - 1)
    trial.divides(count * q, count, q)
    trial.divides(count, count * q, *((1, 0) if q == 1 else (0, count)))
    trial.divides(count * q, count * q, 1)
    trial.divides(count, count, 1)
    inner = inner_counts(flat, count, "")
    trial.claim(inner[0] == count, "the mode of stride 1 fills the element")
    trial.claim(inner[1] == 1, "the other mode does not enter it")
    found = wider(flat, inner, count)
    r, (a, b) = trial.digit("r", count), digits_of(trial, "c", (q, t))
    trial.claim(found[0][0] == q, "the extent is divided")
    old = evaluate(flat, index(trial, (r + count * a, b), (count * q, t)))
    new = evaluate(found, index(trial, (a, b), (found[0][0], found[1][0])))
    trial.claim(old == count * new + r, "L(N c + r) = N U(c) + r")


@law("recast.upcast", INTEGERS, _ACROSS)
def _through(trial: Trial) -> None:
    s, u, v = trial.extent("s"), trial.extent("u"), trial.extent("v")
    trial.assume(s >= 2, u >= 2)
    count = s * u
    flat = ((s, 1), (u * v, s))
    trial.divides(1, count, 0, 1)
    trial.divides(-1, count, -1, count - 1)
    trial.divides(s, count, 0, s)
    trial.divides(-s, count, -1, count - s)
    trial.divides(count, s, u)
    trial.divides(u, u * v, *((1, 0) if v == 1 else (0, u)))
    trial.divides(u * v, u, v)
    trial.divides(s, s, 1)
    trial.divides(u * v, u * v, 1)
    inner = inner_counts(flat, count, "")
    trial.claim(inner[0] == s, "the first mode lies inside the element")
    trial.claim(inner[1] == u, "and so does a part of the second")
    trial.divides(inner[1] * s, count, 1)
    found = wider(flat, inner, count)
    r, p, c = trial.digit("r", s), trial.digit("p", u), trial.digit("c", v)
    trial.claim(found[0][0] == 1, "nothing is left of the first mode")
    trial.claim(found[1][0] == v, "the extent of the second is divided")
    old = evaluate(flat, index(trial, (r, p + u * c), (s, u * v)))
    new = evaluate(found[1:], index(trial, (c,), (found[1][0],)))
    trial.claim(old == count * new + r + s * p, "L(r, p + u c) = N U(c) + (r + s p)")


@law("recast.round_trip", INTEGERS, _NARROW)
def _back(trial: Trial) -> None:
    """upcast(downcast(L, N), N) = L up to the strides of modes of extent 1, and downcast(L, N) takes N L(c) + r, 0 <=
    r < N, each as often as L takes L(c).
    """
    s, t, d, count = trial.extent("s"), trial.extent("t"), trial.integer("d"), trial.extent("N")
    trial.assume(count >= 2, s >= 2, t >= 2)
    flat = narrower(((s, 1), (t, d)), 0, count)
    trial.divides(1, count, 0, 1)
    trial.divides(d * count, count, d)
    trial.divides(count, s * count, 0, count)
    trial.divides(s * count, count, s)
    trial.divides(count, count, 1)
    found = wider(flat, inner_counts(flat, count, ""), count)
    for got, given in zip(found, ((s, 1), (t, d)), strict=True):
        trial.claim(got[0] == given[0], "the extents are those of L")
        trial.claim(got[1] == given[1], "the strides are those of L")


@law("reshape.compact", INTEGERS, "all extents of three modes")
def _compact(trial: Trial) -> None:
    """The compact column-major layout takes every 1-D coordinate to itself; by induction over the modes."""
    extents = tuple([extent for extent, _ in modes(trial, 3)])
    i = index(trial, digits_of(trial, "c", extents), extents)
    flat = tuple(zip(extents, prefix_products(extents), strict=False))
    trial.claim(evaluate(flat, i) == i, "the compact layout takes i to i")


@law("reshape.mode", INTEGERS, "all extents and strides, the middle one of three modes")
def _alone(trial: Trial) -> None:
    """A mode of a layout is the layout with the other coordinates at 0."""
    flat = modes(trial, 3)
    extents = [extent for extent, _ in flat]
    c = trial.digit("c", extents[1])
    i = index(trial, [0, c, 0], extents)
    trial.divides(c, extents[1], 0, c)
    trial.claim(evaluate(flat[1:2], c) == evaluate(flat, i), "a mode is the layout with the other coordinates at 0")
