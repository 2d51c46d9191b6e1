"""Sizes, what is known of them, origins of boxes, layouts with symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from laws import Row, tabled
from laws.sizes import CLAIMS, KNOWN, value_of
from layoutalg.cute import CuteLayout
from layoutalg.cute.symbolic import SymbolicLayout, composition, cosize
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import condition, conditions, divisible
from layoutalg.ground.decide import decide
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.facts import Facts, _learn, _learn_class
from layoutalg.ground.polynomial import ONE, Polynomial, named, number, total, value_at
from layoutalg.proofs.tensormap.bounds import _engine_boxes, _foreign, in_range, judged, must_cover, requested_boxes
from layoutalg.proofs.tensormap.walk import MismatchError, Walk

LAWS: list[Row] = []
law = partial(tabled, LAWS)


def _polynomials() -> Iterator[Polynomial]:
    """All polynomials in M, N, M N and M / N with coefficients -1, 0, 1/2 and 1."""
    parts = (ONE, named("M"), named("N"), named("M") * named("N"), named("M") / named("N"))
    for factors in product((Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(1)), repeat=len(parts)):
        yield total([part * factor for part, factor in zip(parts, factors, strict=True)])


_POINTS = tuple({"M": m, "N": n} for m, n in product((1, 2, 3), repeat=2))


@law(
    "sizes.normal_form",
    lambda: iter([tuple(_polynomials())]),
    1,
    "all pairs of 1,024 polynomials in M, N, M N and M / N, values at 9 sizes",
)
def _one_form(cases: tuple[Polynomial, ...]) -> str | None:
    """Two polynomials are equal exactly where they have equal values at all sizes."""
    values = {p: tuple([value_at(p, sizes) for sizes in _POINTS]) for p in cases}
    if any(table != tuple([Fraction(*value_of(p, sizes)) for sizes in _POINTS]) for p, table in values.items()):
        return "value_at is another value"
    pairs = set(values.items())
    same = len(pairs) == len({first for first, _ in pairs}) == len(set(values.values()))
    return None if same else "equal values in unequal forms, or unequal values in equal forms"


_TEXTS = (
    *("M % 16 == 0", "(M + 3) % 4 == 1", "M*N % K == 0", "64 <= M < 128", "M != N", "M > N", "2*M <= 3*N + 1"),
    *("1 < M <= N < 9", "M*M == 4*N", "M - N >= -2", "M == N == 4", "N - M > 0"),
)


@law("sizes.read", lambda: iter(_TEXTS), 12, f"{len(_TEXTS)} texts, 216 sizes")
def _meant(text: str) -> str | None:
    """The conditions of a text hold at the sizes at which Python says that the text is true."""
    for k, m, n in product((1, 2, 3), (1, 2, 4, 8, 16, 64, 127, 128), range(1, 10)):
        sizes = {"K": k, "M": m, "N": n}
        if all(each.true_at(sizes) for each in conditions(text)) != bool(eval(text, {}, sizes)):
            return f"read otherwise than Python does at {sizes}"
    factor = divisible("M*N", "K")
    held = all(
        factor.true_at({"K": k, "M": m, "N": n}) == (m * n % k == 0) for k, m, n in product(range(1, 5), repeat=3)
    )
    return None if held else "divisible is another condition"


Question = tuple[tuple[str, ...], str]


def _asked() -> Iterator[Question]:
    return product(KNOWN[:8], CLAIMS[::4])


@law("facts.shown", _asked, 160, "8 assumptions and every fourth claim, sizes up to 13")
def _shown(case: Question) -> str | None:
    """Decide shows sizes of the kind that it says, agrees with all small sizes, and is open only with both kinds."""
    known, claim = Assumptions(case[0]), condition(case[1])
    found = decide(known, claim)
    for sizes, wanted in ((found.holds_at, True), (found.fails_at, False)):
        if sizes is not None and (known.broken_at(dict(sizes)) or claim.true_at(dict(sizes)) != wanted):
            return "the sizes shown do not show it"
    if known.entails(claim) is not found.status:
        return "entails says otherwise"
    if found.status is None and found.engine != "none" and None in (found.holds_at, found.fails_at):
        return "open, and sizes of one kind are not shown"
    for m, n in product(range(1, 14), repeat=2):
        at = {"K": 2, "M": m, "N": n}
        if known.broken_at(at) is None and found.status not in (None, claim.true_at(at)):
            return f"decided otherwise than at {at}"
    return None


def _classes() -> Iterator[tuple[Fraction, Fraction, tuple[int, int]]]:
    for a, b, scale in product(range(1, 9), range(-3, 6), (2, 3, 4, 12)):
        for known in ((1, 0), (4, 3), (6, 2)):
            yield Fraction(a, scale), Fraction(b, scale), known


@law("facts.class", _classes, 864, "a = 1/12..8/2, b = -3/2..5/2, three classes known, x over a whole period")
def _class_kept(case: Any) -> str | None:
    """The class learned from a x + b being an integer is exactly the set of such x of the class known before."""
    slope, shift, known = case
    facts = Facts(residue={"x": known})
    _learn_class(facts, "x", slope, shift)
    modulus, rest = facts.residue["x"]
    period = range(4 * 12)
    members = {x for x in period if (slope * x + shift).denominator == 1 and x % known[0] == known[1]}
    if facts.contradiction:
        return "a contradiction where there is none" if members else None
    return None if members == {x for x in period if x % modulus == rest} else "another class"


def _ends() -> Iterator[tuple[Fraction, Fraction]]:
    slopes = [Fraction(a, b) for a in range(-7, 8) if a for b in (1, 2, 3)]
    return product(slopes, [Fraction(c, 2) for c in range(-9, 9)])


@law("facts.end", _ends, 756, "a = -7..7 over 1..3, b = -9/2..4")
def _end_kept(case: tuple[Fraction, Fraction]) -> str | None:
    """The interval learned from a x + b >= 0 is exactly the set of its solutions."""
    slope, shift = case
    facts = Facts()
    _learn(facts, "nonnegative", named("x") * slope + number(shift))
    low, high = facts.low.get("x", -50), facts.high.get("x", 50)
    same = {x for x in range(-50, 51) if slope * x + shift >= 0} == set(range(low, high + 1))
    return None if same else "the interval is not the set of solutions"


def _factors() -> Iterator[tuple[int, int, int, int]]:
    return product(range(-3, 4), range(-3, 4), range(-3, 4), (-1, 0, 1, 2))


@law("facts.factor", _factors, 1372, "a, b, c = -3..3, the power of x in the last term -1..2, x and y in 1..9")
def _factor_kept(case: tuple[int, int, int, int]) -> str | None:
    """What is learned from a x + b x^k y + c >= 0 holds at all of its solutions, and bounds y for 2 x >= x y + 1."""
    a, b, c, power = case
    facts = Facts(low={"x": 1, "y": 1})
    x, y = named("x"), named("y")
    factor = x * x if power == 2 else x if power == 1 else ONE / x if power else ONE
    _learn(facts, "nonnegative", x * a + factor * y * b + c)
    for at_x, at_y in product(range(1, 10), repeat=2):
        holds = a * at_x + b * Fraction(at_x) ** power * at_y + c >= 0
        values = {"x": at_x, "y": at_y}
        outside = any(not facts.low[name] <= values[name] <= facts.high.get(name, 9) for name in values)
        if holds and (
            facts.contradiction or outside or any(value_at(known, values) < 0 for known in facts.nonnegative)
        ):
            return f"a solution is lost: {values}"
    return "the bound is not found" if case == (2, -1, -1, 1) and facts.high.get("y") != 1 else None


Case = tuple[tuple[int, int], int, int, int, int, int, int]
"""Bounds, step of the origin, element stride; of the map: coordinate at 0 and its step, extent, step per origin."""


_FAR = range(-40, 41)


def _cases() -> Iterator[Case]:
    yield from product(((0, 5), (-2, 3)), (0, 1, 3), (1, 2), (-1, 0, 2), (1, 2), (4, 9), (-3, -1, 1, 2))


def _made(case: Case) -> tuple[Any, Walk, list[dict[int, int]]]:
    bounds, multiple, stride, start, walk_step, extent, move = case
    problem = SimpleNamespace(
        bounds=(bounds,), origin_multiple=(multiple,), element_strides=(stride,), tile=(3,), rank=1
    )
    axis = np.arange(3, dtype=np.int64)
    walked = Walk((start + walk_step * axis,), (extent,), (1,), (axis,), axis, 3)
    return SimpleNamespace(problem=problem), walked, [{0: move} if multiple else {}]


Tests = tuple[list[list[bool]], list[list[bool]]]


def _tests(case: Case) -> Tests:
    """Return, per element and lattice point, what the problem and what the engine call in bounds."""
    plan, walked, moves = _made(case)
    points = _FAR if case[1] else range(1)
    table = [[judged(plan, walked, moves, row, [u]) for u in points] for row in range(3)]
    return [[pair[0] for pair in row] for row in table], [[pair[1] for pair in row] for row in table]


def _members(boxes: Any, moved: bool) -> list[list[bool]]:
    if not moved:
        return [[bool(holds)] for holds in boxes.holds]
    ends = zip(boxes.holds, boxes.low[0], boxes.high[0], strict=True)
    return [[bool(holds and low <= u <= high) for u in _FAR] for holds, low, high in ends]


_ORIGINS = "576 maps of one dimension: bounds, steps, starts and extents as listed, origins up to 40 steps away"


@law("origins.boxes", _cases, 576, _ORIGINS)
def _boxes(case: Case) -> str | None:
    """The boxes of the problem and of the engine hold exactly the origins at which each calls an element in bounds."""
    plan, walked, moves = _made(case)
    wanted, engine = _tests(case)
    asked = requested_boxes(plan, walked)
    moved = _engine_boxes(walked, moves, list(asked.low))
    if _members(asked, bool(case[1])) != wanted or _members(moved, bool(case[1])) != engine:
        return "the boxes are not what is in bounds"
    if [not any(row) for row in wanted] != asked.empty().tolist():
        return "another box is empty"
    if case[1]:
        low, high = in_range(plan, 0)
        if [low <= u <= high for u in _FAR] != [case[0][0] <= u * case[1] < case[0][1] for u in _FAR]:
            return "the origins in bounds are others"
        clipped = [[here and low <= u <= high for u, here in zip(_FAR, row, strict=True)] for row in wanted]
        if _members(asked.clipped({0: (low, high)}), moved=True) != clipped:
            return "a clipped box is another"
    return None


@law("origins.classes", _cases, 576, _ORIGINS)
def _classified(case: Case) -> str | None:
    """A map is refused exactly where an element in bounds is not moved, and an element is foreign exactly where the
    engine moves it at an origin at which the problem does not call it in bounds.
    """
    plan, walked, moves = _made(case)
    wanted, engine = _tests(case)
    asked = requested_boxes(plan, walked)
    lost = any(
        a and not b for mine, theirs in zip(wanted, engine, strict=True) for a, b in zip(mine, theirs, strict=True)
    )
    try:
        must_cover(plan, walked, moves, asked)
    except MismatchError:
        return None if lost else "a map that moves all is refused"
    if lost:
        return "an element in bounds is not moved"
    foreign = _foreign(asked, _engine_boxes(walked, moves, list(asked.low)))
    extra = [any(b and not a for a, b in zip(*rows, strict=True)) for rows in zip(wanted, engine, strict=True)]
    return None if foreign == next((row for row, more in enumerate(extra) if more), None) else "another foreign element"


Sizes = dict[str, int]


Tiler = SymbolicLayout | str | int


_ROW = SymbolicLayout(("M", "N"), ("N", 1))
_COLUMN = SymbolicLayout(("M", "N"))
_PADDED = SymbolicLayout(("M", "N"), (1, "P"), ("P >= M",))
_BLOCKED = SymbolicLayout((4, "M", "N"), ("N", "4*N", 1))
_RUN = SymbolicLayout((4, "M"), (1, 4))
_SPREAD = SymbolicLayout(("M", 2), (4, 1))
_REPEATED = SymbolicLayout(("M", 2, "N"), (1, 0, "M"))
_EVEN = SymbolicLayout(("M", "N/2"), (1, "M"), ("N % 2 == 0",))
_LAYOUTS = (_ROW, _COLUMN, _PADDED, _BLOCKED, _RUN, _SPREAD, _REPEATED, _EVEN)


_TILERS: tuple[Tiler, ...] = (2, 4, "M", "N", SymbolicLayout((2, "N"), ("M", 1)), SymbolicLayout("N", "M"))


_SIZES = tuple(dict(zip("MNP", sizes, strict=True)) for sizes in product((1, 2, 3, 4, 8), (1, 2, 4), (3, 8)))


def _flat(shape: Any, stride: Any) -> list[tuple[int, int]]:
    if isinstance(shape, tuple):
        return [mode for part in zip(shape, stride, strict=True) for mode in _flat(*part)]
    return [(shape, stride)]


def _values(layout: CuteLayout) -> list[int]:
    """Return the values in the order of the 1-D coordinate, from the definition."""
    values = [0]
    for extent, stride in _flat(layout.shape, layout.stride):
        values = [value + stride * digit for digit in range(extent) for value in values]
    return values


def _at(layout: SymbolicLayout, sizes: Sizes) -> CuteLayout | None:
    """Return the layout at sizes, None where these do not meet its assumptions or conditions."""
    try:
        return layout.subs({name: sizes[name] for name in layout.symbols | layout.assumptions.names})
    except LayoutError:
        return None


_AT_SIZES = f"sizes M of 1..4 and 8, N of 1, 2 and 4, P of 3 and 8; {len(_LAYOUTS)} layouts"


def _singles() -> Iterator[int]:
    yield from range(len(_LAYOUTS))


@law("symbolic.cosize", _singles, len(_LAYOUTS), _AT_SIZES)
def _greatest(case: int) -> str | None:
    """cosize(L) is one more than the greatest offset at all sizes."""
    layout, found = _LAYOUTS[case], cosize(_LAYOUTS[case])
    for sizes in _SIZES:
        here = _at(layout, sizes)
        if (
            here is not None
            and found.subs({n: sizes[n] for n in layout.assumptions.names | layout.symbols}) != max(_values(here)) + 1
        ):
            return f"another bound at {sizes}"
    return None


def _pairs() -> Iterator[tuple[int, int]]:
    yield from product(range(len(_LAYOUTS)), range(len(_TILERS)))


@law("symbolic.operators", _pairs, len(_LAYOUTS) * len(_TILERS), f"{len(_LAYOUTS)} layouts and {len(_TILERS)} tilers")
def _agrees(case: tuple[int, int]) -> str | None:
    """B.then(A) and A @ B are composition(A, B)."""
    layout, tiler = _LAYOUTS[case[0]], _TILERS[case[1]]
    try:
        wanted = composition(layout, tiler)
    except LayoutError:
        return None
    inner = tiler if isinstance(tiler, SymbolicLayout) else SymbolicLayout(tiler, 1)
    return None if inner.then(layout) == wanted == layout @ inner else "another composition"
