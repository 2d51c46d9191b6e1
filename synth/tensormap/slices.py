"""Propose plans with interleaved maps of 16- or 32-byte slices, for tiles of tensors like N C/8 H W 8.

A tile consists of slices if its elements form runs of a slice's bytes that are contiguous in both memories and in or
out of bounds together. The dimensions of the slices become the map's, in shared-memory order; mode 0 needs slices that
are contiguous in global memory, and the next-to-last mode carries at most one slice per copy, so moves along it are
left to issues. Slices are dense under every swizzle: a copy may be any dense run of them, for any swizzle span.

The checker decides the proposals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutalg.ground import limits as ground_limits
from layoutalg.ground.digits import merge
from layoutalg.proofs.tensormap.plan import Issue, OriginTerm, TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.assemble import filled_in
from layoutalg.synth.tensormap.variants import variants
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits
from layoutalg.targets.nvidia.tensormap.facts import SLICE_BYTES

RULE = "INTERLEAVE_SLICES"


@dataclass(frozen=True, slots=True)
class _Digit:
    """``extent`` consecutive slices of one axis, ``stride`` slices apart in shared memory."""

    axis: int
    extent: int
    place: int
    stride: int


@dataclass(frozen=True, slots=True)
class _Axis:
    """A dimension of the tensor of slices; ``whole`` elements of the tile's dimension are one step."""

    dim: int
    whole: int
    stride_bytes: int
    extent: int
    step: int
    shift: int


@dataclass(frozen=True, slots=True)
class _Mode:
    """A dimension of the map: an optional axis, the slices that one copy carries, and their distance."""

    axis: int | None
    count: int
    step: int


def sliced_plans(stated: TensorMapProblem, interleave: str) -> list[TensorMapPlan]:
    """Return proposed plans with a ``"16B"`` or ``"32B"`` interleaved map, fewest issues first."""
    found = []
    for problem in variants(stated):
        tile = _sliced(problem, interleave)
        if isinstance(tile, Violation):
            continue
        axes, digits = tile
        for box, loops in _boxes(axes, digits, SLICE_BYTES[interleave]):
            modes = _modes(axes, box, SLICE_BYTES[interleave])
            plan = modes and _assembled(stated, problem, interleave, axes, modes, loops)
            if plan:
                found.append(plan)
    return sorted(found, key=lambda plan: (len(plan.issues), plan.tensor_map.rank))


def why_not_sliced(stated: TensorMapProblem, interleave: str) -> Violation:
    """Return why no interleaved map of ``sliced_plans`` carries the tile."""
    reasons = [_sliced(problem, interleave) for problem in variants(stated)]
    for reason in reasons:
        if not isinstance(reason, Violation):
            text = f"an interleaved map needs <= {limits.MAX_RANK} modes, the first contiguous in global memory and the"
            return Violation(RULE, f"{text} next-to-last with box 1; no ordering does", "tile")
    return next((one for one in reasons if isinstance(one, Violation)), Violation(RULE, "no swizzle fits", "tile"))


