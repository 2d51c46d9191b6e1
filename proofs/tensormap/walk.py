"""Walk the boxes of every issue of a tile and match each element with the tile element it lands on.

This is the checker's own model of the measured engine rules (row pitch, element strides, XOR on absolute addresses). It
uses facts of ``targets`` but no function that the finder uses; requested addresses come from the definition of the
swizzle (``swizzle``). Nothing here depends on the tile origin, which moves start coordinates but not shared addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.limits import WALK_ELEMENTS
from layoutalg.ground.memory import reserve
from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.swizzle import CHUNK_BYTES, PHASES
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

IntArray = npt.NDArray[np.int64]
MAX_COEFFICIENT = 2**60
ADDRESS_LIMIT = 2**62
SLICES = {"16B": 16, "32B": 32}
"""Measured slice size in bytes by interleave."""


class MismatchError(Exception):
    """Refutes the plan with a witness. Internal to the checker."""

    def __init__(self, what: str, **witness: object) -> None:
        super().__init__(what)
        self.witness: dict[str, object] = {"what": what, **witness}


class UndecidedError(Exception):
    """Neither proof nor counterexample. Internal to the checker."""


@dataclass(frozen=True, slots=True)
class Walk(Checked, code="LA374"):
    """One row per element that the issues of a tile touch, at the tile origin 0."""

    # per map dimension, the coordinate in problem elements (a promoted inner element counts as several). For an
    # interleaved map the first is the element within its slice, which is fixed; the others follow.
    coords: tuple[IntArray, ...]
    extents: tuple[int, ...]  # map extents in problem elements
    steps_bytes: tuple[int, ...]  # byte stride per map dimension, in the same units
    # per tile dimension, the tile coordinate whose requested shared address the element lands on
    tile_coords: tuple[IntArray, ...]
    addresses: IntArray  # shared byte addresses relative to the tile base
    footprint_bytes: int  # shared bytes from the tile base to the end of the last row, gaps included

    def tile_at(self, row: int) -> list[int]:
        """Return the tile coordinate of a row."""
        return [int(axis[row]) for axis in self.tile_coords]


def first(flags: npt.NDArray[np.bool_]) -> int | None:
    """Return the first True position."""
    position = int(np.argmax(flags)) if flags.size else 0
    return position if flags.size and flags[position] else None


def promotion(plan: TensorMapPlan) -> int:
    """Return the problem elements per map element; refute a type that would change the bits.

    An interleaved map counts slices, whatever its type.
    """
    mine, wanted = plan.tensor_map.dtype, plan.problem.dtype
    if mine == wanted:
        return 1
    sizes = hardware.element_bytes(mine), hardware.element_bytes(wanted)
    plain = mine in hardware.BIT_PRESERVING_DTYPES and wanted in hardware.BIT_PRESERVING_DTYPES
    if not plain or sizes[0] % sizes[1] or (plan.problem.oob_fill != "ZERO" and plan.direction == "load"):
        raise MismatchError(
            "the map's element type does not carry the tensor's bits", field="dtype", expected=wanted, got=mine
        )
    return sizes[0] // sizes[1] if plan.tensor_map.interleave == "NONE" else 1


def walk(plan: TensorMapPlan) -> Walk:
    """Walk every issue and match each element with the tile element whose requested address it lands on.

    Raises: MismatchError: an element lands outside the requested addresses, or a tile element is not reached.
    """
    clock.check("the walk of a tile")
    boxes = boxed(plan)
    rows = _owners(plan, boxes.addresses)
    tile_coords = tuple(axis.astype(np.int64) for axis in np.unravel_index(rows, plan.problem.tile))
    return Walk(boxes.coords, boxes.extents, boxes.steps_bytes, tile_coords, boxes.addresses, boxes.footprint_bytes)


def boxed(plan: TensorMapPlan) -> Walk:
    """Walk every issue, without the coordinates of the tile.

    Raises: MismatchError: the issues are too many, or leave the ranges of coordinates or of shared memory.
    """
    problem, tm = plan.problem, plan.tensor_map
    ratio = promotion(plan)
    size = problem.element_bytes
    counts, extents, steps, strides = _dimensions(plan, ratio)
    rank = len(counts)
    total = len(plan.issues) * math.prod(counts)
    if total > WALK_ELEMENTS or total == 0:
        raise MismatchError("the issues do not cover the tile", issues=len(plan.issues), walked=total)
    reserve("the walk of a tile", total, 8 * (2 * rank + problem.rank + 8))
    if any(abs(c) >= 2**31 for issue in plan.issues for c in issue.coords):
        raise MismatchError(
            "a start coordinate exceeds 32 bits", coords=[list(issue.coords) for issue in plan.issues][:4]
        )
    starts = np.array([(0,) * (rank - len(tm.dims)) + issue.coords for issue in plan.issues], dtype=np.int64)
    # axes of the walk: issue, then map dimensions slowest first, so that a C-order ravel has dimension 0 fastest
    shape = (len(plan.issues), *reversed(counts))
    pitches = _pitches_bytes(tm, counts, size)
    offsets = [issue.smem_offset_bytes for issue in plan.issues]
    footprint = max(offsets) + pitches[-1]
    if footprint > limits.MAX_SMEM_BYTES:
        raise MismatchError("the issues exceed shared memory", reach_bytes=footprint, limit_bytes=limits.MAX_SMEM_BYTES)
    offset = _axis(offsets, 0, rank)
    coords: list[IntArray] = []
    for j in range(rank):
        box_axis = np.arange(counts[j], dtype=np.int64)
        offset = offset + _axis(box_axis * pitches[j], rank - j, rank)
        scale = ratio if j == 0 else 1
        coordinate = _axis(starts[:, j] * scale, 0, rank) + _axis(box_axis * steps[j], rank - j, rank)
        coords.append(np.broadcast_to(coordinate, shape).reshape(-1))
    addresses = _phased(tm.swizzle, np.broadcast_to(offset, shape).reshape(-1))
    return Walk(tuple(coords), extents, strides, (), addresses, footprint)


def _dimensions(plan: TensorMapPlan, ratio: int) -> tuple[list[int], tuple[int, ...], list[int], tuple[int, ...]]:
    """Return counts, extents, element strides and byte strides of the engine's walk, fastest first, in elements.

    An interleaved map walks slices: their elements are an extra dimension, every element stride acts, and the
    next-to-last dimension has one slice.
    """
    tm, size = plan.tensor_map, plan.problem.element_bytes
    counts = [-(-box // step) for box, step in zip(tm.box, tm.element_strides, strict=True)]
    if tm.interleave == "NONE":  # mode 0's element stride is ignored by the engine
        counts[0] = tm.box[0] * ratio
        return counts, (tm.dims[0] * ratio, *tm.dims[1:]), [1, *tm.element_strides[1:]], (size, *tm.strides_bytes)
    counts[-2] = 1
    unit = SLICES[tm.interleave]
    many = unit // size
    return [many, *counts], (many, *tm.dims), [1, *tm.element_strides], (size, unit, *tm.strides_bytes)


def _phased(swizzle: str, addresses: IntArray) -> IntArray:
    """Swizzle as measured: in each 128-byte row, chunk c of a span goes to c XOR the row's phase."""
    if swizzle not in PHASES:
        raise MismatchError("the engine was not measured with this swizzle", field="swizzle", got=swizzle)
    phases = PHASES[swizzle]
    chunk, row = addresses // CHUNK_BYTES, addresses // 128
    return addresses + ((chunk ^ (row % phases)) - chunk) * CHUNK_BYTES


