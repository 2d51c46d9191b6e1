"""The least point of every value of a small integer layout, as ISL text: arithmetic runs of values in few pieces.

Main definitions: ``listed``, ``listed_map``.

Main statements: a run is a set of values ``v + t d`` whose least points are ``p + t e``, t in [0, n). Where d
moves coordinate k, t is ``(y_k - v_k) / d_k``, so a run is one quasi-affine piece. Runs are chosen greedily: the
longest that is left, until every value is in exactly one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from layoutalg.ground import clock
from layoutalg.zmod.layout import IntegerLayout
from layoutalg.zmod.matrix import Vector


@dataclass(frozen=True, slots=True)
class _Run:
    """The values ``value + t step`` with the points ``point + t turn``, t in [0, count)."""

    value: Vector
    point: Vector
    step: Vector
    turn: Vector
    count: int


def listed(layout: IntegerLayout, names: tuple[str, ...]) -> str:
    """Return the map from each value to its least point, the first axis compared first, as ISL text.

    Args:
        layout: At least one point; the time grows with the square of their number.
        names: Names of the outputs in the text.

    Example:
        >>> listed(IntegerLayout.from_strides({"i": 3}, (4,), 1), ("y",))
        '{ [y] -> [0 + 1*floor((y - 1)/4)] : 0 <= y - 1 <= 8 and (y - 1) mod 4 = 0 }'
    """
    least: dict[Vector, Vector] = {}
    rows = layout.table().reshape(layout.size, -1).tolist()
    for point, row in zip(itertools.product(*[range(extent) for extent in layout.extents[::-1]]), rows, strict=True):
        value, turned = tuple(row), point[::-1]
        least[value] = min(turned, least.get(value, turned))
    return listed_map(least, names)


def listed_map(table: Mapping[Vector, Vector], names: tuple[str, ...]) -> str:
    """Return a finite map between points as ISL text.

    Args:
        table: Points with their values, at least one; the time grows with the square of their number.
        names: Names of the coordinates of a point in the text.

    Example:
        >>> listed_map({(0,): (5,), (2,): (6,), (4,): (7,)}, ("y",))
        '{ [y] -> [5 + 1*floor((y - 0)/2)] : 0 <= y - 0 <= 4 and (y - 0) mod 2 = 0 }'
    """
    return "{ " + "; ".join([_piece(run, names) for run in _cover(table)]) + " }"


def _cover(least: Mapping[Vector, Vector]) -> list[_Run]:
    """Return runs that hold every value once: always the longest that is left, then the one with the least start."""
    rest = dict(sorted(least.items()))
    heap = []
    for value in rest:
        clock.check("listing the values of a layout in runs")
        run = _longest(rest, value)
        heap.append((-run.count, value, run))
    heapq.heapify(heap)
    runs = []
    while heap:
        clock.check("listing the values of a layout in runs")
        _, value, run = heapq.heappop(heap)
        members = [_along(value, run.step, t) for t in range(run.count)]
        if all(member in rest for member in members):
            runs.append(run)
            for member in members:
                del rest[member]
        elif value in rest:
            # what is taken only shortens runs, so the longest still comes first
            run = _longest(rest, value)
            heapq.heappush(heap, (-run.count, value, run))
    return runs


def _longest(rest: dict[Vector, Vector], value: Vector) -> _Run:
    """Return the longest run that starts at a value and ascends."""
    point = rest[value]
    best = _Run(value, point, (0,) * len(value), (0,) * len(point), 1)
    for other, goal in rest.items():
        if other <= value:
            continue
        step = tuple([a - b for a, b in zip(other, value, strict=True)])
        turn = tuple([a - b for a, b in zip(goal, point, strict=True)])
        count = 1
        while rest.get(_along(value, step, count)) == _along(point, turn, count):
            count += 1
        if count > best.count:
            best = _Run(value, point, step, turn, count)
    return best


def _along(start: Vector, step: Vector, t: int) -> Vector:
    return tuple([a + t * b for a, b in zip(start, step, strict=True)])


def _piece(run: _Run, names: tuple[str, ...]) -> str:
    """Return the piece of a run: its guard decides t by the coordinate that moves least."""
    moving = [k for k, move in enumerate(run.step) if move]
    if not moving:
        guard = " and ".join(["0 = 0", *[f"{name} = {a}" for name, a in zip(names, run.value, strict=True)]])
        return f"[{', '.join(names)}] -> [{', '.join(map(str, run.point))}] : {guard}"
    chosen = min(moving, key=lambda k: abs(run.step[k]))
    name, start, stride = names[chosen], run.value[chosen], abs(run.step[chosen])
    far = f"{name} - {start}" if run.step[chosen] > 0 else f"{start} - {name}"
    conditions = [f"0 <= {far} <= {stride * (run.count - 1)}"]
    if stride > 1:
        conditions.append(f"({far}) mod {stride} = 0")
    conditions += [
        f"{stride}*({names[k]} - {run.value[k]}) = {move}*({far})" for k, move in enumerate(run.step) if k != chosen
    ]
    time = f"floor(({far})/{stride})" if stride > 1 else f"({far})"
    values = [f"{a} + {b}*{time}" if b else str(a) for a, b in zip(run.point, run.turn, strict=True)]
    return f"[{', '.join(names)}] -> [{', '.join(values)}] : {' and '.join(conditions)}"
