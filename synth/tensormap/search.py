"""Search for boxes: which digits of the tile one copy carries, and which become loops of issues.

One copy writes shared memory densely (rows at the swizzle span), so the digits it carries are a prefix of the tile's
digits in shared-memory order, each starting where the previous ones end. The last carried digit may be a part of one.
The rest becomes issues. A carried digit needs its own map dimension: the first of an axis uses the axis itself, a later
one cuts the axis in two (x mod Q, x div Q), which is exact only if Q divides the axis's extent and everything that
moves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from layoutalg.ground import clock
from layoutalg.ground.limits import TILE_ISSUES
from layoutalg.synth.tensormap.axes import Axis, Digit, Frame
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

ALIGN = limits.GLOBAL_ALIGN_BYTES
MAX_SPLITS = 4


@dataclass(frozen=True, slots=True)
class Carried:
    """A digit inside the box: its axis, the cut where it starts, box elements and element stride."""

    axis: int
    cut: int
    extent: int
    element_stride: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of issues: the axis it moves and the (coordinate, shared element offset) of every iteration."""

    axis: int
    turns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to carry the tile: a frame, a swizzle, the box and the loops."""

    frame: Frame
    swizzle: str
    carried: tuple[Carried, ...]
    loops: tuple[Loop, ...]

    @property
    def issues(self) -> int:
        """Copies per tile."""
        return math.prod(len(loop.turns) for loop in self.loops)

    @property
    def rank(self) -> int:
        """Map dimensions."""
        return sum(len(cuts) for cuts in self.cuts())

    def cuts(self) -> list[list[int]]:
        """Return, per axis, where its map dimensions begin."""
        return [_cuts(index, self.carried) for index in range(len(self.frame.axes))]


@dataclass(frozen=True, slots=True)
class _State:
    carried: tuple[Carried, ...]
    rest: tuple[Digit, ...]
    next_stride: int
    bytes: int


def _cuts(axis: int, carried: tuple[Carried, ...]) -> list[int]:
    return sorted({1, *(c.cut for c in carried if c.axis == axis)})


def candidates(frame: Frame, swizzle: str) -> Iterator[Candidate]:
    """Yield the boxes of a frame under a swizzle, within the limits of rank, box, span and alignment."""
    if not frame.digits or frame.digits[0].stride != 1 or len(frame.axes) > limits.MAX_RANK:
        return
    first = frame.digits[0]
    if frame.axes[first.axis].unit != 1 or first.place != 1:
        return
    if not all(index == first.axis or _pitch_ok(frame, axis) for index, axis in enumerate(frame.axes)):
        return
    stack = list(_inner(frame, swizzle))
    while stack:
        clock.check("the search for a box")
        state = stack.pop()
        yield from _stop(frame, swizzle, state)
        stack.extend(_grow(frame, state))
    if swizzle == "NONE" and first.extent > limits.MAX_BOX:
        loops = [_loop(digit) for digit in frame.digits[1:]]
        for part, turns in _overlapping(first, frame.element_bytes):
            if part * frame.element_bytes % ALIGN == 0:
                carried = (Carried(first.axis, 1, part, 1),)
                yield from _candidate(frame, swizzle, carried, [Loop(first.axis, turns), *loops])
                break


def _pitch_ok(frame: Frame, axis: Axis) -> bool:
    """Whether the descriptor can encode the byte stride of an outer axis."""
    stride = axis.unit * frame.element_bytes
    return stride % ALIGN == 0 and 0 <= stride < limits.STRIDE_LIMIT_BYTES


def _inner(frame: Frame, swizzle: str) -> Iterator[_State]:
    """Start the box with the contiguous digit, whole or in part."""
    first, size = frame.digits[0], frame.element_bytes
    span = hardware.swizzle_span_bytes(swizzle) if swizzle != "NONE" else None
    limit = limits.MAX_BOX if span is None else min(limits.MAX_BOX, span // size)
    for part in _parts(first.extent, limit):
        if part * size % ALIGN:
            continue
        pitch = part if span is None else span // size
        rest = _after(first, part, frame.digits[1:])
        yield _State((Carried(first.axis, 1, part, 1),), rest, pitch, pitch * size)


def _parts(extent: int, limit: int) -> list[int]:
    """The whole digit if it fits, otherwise its largest proper divisors that do."""
    if extent <= limit:
        return [extent]
    return [part for part in range(limit, 1, -1) if extent % part == 0][:MAX_SPLITS]


def _after(digit: Digit, part: int, rest: tuple[Digit, ...]) -> tuple[Digit, ...]:
    """Digits left after carrying ``part`` of a digit."""
    if part == digit.extent:
        return rest
    return (Digit(digit.axis, digit.place * part, digit.extent // part, digit.stride * part), *rest)


def _grow(frame: Frame, state: _State) -> Iterator[_State]:
    """Also carry the next digit."""
    if not state.rest:
        return
    digit = state.rest[0]
    if digit.stride != state.next_stride:
        return
    for cut, step in _starts(digit, state.carried):
        for part in _parts(digit.extent, limits.MAX_BOX):
            if (part - 1) * step + 1 > limits.MAX_BOX or state.bytes * part > limits.MAX_BOX_BYTES:
                continue
            carried = (*state.carried, Carried(digit.axis, cut, part, step))
            rest = _after(digit, part, state.rest[1:])
            if _rank_ok(frame, carried) and (cut == 1 or _cut_ok(frame, digit.axis, cut, rest)):
                yield _State(carried, rest, state.next_stride * part, state.bytes * part)


def _starts(digit: Digit, carried: tuple[Carried, ...]) -> Iterator[tuple[int, int]]:
    """Where on its axis a carried digit may begin: (cut, element stride)."""
    taken = [c.cut for c in carried if c.axis == digit.axis]
    if digit.place == 1:
        if 1 not in taken:
            yield 1, 1
        return
    if not taken and digit.place <= limits.MAX_ELEMENT_STRIDE:
        yield 1, digit.place
    if digit.place not in taken:
        yield digit.place, 1


def _rank_ok(frame: Frame, carried: tuple[Carried, ...]) -> bool:
    return sum(len(_cuts(index, carried)) for index in range(len(frame.axes))) <= limits.MAX_RANK


def _cut_ok(frame: Frame, index: int, cut: int, rest: tuple[Digit, ...]) -> bool:
    """Whether splitting x into (x mod Q, x div Q) is exact: no carry from below, and whole rows of Q."""
    axis = frame.axes[index]
    if axis.extent % cut or axis.shift % cut or any(step % cut for step in axis.steps):
        return False
    stride = axis.unit * cut * frame.element_bytes
    if stride % ALIGN or stride >= limits.STRIDE_LIMIT_BYTES:
        return False
    below = sum((d.extent - 1) * d.place for d in rest if d.axis == index and d.place < cut)
    return below < cut and all(d.place % cut == 0 for d in rest if d.axis == index and d.place >= cut)


def _stop(frame: Frame, swizzle: str, state: _State) -> Iterator[Candidate]:
    """End the box here: the rest becomes issues, or one long digit becomes overlapping issues."""
    rest = [digit for digit in state.rest if digit.extent > 1]
    loops = [_loop(digit) for digit in rest]
    yield from _candidate(frame, swizzle, state.carried, loops)
    head = rest[0] if rest else None
    if head is None or head.stride != state.next_stride or head.extent <= limits.MAX_BOX:
        return
    if (1, 1) not in _starts(head, state.carried):
        return
    for part, turns in _overlapping(head, frame.element_bytes):
        carried = (*state.carried, Carried(head.axis, 1, part, 1))
        if _rank_ok(frame, carried) and state.bytes * part <= limits.MAX_BOX_BYTES:
            yield from _candidate(frame, swizzle, carried, [Loop(head.axis, turns), *loops[1:]])
            break


def _loop(digit: Digit) -> Loop:
    return Loop(
        digit.axis, tuple((c * digit.place, c * digit.stride) for c in range(min(digit.extent, TILE_ISSUES + 1)))
    )


def _overlapping(digit: Digit, size: int) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Yield covers of a long digit by the fewest equal boxes, the last pushed back to end with the digit."""
    count = -(-digit.extent // limits.MAX_BOX)
    for part in range(-(-digit.extent // count), limits.MAX_BOX + 1):
        starts = [min(turn * part, digit.extent - part) for turn in range(count)]
        if all(start * digit.stride * size % limits.SMEM_DESTINATION_ALIGN_BYTES == 0 for start in starts):
            yield part, tuple((start * digit.place, start * digit.stride) for start in starts)


def _candidate(frame: Frame, swizzle: str, carried: tuple[Carried, ...], loops: list[Loop]) -> Iterator[Candidate]:
    """Yield the candidate unless an issue is misaligned or a limit is exceeded."""
    size = frame.element_bytes
    if math.prod(len(loop.turns) for loop in loops) > TILE_ISSUES:
        return
    if any(offset * size % limits.SMEM_DESTINATION_ALIGN_BYTES for loop in loops for _, offset in loop.turns):
        return
    candidate = Candidate(frame, swizzle, carried, tuple(loops))
    if all(-(-a.extent // cuts[-1]) <= limits.MAX_DIM for a, cuts in zip(frame.axes, candidate.cuts(), strict=True)):
        yield candidate
