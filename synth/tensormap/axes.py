"""The two sides of a TensorMap problem in the planner's terms: global axes and the digits of the tile.

Notation: an axis is one integer coordinate x of global memory: byte address = base + unit * element bytes * x. It is
moved by the tile origin (``moves``: tile dimension, numerator, denominator) and by digits: a digit of extent e and
place p on an axis adds c * p to x and c * stride to the shared element offset, for c = 0..e-1.

A frame is one plain description of the problem: the tensor's dimensions are the axes; fully covered ones may be folded
into those that continue them, and an axis may be divided by the common step of everything that moves it. Hardware
limits are checked elsewhere; ``views`` handles what plain frames cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.ground import clock
from layoutalg.ground.digits import merge, placed
from layoutalg.proofs.tensormap.problem import TensorMapProblem


@dataclass(frozen=True, slots=True)
class Axis:
    """A global coordinate.

    Args:
        unit: Global elements per step.
        extent: Coordinates in bounds are 0..extent-1.
        shift: The coordinate at tile origin 0.
        moves: ``(tile dimension, numerator, denominator)`` terms of the origin.
        steps: Change of the coordinate per lattice step, one per move.
    """

    unit: int
    extent: int
    shift: int
    moves: tuple[tuple[int, int, int], ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the tile: the axis it moves and by how much, and its shared-memory stride (elements)."""

    axis: int
    place: int
    extent: int
    stride: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One description of a problem: axes, and digits in shared-memory order."""

    axes: tuple[Axis, ...]
    digits: tuple[Digit, ...]
    element_bytes: int


def coalesced_modes(modes: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    """Return the ``(extent, place, stride)`` digits of one tile dimension, merging those that continue each other."""
    return [(extent, place, stride) for place, extent, stride in placed(merge(modes))]


def plain_frame(problem: TensorMapProblem) -> Frame:
    """Return the frame with one axis per tile dimension, without dimensions that never move."""
    axes: list[Axis] = []
    digits: list[Digit] = []
    for dim in range(problem.rank):
        low, high = problem.bounds[dim]
        step = problem.origin_multiple[dim]
        if high - low == 1 and problem.tile[dim] == 1 and step == 0:
            continue
        moves = ((dim, 1, 1),) if step else ()
        for extent, place, stride in coalesced_modes(problem.smem_modes[dim]):
            digits.append(Digit(len(axes), place * problem.element_strides[dim], extent, stride))
        axes.append(Axis(problem.global_strides[dim], high - low, -low, moves, (step,) if step else ()))
    ordered = tuple(sorted(digits, key=lambda digit: (digit.stride, digit.place)))
    return Frame(tuple(axes), ordered, problem.element_bytes)


def frames(problem: TensorMapProblem) -> Iterator[Frame]:
    """Yield the frames worth searching, plainest first."""
    plain = plain_frame(problem)
    seen: set[Frame] = set()
    for base in (plain, renormalised(plain)):
        for frame in (base, fold_covered(base)):
            if frame not in seen:
                seen.add(frame)
                yield frame


def renormalised(frame: Frame) -> Frame:
    """Divide every axis by the common step of all that moves it: strided traversal becomes a plain axis."""
    clock.check("renormalising a problem")
    axes, scale = [], []
    for index, axis in enumerate(frame.axes):
        places = [digit.place for digit in frame.digits if digit.axis == index]
        step = math.gcd(axis.shift, *axis.steps, *places)
        if step <= 1 or (not places and not axis.steps):
            axes.append(axis)
            scale.append(1)
            continue
        moves = tuple((dim, top, bottom * step) for dim, top, bottom in axis.moves)
        steps = tuple(value // step for value in axis.steps)
        extent = -(-axis.extent // step)
        axes.append(
            replace(axis, unit=axis.unit * step, extent=extent, shift=axis.shift // step, moves=moves, steps=steps)
        )
        scale.append(step)
    digits = tuple(replace(digit, place=digit.place // scale[digit.axis]) for digit in frame.digits)
    return replace(frame, axes=tuple(axes), digits=digits)


def fold_covered(frame: Frame) -> Frame:
    """Merge every fully covered axis into the axis that continues it in memory."""
    current = frame
    while True:
        clock.check("folding dimensions")
        pair = next(_covered_pairs(current), None)
        if pair is None:
            return current
        current = fold(current, *pair)


def _covered_pairs(frame: Frame) -> Iterator[tuple[int, int]]:
    """Pairs (fast, slow): the tile fully covers the fast axis, and the slow one continues it."""
    for fast, axis in enumerate(frame.axes):
        places = sorted((d.place, d.extent) for d in frame.digits if d.axis == fast)
        covered = math.prod(extent for _, extent in places)
        if axis.moves or axis.shift or covered != axis.extent or axis.unit <= 0:
            continue
        if places and places[0][0] != 1:
            continue
        for slow, other in enumerate(frame.axes):
            if slow != fast and other.unit == axis.unit * axis.extent:
                yield fast, slow


def fold(frame: Frame, fast: int, slow: int) -> Frame:
    """Merge a covered axis and the one that continues it into the coordinate x = x_fast + extent * x_slow."""
    one, two = frame.axes[fast], frame.axes[slow]
    moves = tuple((dim, top * one.extent, bottom) for dim, top, bottom in two.moves)
    steps = tuple(step * one.extent for step in two.steps)
    merged = Axis(one.unit, one.extent * two.extent, one.extent * two.shift, moves, steps)
    keep = [index for index in range(len(frame.axes)) if index not in (fast, slow)]
    axes = (*[frame.axes[index] for index in keep], merged)
    place_of = {index: position for position, index in enumerate(keep)} | {fast: len(keep), slow: len(keep)}
    digits = [
        replace(digit, axis=place_of[digit.axis], place=digit.place * (one.extent if digit.axis == slow else 1))
        for digit in frame.digits
    ]
    return replace(frame, axes=axes, digits=tuple(_join(digits)))


def _join(digits: list[Digit]) -> list[Digit]:
    """Merge digits that continue each other both in global and in shared memory."""
    joined: list[Digit] = []
    for digit in sorted(digits, key=lambda d: (d.stride, d.place)):
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.axis == digit.axis
            and last.place * last.extent == digit.place
            and last.stride * last.extent == digit.stride
        ):
            joined[-1] = replace(last, extent=last.extent * digit.extent)
        else:
            joined.append(digit)
    return joined
