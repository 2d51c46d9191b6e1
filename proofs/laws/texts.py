"""Texts of sets and functions: what is read without ISL, the boxes that hold it, and what is built from it.

Notation: each set is a text with the parameter N and, beside it, the same condition in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from layoutalg.piecewise import PiecewiseLayout, PointSet, operations
from layoutalg.piecewise.boxes import box, finite_box
from layoutalg.piecewise.build import addresses, banks, full_and_partial_tiles, padded, split
from layoutalg.piecewise.pieces import Piece, Value, evaluated, reach
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Holds = Callable[[int, int, int], bool]
_SETS: tuple[tuple[str, Holds], ...] = (
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
_SIZES = range(7)
_LINE = range(-4, 18)
_POINTS = tuple(product(_LINE, repeat=2))


def _members(case: int, n: int) -> set[tuple[int, int]]:
    return {(i, j) for i, j in _POINTS if _SETS[case][1](n, i, j)}


def _cases() -> Iterator[int]:
    yield from range(len(_SETS))


def _first(value: Value) -> Value:
    """Return the set of the first conjunction alone."""
    part = Piece(value.pieces[0].regions[:1], ())
    return Value(value.text, value.params, value.axes, (), (part,))


def _wrong_evaluated(value: Value, params: Mapping[str, Any], places: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Look at the first conjunction alone."""
    return evaluated(_first(value), params, places, shape)


def _read(case: int, evaluate: Callable[..., Any] = evaluated) -> str | None:
    places = [np.array([point[k] for point in _POINTS]) for k in (0, 1)]
    for n in _SIZES:
        _, found = evaluate(PointSet(_SETS[case][0]).value, {"N": n}, places, (len(_POINTS),))
        if {point for point, inside in zip(_POINTS, found, strict=True) if inside} != _members(case, n):
            return f"other points at N = {n}"
    return None


Box = Callable[[Value, Mapping[str, int]], Any]


def _wrong_box(value: Value, params: Mapping[str, int]) -> Any:
    """Look at the first conjunction alone."""
    return box(_first(value), params)


def _boxed(case: int, box: Box = box) -> str | None:
    text = _SETS[case][0]
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


