"""Piecewise layouts, compared by ISL for all sizes, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from laws import Row, tabled
from layoutalg.ground.errors import LayoutError
from layoutalg.piecewise import PiecewiseLayout, PointSet, operations
from layoutalg.piecewise.boxes import box, finite_box
from layoutalg.piecewise.pieces import reach

LAWS: list[Row] = []
law = partial(tabled, LAWS)

_FUNCTIONS = (
    "[N] -> { [i] -> [i + 1] : 0 <= i < N }",
    "[N] -> { [i] -> [2i] : 0 <= i < N }",
    "[N] -> { [i] -> [floor(i/2)] : 0 <= i <= N }",
    "[N] -> { [i] -> [i mod 3] : 0 <= i < N }",
    "[N] -> { [i] -> [N - 1 - i] : 0 <= i < N }",
    "[N] -> { [i] -> [i + 1] : 0 <= i <= N }",
    "[N] -> { [i] -> [i + 2] : 0 <= i < 2 and N >= 4; [i] -> [i - 2] : 2 <= i < 4 and N >= 4 }",
)


_SETS: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
    ("[N] -> { [i] : 0 <= i < N and i mod 2 = 0 }", lambda n, i: 0 <= i < n and i % 2 == 0),
    ("[N] -> { [i] : 2 <= i <= N }", lambda n, i: 2 <= i <= n),
    ("[N] -> { [i] : 0 <= i < 5 }", lambda _, i: 0 <= i < 5),
)


_PLACES = range(-2, 15)
_SIZES = range(7)


def _function(place: int) -> PiecewiseLayout:
    return PiecewiseLayout(_FUNCTIONS[place])


def _set(place: int) -> PointSet:
    return PointSet(_SETS[place][0])


def _identity(points: PointSet) -> PiecewiseLayout:
    return PiecewiseLayout("{ [i] -> [i] }").restrict(points)


def _several(*lengths: int) -> Iterator[tuple[int, ...]]:
    yield from product(*map(range, lengths))


_TRIPLES, _SINGLES = partial(_several, 3, 3, 3), partial(_several, 7)


@law("piecewise.composition", _TRIPLES, None, "ISL, for all N and all points: 27 triples of 3 functions")
def _associative(case: tuple[int, int, int]) -> str | None:
    """(f g) h = f (g h), and (f g)(x) = f(g(x)) exactly where both are defined."""
    f, g, h = map(_function, case)
    one, other = f.after(g).after(h), f.after(g.after(h))
    inside = g.restrict(f.after(g).domain)
    if not (f @ inside).is_equal(f.after(g)):
        return "f @ g is not f after g where all values of g are in the domain of f"
    return None if one.is_equal(other) else "(f g) h is not f (g h)"


_CUTS, _THREE_SETS = partial(_several, 7, 3), partial(_several, 3, 3, 3)


@law("piecewise.parts", _CUTS, None, "ISL, for all N and all points: 7 functions and 3 sets")
def _parts(case: tuple[int, int]) -> str | None:
    """f restricted to S and f without S make f, meet nowhere, and have the values of f."""
    f, points = _function(case[0]), _set(case[1])
    inside, outside = f.restrict(points), f.without(points)
    if not inside.union(outside).is_equal(f) or not outside.union(inside).is_equal(f):
        return "the parts do not make the whole"
    if not inside.intersect(outside).domain.is_empty() or not f.intersect(inside).is_equal(inside):
        return "the parts meet, or one is not in the whole"
    return None if inside.domain.is_equal(f.domain.intersect(points)) else "the domain of a part is another"


@law("piecewise.inverse", _SINGLES, None, "ISL, for all N and all points: 7 functions")
def _inverse(case: tuple[int]) -> str | None:
    """f(R(y)) = y on exactly the image, R(y) is the least point, and the inverse of an injective f inverts it."""
    f = _function(*case)
    inverse = f.right_inverse()
    if not f.after(inverse).is_equal(_identity(f.image)) or not inverse.domain.is_equal(f.image):
        return "f(R(y)) is not y on the image"
    try:
        image = f.image_inverse()
    except LayoutError:
        return "an injective function has no inverse" if f.injective() else None
    same = image.is_equal(inverse) and image.after(f).is_equal(_identity(f.domain)) and f.injective()
    return None if same and image.image_inverse().is_equal(f) else "the inverse of an injective function"


@law("piecewise.sets", _THREE_SETS, None, "ISL, for all N and all points: 27 triples of 3 sets")
def _boolean(case: tuple[int, int, int]) -> str | None:
    """A - (b + c) = (a - b)(a - c), a b = a - (a - b), a + b = b + (a - b), and points are in what contains them."""
    a, b, c = map(_set, case)
    if not a.subtract(b.union(c)).is_equal(a.subtract(b).intersect(a.subtract(c))):
        return "a - (b + c) is not (a - b) (a - c)"
    if not a.intersect(b).is_equal(a.subtract(a.subtract(b))) or not a.union(b).is_equal(b.union(a.subtract(b))):
        return "intersection or union is another set"
    joined = a.subtract(b).union(c)
    for n in _SIZES:
        held = [[holds(n, i) for holds in [_SETS[place][1] for place in case]] for i in _PLACES]
        if joined.contains({"i": np.array(_PLACES)}, N=n).tolist() != [(p and not q) or r for p, q, r in held]:
            return "the points of a - b + c are others"
    return None


Holds = Callable[[int, int, int], bool]


_PLANE: tuple[tuple[str, Holds], ...] = (
    ("[N] -> { [i, j] : 0 <= 3i <= N and 0 <= j < i }", lambda n, i, j: 0 <= 3 * i <= n and 0 <= j < i),
    (
        "[N] -> { [i, j] : 0 <= i < N and 0 <= j and i + 2j <= 7 }",
        lambda n, i, j: 0 <= i < n and j >= 0 and i + 2 * j <= 7,
    ),
    ("[N] -> { [i, j] : 0 <= i < 6 and j = floor((i + N)/2) }", lambda n, i, j: 0 <= i < 6 and j == (i + n) // 2),
    ("[N] -> { [i, j] : 0 <= i < N and j = i mod 3 }", lambda n, i, j: 0 <= i < n and j == i % 3),
    (
        "[N] -> { [i, j] : 0 <= i <= 4 and -2 <= j <= N and (i < j or j < 0) }",
        lambda n, i, j: 0 <= i <= 4 and -2 <= j <= n and (i < j or j < 0),
    ),
    (
        "[N] -> { [i, j] : 0 <= i < N and not (2 <= i <= 4) and -1 <= j <= 1 }",
        lambda n, i, j: 0 <= i < n and not 2 <= i <= 4 and -1 <= j <= 1,
    ),
    (
        "[N] -> { [i, j] : exists e : i = 2e and 0 <= e < N and 0 <= j <= 2 }",
        lambda n, i, j: i % 2 == 0 and 0 <= i < 2 * n and 0 <= j <= 2,
    ),
    ("[N] -> { [i, 2*floor(i/2)] : 0 <= i < N }", lambda n, i, j: 0 <= i < n and j == i // 2 * 2),
    ("[N] -> { [i, N - i] : 1 <= i <= N }", lambda n, i, j: 1 <= i <= n == i + j),
    (
        "[N] -> { [i, j] : exists a, b : i = a + 3b and 0 <= a <= 1 and 0 <= b < N and j = a }",
        lambda n, i, j: i % 3 == j and j in (0, 1) and 0 <= i // 3 < n,
    ),
    (
        "[N] -> { [i, j] : exists e : 4e <= i + j < 4e + 2 and 0 <= i < 4 and 0 <= j <= N }",
        lambda n, i, j: (i + j) % 4 < 2 and 0 <= i < 4 and 0 <= j <= n,
    ),
    (
        "[N] -> { [i, j] : 0 <= i < N and j = 0; [i, j] : i = 2 and 0 <= j < N }",
        lambda n, i, j: (0 <= i < n and j == 0) or (i == 2 and 0 <= j < n),
    ),
)


_LINE = range(-4, 18)
_POINTS = tuple(product(_LINE, repeat=2))


def _members(case: int, n: int) -> set[tuple[int, int]]:
    return {(i, j) for i, j in _POINTS if _PLANE[case][1](n, i, j)}


def _cases() -> Iterator[int]:
    yield from range(len(_PLANE))


@law("texts.boxes", _cases, len(_PLANE), "12 sets in the plane with N = 0..6, points in -4..17")
def _boxed(case: int) -> str | None:
    """Every point of a set lies in the boxes that intervals, and ISL for all N, give; bounds are its ends."""
    text = _PLANE[case][0]
    value = PointSet(text).value
    constant = operations.bounds(value)
    for n in _SIZES:
        points, found, plain = _members(case, n), box(value, {"N": n}), finite_box(value, {"N": n})
        exact = operations.bounds(PointSet(text.replace("[N] -> ", "").replace("N", str(n))).value)
        if not points:
            if exact is not None:
                return f"an empty set has bounds at N = {n}"
            continue
        ends = tuple([(min(line), max(line)) for line in zip(*points, strict=True)])
        if exact != ends:
            return f"the bounds are not the least and the greatest at N = {n}"
        for spans_of in (found, plain, constant):
            for (low, high), side in zip(ends, spans_of or (), strict=True):
                below, above = side or (None, None)
                if (below is not None and below > low) or (above is not None and above < high):
                    return f"a point lies outside the box at N = {n}"
        if found is None:
            return f"a set with points is called empty at N = {n}"
    return None


_MAPS: tuple[tuple[str, Callable[[int, int], int | None]], ...] = (
    ("[N] -> { [i] -> [2i] : 0 <= i < N }", lambda n, i: 2 * i if 0 <= i < n else None),
    ("[N] -> { [i] -> [floor(i/2)] : 0 <= i <= N }", lambda n, i: i // 2 if 0 <= i <= n else None),
    ("[N] -> { [i] -> [i + 4] : 1 <= i < N and i != 3 }", lambda n, i: i + 4 if 1 <= i < n and i != 3 else None),
)


@law("texts.reach", lambda: range(len(_MAPS)), len(_MAPS), "3 functions with N = 3 and 6")
def _reached(case: int) -> str | None:
    """No value of the pieces on a box is larger than their reach."""
    text, value = _MAPS[case]
    for n in (3, 6):
        found = PiecewiseLayout(text).subs(N=n).value.pieces
        highest = max([abs(v) for i in range(n + 1) if (v := value(n, i)) is not None])
        if not highest <= reach(found, [n + 1]) < 100 * (n + 1):
            return "a number is larger than the bound, or the bound is far"
    return None
