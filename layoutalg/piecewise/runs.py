"""Write a tabulated function as ISL text with few pieces, by arithmetic runs.

A run is a set of inputs ``v + t d`` with outputs ``p + t e``, t in [0, n). If d moves coordinate k, then
``t = (y_k - v_k) / d_k``, so a run is one quasi-affine piece. Runs are chosen greedily, longest first, until every
input is in exactly one.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutalg.ground import clock

Vector: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The inputs ``value + t step`` with the outputs ``point + t turn``, t in [0, count)."""

    value: Vector
    point: Vector
    step: Vector
    turn: Vector
    count: int


def runs_text(function: Mapping[Vector, Vector], names: Sequence[str]) -> str:
    """Return a finite function as ISL text; time is quadratic in its size.

    Args:
        function: Outputs by inputs, at least one.
        names: Names of the inputs in the text.

    Example:
        >>> runs_text({(1,): (0,), (5,): (1,), (9,): (2,)}, ("y",))
        '{ [y] -> [0 + 1*floor((y - 1)/4)] : 0 <= y - 1 <= 8 and (y - 1) mod 4 = 0 }'
    """
    return "{ " + "; ".join([_piece(run, names) for run in cover(function)]) + " }"


def cover(function: Mapping[Vector, Vector]) -> list[Run]:
    """Return runs that cover every input once, greedily: longest first, ties by least start.

    Example:
        >>> [(run.value, run.count) for run in cover({(y,): (y % 3,) for y in range(6)})]
        [((0,), 3), ((3,), 3)]
    """
    weights = _weights(function)
    pairs = {_number(value + point, weights): (value, point) for value, point in function.items()}
    order = sorted(pairs, key=pairs.__getitem__)
    rest = set(order)
    heap = []
    for place in range(len(order)):
        clock.check("listing a function in runs")
        count, step = _longest(rest, order[place:])
        heap.append((-count, place, step))
    heapq.heapify(heap)
    runs = []
    while heap:
        clock.check("listing a function in runs")
        count, place, step = heapq.heappop(heap)
        start = order[place]
        members = [start + t * step for t in range(-count)]
        if rest.issuperset(members):
            rest.difference_update(members)
            (value, point), (other, goal) = pairs[start], pairs[members[-count > 1]]
            runs.append(Run(value, point, _apart(value, other), _apart(point, goal), -count))
        elif start in rest:
            # taking inputs only shortens runs, so heap order stays valid
            count, step = _longest(rest, [number for number in order[place:] if number in rest])
            heapq.heappush(heap, (-count, place, step))
    return runs


def _weights(function: Mapping[Vector, Vector]) -> Vector:
    """Return weights whose sums identify each (input, output), even one step outside the box."""
    rows = [value + point for value, point in function.items()]
    weights, weight = [], 1
    for column in reversed(list(zip(*rows, strict=True))):
        weights.append(weight)
        weight *= 4 * (max(column) - min(column)) + 1
    return tuple(reversed(weights))


def _number(row: Vector, weights: Vector) -> int:
    return sum([a * weight for a, weight in zip(row, weights, strict=True)])


def _longest(rest: set[int], ascending: Sequence[int]) -> tuple[int, int]:
    """Return length and step of the longest ascending run from the first number."""
    start, length, best = ascending[0], 1, 0
    for other in ascending[1:]:
        step, count = other - start, 2
        while start + count * step in rest:
            count += 1
        if count > length:
            length, best = count, step
    return length, best


def _apart(start: Vector, goal: Vector) -> Vector:
    return tuple([b - a for a, b in zip(start, goal, strict=True)])


def _piece(run: Run, names: Sequence[str]) -> str:
    """Return the piece of a run; its guard solves for t by the coordinate that moves least."""
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
