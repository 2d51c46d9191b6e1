"""Other statements of one problem that ask for the same bytes: what a plan of any of them does, the problem asks.

Main definitions: ``variants``.

Main statements: a variant differs in two things. *Unseen coordinates:* where one coordinate of a tile dimension that
stays at the origin 0 is in bounds and all others never are, no pitch and no step is ever walked along it, so any will
do. *Other swizzles:* where undoing another swizzle on the wanted addresses leaves a sum of strides, the tile is that
swizzle of these strides. The checker proves every plan against the problem as it was stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import tile_atoms
from layoutalg.synth.tensormap.sight import sight_of
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

_T = TypeVar("_T")
Digits = tuple[tuple[int, int], ...]


def seen(problem: TensorMapProblem) -> TensorMapProblem:
    """Return the problem with a plain pitch along every dimension of which one coordinate alone is ever in bounds."""
    inner = next((atom.dim for atom in tile_atoms(problem) if atom.stride == 1), None)
    for dim in range(problem.rank):
        wanted = _pitch(problem, dim, dim == inner)
        if wanted != problem.global_strides[dim] * problem.element_strides[dim]:
            problem = _straightened(problem, dim, wanted)
    return problem


def _pitch(problem: TensorMapProblem, dim: int, inner: bool) -> int:
    """A pitch between tile elements that a map can hold, the one stated where that can be."""
    size = problem.element_bytes
    grain = max(1, limits.GLOBAL_ALIGN_BYTES // size)
    pitch = problem.global_strides[dim] * problem.element_strides[dim]
    if inner:
        return 1
    if 0 <= pitch * size < limits.STRIDE_LIMIT_BYTES and pitch % grain == 0:
        return pitch
    plain = -(-abs(pitch) // grain) * grain
    return plain if plain * size < limits.STRIDE_LIMIT_BYTES else grain


def _straightened(problem: TensorMapProblem, dim: int, pitch: int) -> TensorMapProblem:
    """Give one dimension a pitch where one coordinate alone is seen; that one keeps its address."""
    sight = sight_of(problem, dim)
    if not sight.ever or sight.lowest != sight.highest or (sight.multiple and not sight.stays):
        return problem
    at = int(np.flatnonzero(sight.first <= sight.last)[0])
    offset = problem.base_elem_offset + problem.global_strides[dim] * sight.lowest - pitch * at
    if offset < 0:
        return problem
    return replace(
        problem,
        base_elem_offset=offset,
        global_shape=_put(problem.global_shape, dim, at + 1),
        global_strides=_put(problem.global_strides, dim, pitch),
        bounds=_put(problem.bounds, dim, (at, at + 1)),
        element_strides=_put(problem.element_strides, dim, 1),
        origin_multiple=_put(problem.origin_multiple, dim, 0),
    )


def _put(values: tuple[_T, ...], position: int, value: _T) -> tuple[_T, ...]:
    return (*values[:position], value, *values[position + 1 :])


def variants(problem: TensorMapProblem) -> Iterator[TensorMapProblem]:
    """Yield the problem under its own swizzle, then under every other that reads it as a sum of strides."""
    if limits.swizzle_supported(problem.swizzle, problem.arch):
        yield problem
    wanted = problem.addresses()
    for swizzle in hardware.SWIZZLES:
        if swizzle == problem.swizzle or not limits.swizzle_supported(swizzle, problem.arch):
            continue
        modes = _modes(problem, hardware.apply_swizzle(swizzle, wanted))
        if modes is not None:
            yield replace(problem, swizzle=swizzle, smem_modes=modes)


def _modes(problem: TensorMapProblem, linear: npt.NDArray[np.int64]) -> tuple[Digits, ...] | None:
    """Return the digits whose strides add up to these byte addresses, None where there are none."""
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
    found = replace(problem, smem_modes=tuple(modes))
    return found.smem_modes if np.array_equal(found.linear_offsets() * size, linear) else None


def _digits(values: npt.NDArray[np.int64], extent: int) -> Digits | None:
    """Return ``(extent, stride)`` digits, fastest first, that count these values, None where there are none."""
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
