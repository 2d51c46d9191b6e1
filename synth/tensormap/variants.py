"""Equivalent statements of one problem: a plan of any of them is a plan of the problem.

A variant differs in three ways. *Unseen coordinates:* if only one coordinate of a tile dimension at origin 0 is ever in
bounds, any pitch and digit order will do; if only origin 0 shows anything, so will any step of the other origins that
leaves the bounds; a tile that never shows anything is only filled. *Other swizzles:* if undoing another swizzle on the
requested addresses leaves a sum of strides, the tile is that swizzle of these strides. *Folded dimensions:* one that
the tile covers is part of the dimension that continues it, so that a row of a box may end inside it. The checker proves
every plan against the original problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.ground.digits import merge
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.sight import Sight, room_for, sight_of
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

_T = TypeVar("_T")
Digits = tuple[tuple[int, int], ...]


def seen(problem: TensorMapProblem) -> TensorMapProblem:
    """Return the problem with plain pitches for dimensions with at most one coordinate ever in bounds."""
    for dim in range(problem.rank):
        if not _plain(problem, dim) or problem.bounds[dim][0] > 0:
            sight = sight_of(problem, dim)
            if not sight.ever:
                return _blank(problem)
            stays = sight.multiple == 0 or sight.stays
            if stays and sight.lowest == sight.highest and not _plain(problem, dim):
                problem = _straightened(problem, dim, sight)
            elif stays and sight.multiple:
                problem = replace(
                    problem, origin_multiple=_put(problem.origin_multiple, dim, _up(problem, sight.multiple))
                )
    return problem


def _up(problem: TensorMapProblem, count: int) -> int:
    """Round a number of elements up to whole chunks."""
    grain = max(1, limits.GLOBAL_ALIGN_BYTES // problem.element_bytes)
    return -(-count // grain) * grain


def _plain(problem: TensorMapProblem, dim: int) -> bool:
    """Whether a map can walk a dimension: stride 1 if innermost, otherwise whole chunks below the limit."""
    size = problem.element_bytes
    pitch = problem.global_strides[dim] * problem.element_strides[dim]
    if problem.global_strides[dim] * problem.origin_multiple[dim] * size % limits.GLOBAL_ALIGN_BYTES:
        return False
    if problem.tile[dim] > 1 and any(extent > 1 and stride == 1 for extent, stride in problem.smem_modes[dim]):
        return pitch == 1
    return 0 <= pitch * size < limits.STRIDE_LIMIT_BYTES and pitch * size % limits.GLOBAL_ALIGN_BYTES == 0


def _straightened(problem: TensorMapProblem, dim: int, sight: Sight) -> TensorMapProblem:
    """Order one dimension in global as in shared memory, keeping the address of its only in-bounds coordinate.

    A moving origin shows that coordinate at 0 only; its step becomes a whole tile rounded up to chunks.
    """
    seen_at = int(np.flatnonzero(sight.first <= sight.last)[0])
    place, values = 1, []
    for extent, stride in problem.smem_modes[dim]:
        values.append((stride, extent, seen_at // place % extent))
        place *= extent
    at, place = 0, 1
    for _, extent, value in sorted(values):
        at, place = at + place * value, place * extent
    chunk = _up(problem, 1)
    lowest = min((stride for stride, extent, _ in values if extent > 1), default=chunk)
    pitch = lowest if lowest < chunk else _up(problem, lowest)
    offset = problem.base_elem_offset + problem.global_strides[dim] * sight.lowest - pitch * at
    if offset < 0:
        return problem
    return replace(
        problem,
        base_elem_offset=offset,
        global_shape=_put(problem.global_shape, dim, at + 1),
        global_strides=_put(problem.global_strides, dim, pitch),
        smem_modes=_put(problem.smem_modes, dim, tuple((extent, stride) for stride, extent, _ in sorted(values))),
        bounds=_put(problem.bounds, dim, (at, at + 1)),
        element_strides=_put(problem.element_strides, dim, 1),
        origin_multiple=_put(problem.origin_multiple, dim, _up(problem, problem.tile[dim]) if sight.multiple else 0),
    )


def _blank(problem: TensorMapProblem) -> TensorMapProblem:
    """Return a one-row problem with the digits of a tile that is never in bounds, in shared-memory order."""
    digits = sorted((stride, extent) for modes in problem.smem_modes for extent, stride in modes if extent > 1)
    count = math.prod(problem.tile)
    below, _ = room_for(problem)
    first = problem.base_elem_offset + below // problem.element_bytes
    return replace(
        problem,
        global_shape=(count + 1,),
        global_strides=(1,),
        tile=(count,),
        smem_modes=(tuple((extent, stride) for stride, extent in digits) or ((1, 1),),),
        base_elem_offset=_up(problem, first),
        bounds=((count, count + 1),),
        element_strides=(1,),
        origin_multiple=(0,),
    )


def _put(values: tuple[_T, ...], position: int, value: _T) -> tuple[_T, ...]:
    return (*values[:position], value, *values[position + 1 :])


def statements(problem: TensorMapProblem) -> Iterator[TensorMapProblem]:
    """Yield the variants of a problem, then their folded forms."""
    stated = []
    for variant in variants(problem):  # the first nearly always suffices
        stated.append(variant)
        yield variant
    yield from (folded for folded in map(fold, stated) if folded not in stated)


def fold(problem: TensorMapProblem) -> TensorMapProblem:
    """Return the problem with every covered dimension inside the one that continues it; its own place has extent 1."""
    dense = [dim for dim in range(problem.rank) if problem.element_strides[dim] == 1 and problem.bounds[dim] != (0, 1)]
    for fast in dense:
        extent, pitch = problem.tile[fast], problem.global_strides[fast]
        covers = problem.bounds[fast] == (0, extent) and not problem.origin_multiple[fast] and pitch > 0
        for slow in dense:
            if covers and problem.global_strides[slow] == pitch * extent:
                return fold(_into(problem, fast, slow))
    return problem


def _into(problem: TensorMapProblem, fast: int, slow: int) -> TensorMapProblem:
    """Fold one dimension into another."""
    extent = problem.tile[fast]

    def put(values: tuple[_T, ...], one: _T, both: _T) -> tuple[_T, ...]:
        return _put(_put(values, fast, one), slow, both)

    low, high = problem.bounds[slow]
    digits = merge((*problem.smem_modes[fast], *problem.smem_modes[slow]))
    return replace(
        problem,
        global_shape=put(problem.global_shape, 1, problem.global_shape[slow] * extent),
        global_strides=put(problem.global_strides, problem.global_strides[slow], problem.global_strides[fast]),
        tile=put(problem.tile, 1, problem.tile[slow] * extent),
        smem_modes=put(problem.smem_modes, ((1, 0),), digits or ((1, 0),)),
        bounds=put(problem.bounds, (0, 1), (low * extent, high * extent)),
        origin_multiple=put(problem.origin_multiple, 0, problem.origin_multiple[slow] * extent),
    )


def variants(problem: TensorMapProblem) -> Iterator[TensorMapProblem]:
    """Yield the problem under its own swizzle, then under every other that makes it a sum of strides."""
    if hardware.swizzle_supported(problem.swizzle, problem.arch):
        yield problem
    wanted = problem.addresses()
    for swizzle in hardware.SWIZZLES:
        if swizzle == problem.swizzle or not hardware.swizzle_supported(swizzle, problem.arch):
            continue
        linear = hardware.apply_swizzle(swizzle, wanted)
        modes = _modes(problem, linear)
        if modes is not None:
            stated = replace(problem, swizzle=swizzle, smem_modes=modes)
            if np.array_equal(stated.linear_offsets() * problem.element_bytes, linear):
                yield stated


def _modes(problem: TensorMapProblem, linear: npt.NDArray[np.int64]) -> tuple[Digits, ...] | None:
    """Return the digits of these byte addresses along each dimension, if any."""
    size = problem.element_bytes
    if int(linear.flat[0]) or (linear % size).any():
        return None
    modes = []
    for dim, extent in enumerate(problem.tile):
        axis = linear[tuple(slice(None) if other == dim else 0 for other in range(problem.rank))] // size
        digits = _digits(axis, extent)
        if digits is None:
            return None
        modes.append(digits)
    return tuple(modes)


def _digits(values: npt.NDArray[np.int64], extent: int) -> Digits | None:
    """Return ``(extent, stride)`` digits, fastest first, that generate these values, if any."""
    digits: list[tuple[int, int]] = []
    while extent > 1:
        stride = int(values[1])
        broken = np.flatnonzero(values != np.arange(extent) * stride)
        run = int(broken[0]) if broken.size else extent
        count = next(part for part in range(run, 0, -1) if extent % part == 0)
        if stride < 0 or count == 1:
            return None
        digits.append((count, stride))
        values, extent = values[::count], extent // count
    return tuple(digits) or ((1, 0),)
