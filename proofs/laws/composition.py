"""Composition: the value, when it is defined, identities and associativity.

Main statements: R with R(c) = A(B(c)) exists, each mode of B in its place and refined at most, if and only if every
mode of B alone gives a strided run of A (``factor_run``) and A adds up over these runs (``first_interaction``). The
proofs for all values take A in normal form with two modes: one place where digits carry, which is the step of the
induction over the modes of A; and runs whose step divides the first extent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import CuteLayout, composition
from layoutalg.cute.factor import Broken, factor_run, first_interaction
from layoutalg.ground.digits import Flat, evaluate
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.laws.engines import by, enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import modes
from layoutalg.proofs.laws.solvers import CVC5, Z3
from layoutalg.proofs.laws.term import denied, every
from layoutalg.proofs.laws.trial import Trial

_RUNS = "A of two modes in normal form, all strides; all steps that divide its first extent, all extents of the run"
_THROUGH = "A of two modes in normal form, B and C of one that pass its first extent, all extents >= 2, all strides"
_DIGITS = "A of two modes in normal form, all strides; two runs, one below and one past its first extent"

Compose = Callable[[CuteLayout, CuteLayout], CuteLayout]


def _outer(trial: Trial) -> tuple[Any, Any, Flat]:
    """Return step, q and A = (step q, s1):(d0, d1) in normal form."""
    step, q = trial.extent("step"), trial.extent("q")
    (_, d0), (s1, d1) = modes(trial, 2)
    trial.assume(step * q >= 2, s1 >= 2, step * q * d0 != d1)
    return step, q, ((step * q, d0), (s1, d1))


def _run(trial: Trial, factor: Callable[..., Flat | Broken] = factor_run) -> None:
    step, q, outer = _outer(trial)
    (s0, _), (s1, _) = outer
    r, e, i0, i1 = trial.integer("r"), trial.digit("e", q), trial.digit("i0", q), trial.integer("i1")
    extent, i = e + q * r, i0 + q * i1
    trial.assume(r >= 0, extent >= 2, step * (extent - 1) < s0 * s1, i1 >= 0, i < extent)
    trial.divides(extent, q, r, e)
    trial.divides(s0, step, q)
    trial.divides(step, s0, *((1, 0) if q == 1 else (0, step)))
    trial.divides(s0, s0, 1)
    found = factor(outer, step, extent)
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


def _unchecked_run(outer: Flat, step: int, extent: int) -> Flat:
    """Divide extents without a look at the remainder."""
    (s0, d0), (_, d1) = outer
    inside = s0 // step
    return ((extent, step * d0),) if extent <= inside else ((inside, step * d0), (extent // inside, d1))


def _adds(trial: Trial, interaction: Callable[..., tuple[int, ...] | None] = first_interaction) -> None:
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
    found = interaction(outer, ((t, a), (u, h)))
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


def _neutral(trial: Trial, factor: Callable[..., Flat | Broken] = factor_run) -> None:
    (s0, d0), (s1, d1) = modes(trial, 2)
    n, step = trial.extent("n"), trial.extent("step")
    trial.assume(s0 >= 2, s1 >= 2, s0 * d0 != d1, step * (s0 - 1) < n)
    trial.divides(1, s0, 0, 1)
    trial.divides(s0, s0, 1)
    trial.divides(s0 * s1, s0, s1)
    trial.divides(1, s1, 0, 1)
    for found, wanted in (
        (factor(((n, 1),), step, s0), ((s0, step),)),
        (factor(((s0, d0), (s1, d1)), 1, s0 * s1), ((s0, d0), (s1, d1))),
    ):
        digits = () if isinstance(found, Broken) else found
        trial.claim(len(digits) == len(wanted), "the run has as many digits")
        for got, given in zip(digits, wanted, strict=True):
            trial.claim(every(got[0] == given[0], got[1] == given[1]), "the run is the operand")


def _first_stride(outer: Flat, step: int, extent: int) -> Flat | Broken:
    """Continue the first mode of A past its end."""
    return ((extent, step * outer[0][1]),)


def _both_ways(trial: Trial, factor: Callable[..., Flat | Broken] = factor_run) -> None:
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
    below = factor(((middle, b),), c, count)
    left: list[tuple[Any, Any]] = []
    right: list[tuple[Any, Any]] = []
    first = factor(outer, b, middle)
    trial.claim(not isinstance(first, Broken) and not isinstance(below, Broken), "both inner compositions exist")
    if not isinstance(first, Broken) and not isinstance(below, Broken):
        for found, side in ((factor(first, c, count), left), (factor(outer, below[0][1], count), right)):
            trial.claim(not isinstance(found, Broken), "both sides exist")
            side += [] if isinstance(found, Broken) else found
    trial.claim(len(left) == len(right) == 2, "both sides have the two digits")
    for one, two in zip(left, right, strict=True):
        trial.claim(every(one[0] == two[0], one[1] == two[1]), "the digits are the same")


Pair = tuple[CuteLayout, CuteLayout]


def _small(extents: Sequence[int], strides: Sequence[int], count: int) -> Iterator[CuteLayout]:
    for shape, stride in product(product(extents, repeat=count), product(strides, repeat=count)):
        yield CuteLayout(shape, stride)


def _pairs() -> Iterator[Pair]:
    outers = [*_small((4, 6), (1, 3), 1), *_small((2, 3, 4), (0, 1, 7), 2)]
    inners = [*_small((2, 3, 4), (0, 1, 2, 3, 5), 1), *_small((2, 3), (1, 2, 3, 6), 2)]
    for outer, inner in product(outers, inners):
        if int(inner.table().max()) < outer.size:
            yield outer, inner


def _composed(values: Sequence[int], inner: CuteLayout, compose: Compose, outer: CuteLayout) -> str | None:
    """Compare with the values A(B(i)); a refusal must be one of a function that has no such layout."""
    exists = strided_on(values, [extent for extent, _ in inner.flat])
    try:
        found = compose(outer, inner)
    except RepresentabilityError as error:
        return f"refused: {error}" if exists else None
    if not exists or found.table().tolist() != list(values):
        return "the composition has another value than A(B(c))"
    shape = found.shape if isinstance(found.shape, tuple) and inner.rank > 1 else (found.shape,)
    sizes = [CuteLayout(entry).size for entry in shape]
    return None if sizes == [extent for extent, _ in inner.flat] else "a mode of B is not in its place"


def strided_on(values: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether a function adds up over its modes and is mixed-radix on each: decided by its values alone."""
    weights = [math.prod(extents[:place]) for place in range(len(extents))]
    runs = [
        [values[weight * i] - values[0] for i in range(extent)] for weight, extent in zip(weights, extents, strict=True)
    ]
    sums = [sum(parts[::-1]) for parts in product(*runs[::-1])]
    return values[0] == 0 and sums == list(values) and all(_mixed_radix(run) for run in runs)


