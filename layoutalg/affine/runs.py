"""A finite function listed by its values, as ISL text: arithmetic runs, few pieces.

Main definitions: ``runs_text``, ``cover``, ``Run``.

Main statements: a run is a set of inputs ``v + t d`` whose outputs are ``p + t e``, t in [0, n). Where d moves
coordinate k, t is ``(y_k - v_k) / d_k``, so a run is one quasi-affine piece. Runs are chosen greedily: the longest that
is left, until every input is in exactly one.
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
    """Return a finite function as ISL text; the time grows with the square of its size.

    Args:
        function: Outputs by inputs, at least one.
        names: Names of the inputs in the text.

    Example:
        >>> runs_text({(1,): (0,), (5,): (1,), (9,): (2,)}, ("y",))
        '{ [y] -> [0 + 1*floor((y - 1)/4)] : 0 <= y - 1 <= 8 and (y - 1) mod 4 = 0 }'
    """
    return "{ " + "; ".join([_piece(run, names) for run in cover(function)]) + " }"


def cover(function: Mapping[Vector, Vector]) -> list[Run]:
    """Return runs that hold every input once: always the longest that is left, then the one with the least start."""
    rest = dict(sorted(function.items()))
    heap = []
    for value in rest:
        clock.check("listing a function in runs")
        run = _longest(rest, value)
        heap.append((-run.count, value, run))
    heapq.heapify(heap)
    runs = []
    while heap:
        clock.check("listing a function in runs")
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


def _longest(rest: dict[Vector, Vector], value: Vector) -> Run:
    """Return the longest run that starts at a value and ascends."""
    point = rest[value]
    best = Run(value, point, (0,) * len(value), (0,) * len(point), 1)
    for other, goal in rest.items():
        if other <= value:
            continue
        step = tuple([a - b for a, b in zip(other, value, strict=True)])
        turn = tuple([a - b for a, b in zip(goal, point, strict=True)])
        count = 1
        while rest.get(_along(value, step, count)) == _along(point, turn, count):
            count += 1
        if count > best.count:
            best = Run(value, point, step, turn, count)
    return best


def _along(start: Vector, step: Vector, t: int) -> Vector:
    return tuple([a + t * b for a, b in zip(start, step, strict=True)])


def _piece(run: Run, names: Sequence[str]) -> str:
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