def _sliced(problem: TensorMapProblem, interleave: str) -> tuple[list[_Axis], list[_Digit]] | Violation:
    """Return the tile as one of slices: axes, and digits in shared-memory order."""
    size, unit = problem.element_bytes, SLICE_BYTES[interleave]
    many = unit // size
    inner = [
        dim
        for dim, modes in enumerate(problem.smem_modes)
        if any(extent > 1 and stride == 1 for extent, stride in modes)
    ]
    runs = merge(problem.smem_modes[inner[0]]) if len(inner) == 1 else ()
    if not runs or runs[0][1] != 1 or runs[0][0] % many:
        text = f"no dimension of the tile has contiguous runs of whole {many}-element slices in shared memory"
        return Violation(RULE, text, "smem.modes")
    dim = inner[0]
    if problem.global_strides[dim] * problem.element_strides[dim] != 1:
        apart = problem.global_strides[dim] * problem.element_strides[dim]
        text = f"neighbours in shared memory are {apart} elements apart in global memory; a slice must be contiguous"
        return Violation("INNER_CONTIGUOUS", text, "smem.modes", dim)
    if any(value % many for value in (*problem.bounds[dim], problem.origin_multiple[dim])):
        text = f"bounds {problem.bounds[dim]} or origins of dimension {dim} are not multiples of {many}-element slices"
        return Violation(RULE, text, "bounds", dim)
    axes: list[_Axis] = []
    digits: list[_Digit] = []
    for at, (low, high) in enumerate(problem.bounds):
        whole = many if at == dim else 1
        found = list(merge(problem.smem_modes[at]))
        if at == dim:
            found = [(runs[0][0] // many, many), *found[1:]] if runs[0][0] > many else found[1:]
        moved = problem.origin_multiple[at] or low or high - low > whole
        if not found and not moved:
            continue
        stride = problem.global_strides[at] * size * whole
        step = problem.element_strides[at] if problem.tile[at] > whole else 1
        place = 1
        for extent, apart in found:
            if apart % many:
                text = f"slices along dimension {at} are {apart} elements apart in shared memory, not whole slices"
                return Violation("SMEM_DENSE", text, "smem.modes", at)
            digits.append(_Digit(len(axes), extent, place, apart // many))
            place *= extent
        if stride < 0 or stride % unit:
            text = f"dimension {at} has a pitch of {stride} bytes; an interleaved map needs a multiple of {unit}"
            return Violation("STRIDE_ALIGN", text, "global.stride", at)
        axes.append(_Axis(at, whole, stride, (high - low) // whole, step, -(low // whole)))
    return axes, sorted(digits, key=lambda digit: digit.stride)


def _boxes(axes: list[_Axis], digits: list[_Digit], unit: int) -> Iterator[tuple[list[_Digit], list[_Digit]]]:
    """Yield (slices that one copy carries, slices left to issues), longest dense run first."""
    box: list[_Digit] = []
    found: list[tuple[list[_Digit], list[_Digit]]] = [([], digits)]
    filled = 1
    for index, digit in enumerate(digits):
        step = axes[digit.axis].step * digit.place
        if digit.stride != filled or step > limits.MAX_ELEMENT_STRIDE or digit.axis in [one.axis for one in box]:
            break
        most = (limits.MAX_BOX - 1) // step + 1
        taken = next(part for part in range(min(most, digit.extent), 0, -1) if digit.extent % part == 0)
        if taken == 1:
            break
        box = [*box, replace(digit, extent=taken)]
        rest = replace(digit, extent=digit.extent // taken, place=digit.place * taken, stride=digit.stride * taken)
        found.append((box, [*([rest] if rest.extent > 1 else []), *digits[index + 1 :]]))
        if rest.extent > 1:
            break
        filled *= taken
    for carried, loops in reversed(found):
        apart = limits.SMEM_DESTINATION_ALIGN_BYTES
        turns = math.prod(loop.extent for loop in loops)
        if turns <= ground_limits.TILE_ISSUES and not any(loop.stride * unit % apart for loop in loops):
            yield carried, loops


def _modes(axes: list[_Axis], box: list[_Digit], unit: int) -> list[_Mode] | None:
    """Return the map's dimensions of least rank, strides rising if possible; None if no order is valid."""
    carried = {digit.axis: (place, digit) for place, digit in enumerate(box)}
    best: tuple[int, int, tuple[int | None, ...]] | None = None
    for rank in range(max(3, len(axes)), limits.MAX_RANK + 1):
        empty: list[int | None] = [None] * (rank - len(axes))
        for order in dict.fromkeys(itertools.permutations([*range(len(axes)), *empty])):
            inside = [carried[at][0] for at in order if at is not None and at in carried]
            first, single = order[0], order[rank - 2]
            if inside != sorted(inside) or single in carried or not (first is None or axes[first].stride_bytes == unit):
                continue
            strides = [axes[at].stride_bytes for at in order if at is not None]
            falls = sum(after < before for before, after in itertools.pairwise(strides))
            if best is None or (falls, rank) < best[:2]:
                best = falls, rank, order
    if best is None:
        return None
    return [_mode(axes, carried.get(at) if at is not None else None, at) for at in best[2]]


def _mode(axes: list[_Axis], carried: tuple[int, _Digit] | None, axis: int | None) -> _Mode:
    if carried is None or axis is None:
        return _Mode(axis, 1, 1)
    return _Mode(axis, carried[1].extent, axes[axis].step * carried[1].place)


def _extents(modes: list[_Mode], size: int) -> list[tuple[int, int]] | None:
    """Return box and element stride of each mode; the box of mode 0 is whole chunks."""
    grain = max(1, limits.GLOBAL_ALIGN_BYTES // size)
    answer = []
    for place, mode in enumerate(modes):
        if place == 0 and mode.count == 1:
            if grain > limits.MAX_ELEMENT_STRIDE:
                return None
            answer.append((grain, grain))
            continue
        most = min(mode.count * mode.step, limits.MAX_BOX)
        box = most if place else most // grain * grain
        if -(-box // mode.step) != mode.count:
            return None
        answer.append((box, mode.step))
    return answer


def _assembled(
    stated: TensorMapProblem,
    problem: TensorMapProblem,
    interleave: str,
    axes: list[_Axis],
    modes: list[_Mode],
    loops: list[_Digit],
) -> TensorMapPlan | None:
    """Return the plan, with a wider type of the same bits if the box of mode 0 needs it."""
    unit = SLICE_BYTES[interleave]
    free = problem.dtype in hardware.BIT_PRESERVING_DTYPES and problem.oob_fill == "ZERO"
    kinds = [problem.dtype, *(name for name in ("u16", "u32", "u64") if free)]
    fitting = ((kind, _extents(modes, hardware.element_bytes(kind))) for kind in kinds)
    dtype, boxes = next(((kind, found) for kind, found in fitting if found is not None), (problem.dtype, None))
    if boxes is None or hardware.element_bytes(dtype) < problem.element_bytes:
        return None
    rows, strides, reach = [], [], unit
    for mode in modes:
        axis = None if mode.axis is None else axes[mode.axis]
        stride = reach if axis is None else axis.stride_bytes
        strides.append(stride if stride < limits.STRIDE_LIMIT_BYTES else unit)
        rows.append(1 if axis is None else axis.extent)
        reach = strides[-1] * rows[-1]
    low = sum(low * stride for (low, _), stride in zip(problem.bounds, problem.global_strides, strict=True))
    tensor_map = hardware.TensorMap(
        dtype, tuple(rows), tuple(strides[1:]), tuple(box for box, _ in boxes), tuple(step for _, step in boxes),
        interleave, problem.swizzle, "128B", problem.oob_fill if problem.direction == "load" else "ZERO",
        (problem.base_elem_offset + low) * problem.element_bytes,
    )  # fmt: skip
    if hardware.violations(tensor_map, target=problem.arch) or problem.base_align_bytes % unit:
        return None
    terms: list[tuple[OriginTerm, ...]] = []
    for mode in modes:
        axis = None if mode.axis is None else axes[mode.axis]
        moves = axis is not None and problem.origin_multiple[axis.dim]
        terms.append(((axis.dim, 1, axis.whole),) if axis is not None and moves else ())
    issues = []
    for turns in itertools.product(*[range(loop.extent) for loop in reversed(loops)]):
        coords = [0 if mode.axis is None else axes[mode.axis].shift for mode in modes]
        offset = 0
        for loop, turn in zip(reversed(loops), turns, strict=True):
            offset += turn * loop.stride * unit
            for at, mode in enumerate(modes):
                if mode.axis == loop.axis:
                    coords[at] += turn * loop.place * axes[loop.axis].step
        issues.append(Issue(tuple(coords), offset))
    return filled_in(stated, tensor_map, tuple(issues), tuple(terms), "exact")