def _mixed_radix(run: Sequence[int]) -> bool:
    """The longest arithmetic beginning is the first digit of every form, if it divides; else there is none."""
    if len(run) == 1:
        return run[0] == 0
    count = next((i for i, value in enumerate(run) if value != i * run[1]), len(run))
    whole = len(run) % count == 0
    rest = run[::count]
    return (
        whole
        and all(value == rest[i // count] + i % count * run[1] for i, value in enumerate(run))
        and (count == len(run) or _mixed_radix(rest))
    )


def _value(pair: Pair, compose: Compose = composition) -> str | None:
    outer, inner = pair
    return _composed([outer(int(value)) for value in inner.table()], inner, compose, outer)


def _by_mode_only(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    """Compose mode by mode and never ask whether the modes add up."""
    parts = [composition(outer, mode) for mode in inner]
    return CuteLayout(tuple([part.shape for part in parts]), tuple([part.stride for part in parts]))


Triple = tuple[CuteLayout, CuteLayout, CuteLayout]


def _triples() -> Iterator[Triple]:
    outers = [*_small((4, 12), (3,), 1), *_small((2, 3, 4), (1, 6), 2)]
    middles = [*_small((4, 6), (1, 2), 1), *_small((2, 3), (1, 2, 3), 2)]
    inners = [*_small((2, 3), (1, 2), 1), *_small((2,), (1, 2, 3), 2)]
    for outer, middle, inner in product(outers, middles, inners):
        if int(middle.table().max()) < outer.size and int(inner.table().max()) < middle.size:
            yield outer, middle, inner


def _associative(triple: Triple, compose: Compose = composition) -> str | None:
    outer, middle, inner = triple
    sides = []
    for left in (True, False):
        try:
            side = compose(compose(outer, middle), inner) if left else compose(outer, compose(middle, inner))
        except LayoutError:
            continue
        sides.append(side.table().tolist())
    return None if len(sides) < 2 or sides[0] == sides[1] else "the two sides are different functions"


_CORE = ("layoutalg.cute.composition.composition", "layoutalg.cute.factor.factor_run")

LAWS = (
    Law(
        "composition.run",
        "Where i -> A(step i) is strided on a run, factor_run gives its digits; where it breaks, the index named has "
        "another value than a layout: by induction over the modes of A.",
        (*_CORE, "layoutalg.ground.digits.evaluate"),
        (
            *integers(_run, partial(_run, factor=_unchecked_run), _RUNS)[:1],
            *integers(_run, partial(_run, factor=_first_stride), _RUNS)[1:],
        ),
    ),
    Law(
        "composition.adds",
        "A adds up over the modes of B exactly where first_interaction finds nothing: the digits it names are a place "
        "where A does not.",
        ("layoutalg.cute.composition.composition", "layoutalg.cute.factor.first_interaction"),
        by(Z3, _adds, partial(_adds, interaction=lambda *_: None), _DIGITS),
    ),
    Law(
        "composition.identity",
        "The identity of A's domain is neutral on the right, an identity that contains B's values on the left.",
        _CORE,
        integers(_neutral, partial(_neutral, factor=_first_stride), "all extents >= 2, all strides; at most two modes"),
    ),
    Law(
        "composition.value",
        "composition(A, B)(c) = A(B(c)) on all of B's domain, each mode of B in its place; it is refused exactly where "
        "no layout has this function.",
        (
            "layoutalg.cute.composition.composition",
            "layoutalg.cute.composition.compose_strided",
            "layoutalg.cute.composition.after_strided",
        ),
        enumerated(
            _pairs,
            _value,
            partial(_value, compose=_by_mode_only),
            "A of at most 2 modes with extents 2..6, B of at most 2 with extents 2..4 and strides 0..6, inside A",
            3554,
        ),
        "composition.run and composition.adds prove its two steps for all values; which of the two decides where a run "
        "needs a Farey neighbour is a loop without a bound on its length, which symbols do not run",
    ),
    Law(
        "composition.associative",
        "(A o B) o C = A o (B o C) wherever both sides exist.",
        ("layoutalg.cute.composition.composition", "layoutalg.cute.factor.factor_run"),
        (
            *by(CVC5, _both_ways, partial(_both_ways, factor=_first_stride), _THROUGH),
            *enumerated(
                _triples,
                _associative,
                partial(_associative, compose=_by_mode_only),
                "A, B and C of at most 2 modes with extents 2..4, 2..6 and 2..3, each inside the one before",
                10694,
            ),
        ),
    ),
)
