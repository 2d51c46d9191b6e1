"""The two sides of a TensorMap problem in the planner's terms: global axes and the digits of the tile.

Main definitions: ``Axis``, ``Digit``, ``Frame``, ``frames``.

Notation: an axis is one integer coordinate x of global memory: byte address = base + unit * element bytes * x. It is
moved by the tile origin (``moves``: tile dimension, numerator, denominator) and by digits: a digit of extent e and
place p on an axis adds c * p to x and c * stride to the shared element offset, for c = 0..e-1.

Implementation notes: a frame is one way to see the problem. Folding merges axes (contiguous, or by the greatest common
divisor of their units), renormalising divides an axis by the common step of everything that moves it, promotion reads
several elements as one wider element. Nothing here knows hardware limits except the 16-byte granularity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.targets.nvidia.tensormap import limits


@dataclass(frozen=True, slots=True)
class Axis:
    """A global coordinate: its unit in elements, its extent, its value at the origin 0 and what moves it.

    Args:
        unit: Global elements per step.
        extent: Coordinates in bounds are 0..extent-1.
        shift: The coordinate of the tile origin 0.
        moves: ``(tile dimension, numerator, denominator)`` terms of the origin.
        steps: The change of the coordinate per lattice step, one per move.
        nested: Whether the digits form one mixed-radix system, so that the axis may be cut between them.
    """

    unit: int
    extent: int
    shift: int
    moves: tuple[tuple[int, int, int], ...]
    steps: tuple[int, ...]
    nested: bool = True


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the tile: which axis it moves and by how much, and its shared-memory stride (elements)."""

    axis: int
    place: int
    extent: int
    stride: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One way to see a problem: axes, digits in shared-memory order, the element type and the elements it carries."""

    axes: tuple[Axis, ...]
    digits: tuple[Digit, ...]
    dtype: str
    ratio: int
    element_bytes: int


def coalesced_modes(modes: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    """Return the ``(extent, place, stride)`` digits of one tile dimension, merging those that continue each other."""
    digits: list[tuple[int, int, int]] = []
    place = 1
    for extent, stride in modes:
        if extent == 1:
            continue
        if digits and digits[-1][0] * digits[-1][2] == stride:
            last = digits[-1]
            digits[-1] = (last[0] * extent, last[1], last[2])
        else:
            digits.append((extent, place, stride))
        place *= extent
    return digits


def plain_frame(problem: TensorMapProblem) -> Frame:
    """Return the frame with one axis per tile dimension, leaving out dimensions that never move."""
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
    return Frame(tuple(axes), ordered, problem.dtype, 1, problem.element_bytes)


def frames(problem: TensorMapProblem) -> Iterator[Frame]:
    """Yield the frames worth searching, plainest first."""
    plain = plain_frame(problem)
    seen: set[Frame] = set()
    for base in (plain, renormalised(plain)):
        for frame in (base, fold_covered(base), *fold_to_rank(base, limits.MAX_RANK)):
            if frame not in seen:
                seen.add(frame)
                yield frame


def promotions(problem: TensorMapProblem, frame: Frame) -> Iterator[Frame]:
    """Yield the frame seen in wider elements, where the bits stay the same."""
    if frame.dtype not in limits.BIT_PRESERVING_DTYPES:
        return
    if problem.direction == "load" and problem.oob_fill != "ZERO":
        return
    ratio = 2
    while frame.element_bytes * ratio <= 8:
        wide = promoted(frame, ratio)
        if wide is not None:
            yield wide
        ratio *= 2


def promoted(frame: Frame, ratio: int) -> Frame | None:
    """Return the frame in elements ``ratio`` times wider, or None where some length or step does not divide."""
    if not frame.digits or frame.digits[0].stride != 1:
        return None
    inner = frame.digits[0].axis
    if frame.axes[inner].unit != 1 or frame.digits[0].place != 1:
        return None
    axes = []
    for index, axis in enumerate(frame.axes):
        if index != inner:
            if axis.unit % ratio:
                return None
            axes.append(replace(axis, unit=axis.unit // ratio))
            continue
        if any(value % ratio for value in (axis.extent, axis.shift, *axis.steps)):
            return None
        moves = tuple((dim, top, bottom * ratio) for dim, top, bottom in axis.moves)
        steps = tuple(step // ratio for step in axis.steps)
        axes.append(replace(axis, extent=axis.extent // ratio, shift=axis.shift // ratio, moves=moves, steps=steps))
    digits = []
    for index, digit in enumerate(frame.digits):
        if index == 0:
            if digit.extent % ratio:
                return None
            digits.append(replace(digit, extent=digit.extent // ratio))
            continue
        if digit.stride % ratio or (digit.axis == inner and digit.place % ratio):
            return None
        place = digit.place // ratio if digit.axis == inner else digit.place
        digits.append(replace(digit, stride=digit.stride // ratio, place=place))
    dtype = {2: "u16", 4: "u32", 8: "u64"}[frame.element_bytes * ratio]
    return Frame(tuple(axes), tuple(digits), dtype, frame.ratio * ratio, frame.element_bytes * ratio)


def renormalised(frame: Frame) -> Frame:
    """Divide every axis by the common step of all that moves it: strided traversal becomes a plain axis."""
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
    """Merge every axis that the tile covers whole into the axis that continues it in memory."""
    current = frame
    while True:
        pair = next(_covered_pairs(current), None)
        if pair is None:
            return current
        current = fold(current, *pair)


def fold_to_rank(frame: Frame, rank: int) -> Iterator[Frame]:
    """Yield frames of ``rank`` axes, folding pairs of axes that only the origin moves; few, the mildest first."""
    current = fold_covered(frame)
    if len(current.axes) <= rank:
        return  # the covered fold is a frame of its own
    pending = [current]
    for _ in range(len(current.axes) - rank):
        grown = [fold(candidate, *pair) for candidate in pending for pair in _coordinate_pairs(candidate)]
        pending = list(dict.fromkeys(grown))[:24]
    yield from pending


def deeper_folds(problem: TensorMapProblem) -> Iterator[Frame]:
    """Yield frames with fewer axes than a map has room for, so that the box may cut an axis."""
    plain = plain_frame(problem)
    for rank in range(min(len(plain.axes), limits.MAX_RANK + 1) - 1, 1, -1):
        yield from fold_to_rank(plain, rank)


def _covered_pairs(frame: Frame) -> Iterator[tuple[int, int]]:
    """Pairs (fast, slow): the tile covers the fast axis whole, alone, and the slow one continues it."""
    for fast, axis in enumerate(frame.axes):
        places = sorted((d.place, d.extent) for d in frame.digits if d.axis == fast)
        covered = math.prod(extent for _, extent in places)
        if axis.moves or axis.shift or covered != axis.extent or not axis.nested or axis.unit <= 0:
            continue
        if places and places[0][0] != 1:
            continue
        for slow, other in enumerate(frame.axes):
            if slow != fast and other.unit == axis.unit * axis.extent:
                yield fast, slow


def _coordinate_pairs(frame: Frame) -> list[tuple[int, int]]:
    """Pairs of axes that may share one coordinate, contiguous ones first; a used fast one keeps its unit."""
    pairs: list[tuple[tuple[int, int], tuple[int, int]]] = []
    used = {digit.axis for digit in frame.digits}
    for fast, axis in enumerate(frame.axes):
        for slow, other in enumerate(frame.axes):
            if fast == slow or axis.unit <= 0 or other.unit <= 0 or axis.unit > other.unit:
                continue
            contiguous = other.unit == axis.unit * axis.extent
            common = math.gcd(axis.unit, other.unit)
            if common * frame.element_bytes % 16 or (fast in used and common != axis.unit):
                continue
            score = (0 if contiguous else 1, len({fast, slow} & used))
            pairs.append((score, (fast, slow)))
    return [pair for _, pair in sorted(pairs)]


def fold(frame: Frame, fast: int, slow: int) -> Frame:
    """Merge two axes into one coordinate x = a * x_fast + b * x_slow over the common divisor of their units."""
    one, two = frame.axes[fast], frame.axes[slow]
    unit = math.gcd(one.unit, two.unit)
    a, b = one.unit // unit, two.unit // unit
    moves = [(dim, top * a, bottom) for dim, top, bottom in one.moves]
    moves += [(dim, top * b, bottom) for dim, top, bottom in two.moves]
    steps = tuple(step * a for step in one.steps) + tuple(step * b for step in two.steps)
    extent = a * (one.extent - 1) + b * (two.extent - 1) + 1
    nested = one.nested and two.nested and a == 1 and b == one.extent and not one.moves
    merged = Axis(unit, extent, a * one.shift + b * two.shift, tuple(moves), steps, nested)
    keep = [index for index in range(len(frame.axes)) if index not in (fast, slow)]
    axes = (*[frame.axes[index] for index in keep], merged)
    place_of = {index: position for position, index in enumerate(keep)} | {fast: len(keep), slow: len(keep)}
    factor = {fast: a, slow: b}
    digits = [
        replace(digit, axis=place_of[digit.axis], place=digit.place * factor.get(digit.axis, 1))
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