_FUNCTIONS: tuple[tuple[str, Callable[[int, int], int | None]], ...] = (
    ("[N] -> { [i] -> [2i] : 0 <= i < N }", lambda n, i: 2 * i if 0 <= i < n else None),
    ("[N] -> { [i] -> [floor(i/2)] : 0 <= i <= N }", lambda n, i: i // 2 if 0 <= i <= n else None),
    ("[N] -> { [i] -> [i + 4] : 1 <= i < N and i != 3 }", lambda n, i: i + 4 if 1 <= i < n and i != 3 else None),
)


def _values(layout: PiecewiseLayout, n: int, points: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    coordinates = {axis: np.array([point[k] for point in points]) for k, axis in enumerate(layout.axes)}
    known = {"N": n} if "N" in layout.params else {}
    inside = layout.contains(coordinates, **known)
    if not inside.any():
        return {}
    chosen = {axis: line[inside] for axis, line in coordinates.items()}
    (found,) = layout.apply(chosen, **known).values()
    return dict(zip([point for point, here in zip(points, inside, strict=True) if here], found.tolist(), strict=True))


def _wrong_padded(layout: PiecewiseLayout, interval: int, padding: int) -> PiecewiseLayout:
    """Pad one place early."""
    moved = PiecewiseLayout("{ [v] -> [v + 1] }")
    return PiecewiseLayout("{ [v] -> [v - 1] }").after(padded(moved.after(layout), interval, padding))


def _built(case: int, pad: Callable[[PiecewiseLayout, int, int], PiecewiseLayout] = padded) -> str | None:
    text, value = _FUNCTIONS[case]
    layout, line, tiles = (
        PiecewiseLayout(text),
        [(i,) for i in _LINE],
        [(t, r) for t in range(-2, 5) for r in range(-1, 4)],
    )
    cut = full_and_partial_tiles(layout, "i", 3)
    for n in _SIZES:
        wanted = {(i,): v for i in _LINE if (v := value(n, i)) is not None}
        if _values(pad(layout, 4, 3), n, line) != {at: v + 3 * (v // 4) for at, v in wanted.items()}:
            return "padding puts a value elsewhere"
        bytes_of = addresses(layout, 2, 64)
        if _values(bytes_of, n, line) != {at: 2 * v + 64 for at, v in wanted.items()}:
            return "another address"
        if _values(banks(bytes_of, 8, 4), n, line) != {at: (2 * v + 64) // 4 % 8 for at, v in wanted.items()}:
            return "another bank"
        digits = {(t, r): wanted[(3 * t + r,)] for t, r in tiles if 0 <= r < 3 and (3 * t + r,) in wanted}
        if _values(split(layout, "i", 3), n, tiles) != digits:
            return "splitting changes the function"
        full = {at: v for at, v in digits.items() if all((at[0], r) in digits for r in range(3))}
        if _values(cut.full, n, tiles) != full or _values(cut.partial, n, tiles) != {
            at: v for at, v in digits.items() if at not in full
        }:
            return "the full or the partial tiles are others"
    return None


def _wrong_reach(_: Any, extents: Sequence[int]) -> int:
    """Look at the coordinates alone."""
    return max([extent - 1 for extent in extents])


def _reached(case: int, bound: Callable[..., int] = reach) -> str | None:
    text, value = _FUNCTIONS[case]
    for n in (3, 6):
        found = PiecewiseLayout(text).subs(N=n).value.pieces
        highest = max([abs(v) for i in range(n + 1) if (v := value(n, i)) is not None])
        if not highest <= bound(found, [n + 1]) < 100 * (n + 1):
            return "a number is larger than the bound, or the bound is far"
    return None


_WHY = "texts are numbers and names; each is read for all points of a box and N = 0..6"


def _law(name: str, says: str, about: tuple[str, ...], fails: Any, wrong: Any, count: int, what: str) -> Law:
    dotted = tuple(f"layoutalg.piecewise.{each}" for each in about)
    cases = (lambda: iter(range(count))) if count != len(_SETS) else _cases
    return Law(f"texts.{name}", says, dotted, enumerated(cases, fails, wrong, what, count), _WHY)


LAWS = (
    _law(
        "read",
        "a text holds at exactly the points that satisfy it.",
        tuple(f"pieces.{name}" for name in ("evaluated", "holds", "form_value", "floor_values")),
        _read,
        partial(_read, evaluate=_wrong_evaluated),
        len(_SETS),
        f"{len(_SETS)} sets in the plane with N = 0..6, points in -4..17",
    ),
    _law(
        "boxes",
        "every point of a set lies in the boxes that intervals, and ISL for all N, give; bounds are its ends.",
        ("boxes.box", "boxes.finite_box", "boxes._narrowed", "operations.bounds"),
        _boxed,
        partial(_boxed, box=_wrong_box),
        len(_SETS),
        f"{len(_SETS)} sets in the plane with N = 0..6, points in -4..17",
    ),
    _law(
        "built",
        "split, full and partial tiles, padding, addresses and banks have the values that their definitions give.",
        tuple(f"build.{name}" for name in ("split", "padded", "addresses", "banks", "full_and_partial_tiles")),
        _built,
        partial(_built, pad=_wrong_padded),
        len(_FUNCTIONS),
        "3 functions with N = 0..6, tiles of 3, 3 places after every 4, 8 banks of 4 bytes",
    ),
    _law(
        "reach",
        "no value of the pieces on a box is larger than their reach.",
        ("pieces.reach", "PiecewiseLayout.subs"),
        _reached,
        partial(_reached, bound=_wrong_reach),
        len(_FUNCTIONS),
        "3 functions with N = 3 and 6",
    ),
)