def _axis(values: Sequence[int] | IntArray, position: int, rank: int) -> IntArray:
    """Place a vector on one axis of the walk."""
    shape = [1] * (rank + 1)
    shape[position] = len(values)
    return np.asarray(values, dtype=np.int64).reshape(shape)


def _pitches_bytes(tm: hardware.TensorMap, counts: Sequence[int], size: int) -> list[int]:
    """Return the shared byte pitch of each map dimension before the XOR; last, the total."""
    row = counts[0] * size
    if tm.swizzle != "NONE" and tm.interleave == "NONE":  # a row narrower than the span still occupies all of it
        row = max(row, CHUNK_BYTES * PHASES.get(tm.swizzle, 1))
    pitches = [size]
    for count in counts[1:]:
        pitches.append(row)
        row *= count
    return [*pitches, row]


def _owners(plan: TensorMapPlan, addresses: IntArray) -> IntArray:
    """Return, per walked element, the flat tile index with that requested address."""
    size = plan.problem.element_bytes
    wanted_bytes = math.prod(plan.problem.tile) * size
    if wanted_bytes > limits.MAX_SMEM_BYTES:  # before allocating the addresses
        raise MismatchError("the tile does not fit in shared memory", reach_bytes=wanted_bytes)
    wanted = plan.problem.addresses().reshape(-1)
    if int(wanted.max()) >= limits.MAX_SMEM_BYTES:
        raise MismatchError("the tile does not fit in shared memory", reach_bytes=int(wanted.max()))
    slots = wanted // size
    table = np.full(int(slots.max()) + 1, -1, dtype=np.int64)
    table[slots] = np.arange(slots.size)
    twice = first(table[slots] != np.arange(slots.size))
    if twice is not None:
        raise MismatchError(
            "two tile elements share one shared-memory address",
            tile=[int(v) for v in np.unravel_index(twice, plan.problem.tile)],
            address=int(wanted[twice]),
        )
    landed = addresses // size
    outside = (landed < 0) | (landed >= table.size) | (addresses % size != 0)
    rows = table[np.where(outside, 0, landed)]
    stray = first(outside | (rows < 0))
    if stray is not None:
        raise MismatchError(
            "an issue touches shared memory outside the tile", smem_offset_bytes=int(addresses[stray]), walked=stray
        )
    reached = np.zeros(slots.size, dtype=np.bool_)
    reached[rows] = True
    missed = first(~reached)
    if missed is not None:
        tile = [int(v) for v in np.unravel_index(missed, plan.problem.tile)]
        raise MismatchError("no issue reaches this tile element", tile=tile, smem_offset_bytes=int(wanted[missed]))
    return rows


def coefficients(plan: TensorMapPlan) -> list[dict[int, int]]:
    """Return, per dimension of the walk, {tile dimension: coordinate change per step of the origin lattice}.

    Raises: MismatchError: an origin term does not divide on the lattice, so the coordinate is not linear.
    """
    problem = plan.problem
    ratio = promotion(plan)
    answer: list[dict[int, int]] = []
    for j, terms in enumerate(plan.origin_map):
        row: dict[int, int] = {}
        for dim, numerator, denominator in terms:
            step = numerator * problem.origin_multiple[dim]
            if step % denominator:
                origin = [0] * problem.rank
                origin[dim] = problem.origin_multiple[dim]
                raise MismatchError(
                    "an origin term does not divide", origin=origin, map_dim=j, term=[dim, numerator, denominator]
                )
            row[dim] = row.get(dim, 0) + step // denominator * (ratio if j == 0 else 1)
        if any(abs(value) > MAX_COEFFICIENT for value in row.values()):
            raise MismatchError("an origin term exceeds 60 bits", map_dim=j)
        answer.append({dim: value for dim, value in row.items() if value})
    return answer if plan.tensor_map.interleave == "NONE" else [{}, *answer]  # elements within a slice are fixed
