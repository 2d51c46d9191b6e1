"""Piecewise layouts: union, intersection, composition, inverses, equality and counts, with a parameter N.

Notation: each function is a text with the parameter N and, beside it, the same function in Python; ISL compares texts
for all N and all points, enumeration compares what the library computes with Python for N = 0..6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.piecewise import PiecewiseLayout, PointSet
from layoutalg.piecewise.build import lexmax, lexmin
from layoutalg.proofs.laws.engines import decided, enumerated
from layoutalg.proofs.laws.law import Law, Obligation, Witness

Partial = Callable[[int, int], "int | None"]
_FUNCTIONS: tuple[tuple[str, Partial], ...] = (
    ("[N] -> { [i] -> [i + 1] : 0 <= i < N }", lambda n, i: i + 1 if 0 <= i < n else None),
    ("[N] -> { [i] -> [2i] : 0 <= i < N }", lambda n, i: 2 * i if 0 <= i < n else None),
    ("[N] -> { [i] -> [floor(i/2)] : 0 <= i <= N }", lambda n, i: i // 2 if 0 <= i <= n else None),
    ("[N] -> { [i] -> [i mod 3] : 0 <= i < N }", lambda n, i: i % 3 if 0 <= i < n else None),
    ("[N] -> { [i] -> [N - 1 - i] : 0 <= i < N }", lambda n, i: n - 1 - i if 0 <= i < n else None),
    ("[N] -> { [i] -> [i + 1] : 0 <= i <= N }", lambda n, i: i + 1 if 0 <= i <= n else None),
    (
        "[N] -> { [i] -> [i + 2] : 0 <= i < 2 and N >= 4; [i] -> [i - 2] : 2 <= i < 4 and N >= 4 }",
        lambda n, i: (i ^ 2) if 0 <= i < 4 <= n else None,
    ),
)
_SETS: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
    ("[N] -> { [i] : 0 <= i < N and i mod 2 = 0 }", lambda n, i: 0 <= i < n and i % 2 == 0),
    ("[N] -> { [i] : 2 <= i <= N }", lambda n, i: 2 <= i <= n),
    ("[N] -> { [i] : 0 <= i < 5 }", lambda _, i: 0 <= i < 5),
)
_PLACES = range(-2, 15)
_SIZES = range(7)


def _function(place: int) -> PiecewiseLayout:
    return PiecewiseLayout(_FUNCTIONS[place][0])


def _set(place: int) -> PointSet:
    return PointSet(_SETS[place][0])


def _identity(points: PointSet) -> PiecewiseLayout:
    return PiecewiseLayout("{ [i] -> [i] }").restrict(points)


def _table(layout: PiecewiseLayout) -> list[list[int | None]]:
    """Return the value at every place for every size, None where there is none."""
    tables = []
    (axis,), (output,), places = layout.axes, layout.outputs, np.array(_PLACES)
    for n in _SIZES:
        known = {"N": n} if "N" in layout.params else {}
        inside = layout.contains({axis: places}, **known)
        found = iter(layout.apply({axis: places[inside]}, **known)[output].tolist() if inside.any() else [])
        tables.append([next(found) if here else None for here in inside])
    return tables


def _wanted(value: Partial) -> list[list[int | None]]:
    return [[value(n, i) for i in _PLACES] for n in _SIZES]


Compose = Callable[[PiecewiseLayout, PiecewiseLayout], PiecewiseLayout]
Equal = Callable[..., "str | None"]


def _one_way(layout: PiecewiseLayout, other: PiecewiseLayout) -> PiecewiseLayout:
    """Compose the other way round."""
    return other.after(layout)


def _associative(case: tuple[int, int, int], after: Compose = PiecewiseLayout.after) -> str | None:
    f, g, h = map(_function, case)
    one, other = after(after(f, g), h), after(f, g.after(h))
    inside = g.restrict(after(f, g).domain)
    if not (f @ inside).is_equal(f.after(g)):
        return "f @ g is not f after g where all values of g are in the domain of f"
    return None if one.is_equal(other) else "(f g) h is not f (g h)"


def _composed(case: tuple[int, int], after: Compose = PiecewiseLayout.after) -> str | None:
    (f, of_f), (g, of_g) = [_FUNCTIONS[place] for place in case]

    def wanted(n: int, i: int) -> int | None:
        middle = of_g(n, i)
        return None if middle is None else of_f(n, middle)

    same = _table(after(PiecewiseLayout(f), PiecewiseLayout(g))) == _wanted(wanted)
    return None if same else "f after g has another value"


Cut = Callable[[PiecewiseLayout, PointSet], PiecewiseLayout]


def _keeps_all(layout: PiecewiseLayout, points: PointSet) -> PiecewiseLayout:
    """Leave the last point out."""
    return layout.without(points.intersect(PointSet("[N] -> { [i] : i < N - 1 }")))


def _parts(case: tuple[int, int], without: Cut = PiecewiseLayout.without) -> str | None:
    f, points = _function(case[0]), _set(case[1])
    inside, outside = f.restrict(points), without(f, points)
    if not inside.union(outside).is_equal(f) or not outside.union(inside).is_equal(f):
        return "the parts do not make the whole"
    if not inside.intersect(outside).domain.is_empty() or not f.intersect(inside).is_equal(inside):
        return "the parts meet, or one is not in the whole"
    return None if inside.domain.is_equal(f.domain.intersect(points)) else "the domain of a part is another"


def _cut(case: tuple[int, int], without: Cut = PiecewiseLayout.without) -> str | None:
    (text, value), (points, holds) = _FUNCTIONS[case[0]], _SETS[case[1]]
    f, chosen = PiecewiseLayout(text), PointSet(points)
    inside = _wanted(lambda n, i: value(n, i) if holds(n, i) else None)
    outside = _wanted(lambda n, i: None if holds(n, i) else value(n, i))
    same = _table(f.restrict(chosen)) == inside and _table(without(f, chosen)) == outside
    return None if same else "a part has other values"


def _wrong_inverse(f: PiecewiseLayout) -> PiecewiseLayout:
    """Take the function for its inverse."""
    return f


def _inverse(
    case: tuple[int], right: Callable[[PiecewiseLayout], PiecewiseLayout] = PiecewiseLayout.right_inverse
) -> str | None:
    f = _function(*case)
    inverse = right(f)
    if not f.after(inverse).is_equal(_identity(f.image)) or not inverse.domain.is_equal(f.image):
        return "f(R(y)) is not y on the image"
    try:
        image = f.image_inverse()
    except LayoutError:
        return "an injective function has no inverse" if f.injective() else None
    same = image.is_equal(inverse) and image.after(f).is_equal(_identity(f.domain)) and f.injective()
    return None if same and image.image_inverse().is_equal(f) else "the inverse of an injective function"


def _least(
    case: tuple[int], right: Callable[[PiecewiseLayout], PiecewiseLayout] = PiecewiseLayout.right_inverse
) -> str | None:
    text, value = _FUNCTIONS[case[0]]
    wanted = _wanted(lambda n, y: next((i for i in _PLACES if value(n, i) == y), None))
    return None if _table(right(PiecewiseLayout(text))) == wanted else "not the least point of each value"


def _wrong_difference(f: PiecewiseLayout, g: PiecewiseLayout) -> Any:
    """Compare where both are defined."""
    return f.restrict(g.domain).difference(g.restrict(f.domain))


def _told(case: tuple[int, int], difference: Callable[..., Any] = PiecewiseLayout.difference) -> str | None:
    (f, of_f), (g, of_g) = [_FUNCTIONS[place] for place in case]
    found = difference(PiecewiseLayout(f), PiecewiseLayout(g))
    if case[0] == case[1]:
        return None if found is None else "a function differs from itself"
    if found is None:
        return "different functions are said to be equal"
    n, i = found["N"], found["i"]
    return None if of_f(n, i) != of_g(n, i) else "the functions agree there"


Join = Callable[[PointSet, PointSet], PointSet]


def _wrong_subtract(a: PointSet, b: PointSet) -> PointSet:
    """Subtract the other way round."""
    return b.subtract(a)


def _boolean(case: tuple[int, int, int], subtract: Join = PointSet.subtract) -> str | None:
    a, b, c = map(_set, case)
    if not subtract(a, b.union(c)).is_equal(a.subtract(b).intersect(a.subtract(c))):
        return "a - (b + c) is not (a - b) (a - c)"
    if not a.intersect(b).is_equal(a.subtract(subtract(a, b))) or not a.union(b).is_equal(b.union(a.subtract(b))):
        return "intersection or union is another set"
    joined = subtract(a, b).union(c)
    for n in _SIZES:
        held = [[holds(n, i) for holds in [_SETS[place][1] for place in case]] for i in _PLACES]
        if joined.contains({"i": np.array(_PLACES)}, N=n).tolist() != [(p and not q) or r for p, q, r in held]:
            return "the points of a - b + c are others"
    return None


def _counts(case: tuple[int, int], union: Join = PointSet.union) -> str | None:
    a, b = map(_set, case)
    both = union(a, b)
    try:
        formula: Callable[..., int] = both.count_formula()
    except LayoutError:  # floors that cannot be summed over have no formula
        formula = both.count
    for n in _SIZES:
        wanted = [i for i in _PLACES if any(_SETS[place][1](n, i) for place in case)]
        if both.count(N=n) != len(wanted) or formula(N=n) != len(wanted):
            return "another number of points"
        if both.points(N=n).reshape(-1).tolist() != wanted:
            return "other points"
        if a.count(N=n) + b.count(N=n) != both.count(N=n) + a.intersect(b).count(N=n):
            return "|a| + |b| is not |a + b| + |a b|"
        for extreme, place in ((lexmin, 0), (lexmax, -1)):
            if wanted and list(extreme(both)(N=n).values()) != [wanted[place]]:
                return "another least or greatest point"
    return None


Cases = Callable[[], Iterator[tuple[int, ...]]]


def _several(*lengths: int) -> Iterator[tuple[int, ...]]:
    yield from product(*map(range, lengths))


def _isl(cases: Cases, fails: Any, wrong: Any, scope: str) -> tuple[Obligation, ...]:
    def decide(asked: Any) -> Verdict:
        for case in cases():
            fault = asked(case)
            if fault is not None:
                return Refuted("ISL", {"what": fault, "case": case})
        return Proved("ISL")

    def violated(witness: Witness) -> bool:
        return wrong(witness["case"]) is not None

    return decided(
        "ISL", f"all N, all points; {scope}", lambda: decide(fails), lambda: decide(wrong), violated, for_all=False
    )


def _listed(cases: Cases, fails: Any, wrong: Any, scope: str, count: int) -> tuple[Obligation, ...]:
    return enumerated(cases, fails, wrong, scope, count)


def _law(name: str, says: str, about: tuple[str, ...], *obligations: tuple[Obligation, ...]) -> Law:
    why = "coefficients of Presburger formulas are numbers; ISL compares the listed functions for all N and all points"
    return Law(
        f"piecewise.{name}",
        says,
        tuple(f"layoutalg.piecewise.{each}" for each in about),
        tuple(each for group in obligations for each in group),
        why,
    )


_TRIPLES, _PAIRS, _SINGLES = partial(_several, 3, 3, 3), partial(_several, 7, 7), partial(_several, 7)
_CUTS, _THREE_SETS, _TWO_SETS = partial(_several, 7, 3), partial(_several, 3, 3, 3), partial(_several, 3, 3)

LAWS = (
    _law(
        "composition",
        "(f g) h = f (g h), and (f g)(x) = f(g(x)) exactly where both are defined.",
        ("PiecewiseLayout.after", "operations.after", "layout.composed"),
        _isl(_TRIPLES, _associative, partial(_associative, after=_one_way), "27 triples of 3 functions"),
        _listed(_PAIRS, _composed, partial(_composed, after=_one_way), "49 pairs of 7 functions, N = 0..6", 49),
    ),
    _law(
        "parts",
        "f restricted to S and f without S make f, meet nowhere, and have the values of f.",
        (
            *[f"PiecewiseLayout.{name}" for name in ("restrict", "without", "union", "intersect")],
            *[f"operations.{name}" for name in ("restrict", "union", "intersect", "domain")],
        ),
        _isl(_CUTS, _parts, partial(_parts, without=_keeps_all), "7 functions and 3 sets"),
        _listed(_CUTS, _cut, partial(_cut, without=_keeps_all), "7 functions and 3 sets, N = 0..6", 21),
    ),
    _law(
        "inverse",
        "f(R(y)) = y on exactly the image, R(y) is the least point, and the inverse of an injective f inverts it.",
        (
            *[f"PiecewiseLayout.{name}" for name in ("right_inverse", "image_inverse", "injective", "collision")],
            "inverse.turned",
            "inverse.digits_inverse",
            "operations.image",
        ),
        _isl(_SINGLES, _inverse, partial(_inverse, right=_wrong_inverse), "7 functions"),
        _listed(_SINGLES, _least, partial(_least, right=_wrong_inverse), "7 functions, N = 0..6", 7),
    ),
    _law(
        "equality",
        "difference is None exactly for equal functions, else a point where they differ.",
        ("PiecewiseLayout.difference", "PiecewiseLayout.is_equal", "operations.difference"),
        _listed(_PAIRS, _told, partial(_told, difference=_wrong_difference), "49 pairs of 7 functions", 49),
    ),
    _law(
        "sets",
        "a - (b + c) = (a - b)(a - c), a b = a - (a - b), a + b = b + (a - b), and points are in what contains them.",
        tuple(f"PointSet.{name}" for name in ("union", "intersect", "subtract", "is_equal", "contains")),
        _isl(_THREE_SETS, _boolean, partial(_boolean, subtract=_wrong_subtract), "27 triples of 3 sets"),
    ),
    _law(
        "counts",
        "count and count_formula are the number of points, points lists them, lexmin and lexmax are the ends.",
        (
            *[f"PointSet.{name}" for name in ("count", "count_formula", "points")],
            "counts.formula",
            "counts.PointCount.__call__",
            "counts.summed",
            "build.lexmin",
            "build.lexmax",
        ),
        _listed(_TWO_SETS, _counts, partial(_counts, union=PointSet.intersect), "9 pairs of 3 sets, N = 0..6", 9),
    ),
)
