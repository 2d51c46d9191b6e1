"""Bounds over all tile origins: intervals of lattice points are exactly the origins at which an element is in bounds.

Notation: along a tile dimension the origin is u times a step; an element at coordinate x is in bounds where
low <= x + step u < high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial
from layoutalg.proofs.tensormap.bounds import (
    _engine_boxes,
    _foreign,
    in_range,
    judged,
    lattice_points,
    must_cover,
    requested_boxes,
)
from layoutalg.proofs.tensormap.walk import MismatchError, Walk

Case = tuple[tuple[int, int], int, int, int, int, int, int]
"""Bounds, step of the origin, element stride; of the map: coordinate at 0 and its step, extent, step per origin."""
_FAR = range(-40, 41)


def _wrong_points(low: Any, high: Any, x: Any, step: Any) -> tuple[Any, Any]:
    """Round the first point down."""
    return (low - x) // step, (high - 1 - x) // step


def _exact(trial: Trial, points: Callable[..., tuple[Any, Any]] = lattice_points) -> None:
    low, high, x, u = [trial.integer(name) for name in ("low", "high", "x", "u")]
    step = trial.extent("step")
    first, last = points(low, high, x, step)
    for gap in (u - first, first - 1 - u, last - u, u - last - 1):
        trial.claim(some(gap < 0, step * gap >= 0), "a product of signs")
    inside = every(x + step * u >= low, x + step * u < high)
    between = every(first <= u, u <= last)
    trial.claim(bool(inside) == bool(between), "in bounds exactly between the ends")


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


def _wrong_boxes(walked: Walk, moves: list[dict[int, int]], dims: list[int]) -> Any:
    """Take a map that walks backwards for one that walks forwards."""
    return _engine_boxes(walked, [{dim: abs(step) for dim, step in row.items()} for row in moves], dims)


def _boxes(case: Case, boxes: Callable[..., Any] = _engine_boxes) -> str | None:
    plan, walked, moves = _made(case)
    wanted, engine = _tests(case)
    asked = requested_boxes(plan, walked)
    moved = boxes(walked, moves, list(asked.low))
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


def _wrong_cover(*arguments: Any) -> None:
    """Let every map pass."""


def _classified(case: Case, cover: Callable[..., None] = must_cover) -> str | None:
    plan, walked, moves = _made(case)
    wanted, engine = _tests(case)
    asked = requested_boxes(plan, walked)
    lost = any(
        a and not b for mine, theirs in zip(wanted, engine, strict=True) for a, b in zip(mine, theirs, strict=True)
    )
    try:
        cover(plan, walked, moves, asked)
    except MismatchError:
        return None if lost else "a map that moves all is refused"
    if lost:
        return "an element in bounds is not moved"
    foreign = _foreign(asked, _engine_boxes(walked, moves, list(asked.low)))
    extra = [any(b and not a for a, b in zip(*rows, strict=True)) for rows in zip(wanted, engine, strict=True)]
    return None if foreign == next((row for row, more in enumerate(extra) if more), None) else "another foreign element"


_SCOPE = "576 maps of one dimension: bounds, steps, starts and extents as listed, origins up to 40 steps away"

LAWS = (
    Law(
        "origins.lattice_points",
        "low <= x + step u < high exactly for first <= u <= last, so one interval stands for all origins.",
        ("layoutalg.proofs.tensormap.bounds.lattice_points",),
        integers(_exact, partial(_exact, points=_wrong_points), "all bounds, coordinates and origins, all steps >= 1"),
    ),
    Law(
        "origins.boxes",
        "the boxes of the problem and of the engine hold exactly the origins at which each calls an element in bounds.",
        tuple(
            f"layoutalg.proofs.tensormap.bounds.{name}"
            for name in ("requested_boxes", "in_range", "judged", "Boxes.empty", "Boxes.clipped", "_engine_boxes")
        ),
        enumerated(_cases, _boxes, partial(_boxes, boxes=_wrong_boxes), _SCOPE, 576),
        "the boxes are arrays of numbers; their ends are origins.lattice_points, which is proved for all",
    ),
    Law(
        "origins.classes",
        "a map is refused exactly where an element in bounds is not moved, and an element is foreign exactly where the "
        "engine moves it at an origin at which the problem does not call it in bounds.",
        tuple(f"layoutalg.proofs.tensormap.bounds.{name}" for name in ("must_cover", "_foreign")),
        enumerated(_cases, _classified, partial(_classified, cover=_wrong_cover), _SCOPE, 576),
        "the boxes are arrays of numbers; their ends are origins.lattice_points, which is proved for all",
    ),
)
