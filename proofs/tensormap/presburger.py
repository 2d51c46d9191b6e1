"""Folded modes: one map dimension moved by several tile dimensions, decided by ISL.

Main definitions: ``classify_folded``, ``UndecidedError``.

Implementation notes: the statement is built over box dimensions (lattice points u_i and tile coordinates t_i), affine
throughout, so the sets stay small whatever the extents (no floor, no modulus).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import MismatchError, Walk

MAX_OPERATIONS = 100_000


class UndecidedError(Exception):
    """Neither a proof nor a counterexample; says what was tried."""


def classify_folded(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], dims: set[int]) -> str:
    """Return the out-of-bounds class seen along the tile dimensions ``dims``, which share map dimensions.

    The answer is that of these dimensions alone, over all their lattice points and tile coordinates.

    Raises:
        MismatchError: an element that the problem calls in bounds is not moved.
        UndecidedError: a coordinate is not an affine function of the tile coordinates, or ISL's quota ran out.
    """
    import islpy as isl

    problem = plan.problem
    order = sorted(dims)
    u = {dim: f"u{dim}" for dim in order}
    t = {dim: f"t{dim}" for dim in order}
    multiple = problem.origin_multiple
    x = {dim: f"({multiple[dim]}*{u[dim]} + {problem.element_strides[dim]}*{t[dim]})" for dim in order}
    box = [f"0 <= {t[dim]} < {problem.tile[dim]}" for dim in order]
    wanted = [f"{problem.bounds[dim][0]} <= {x[dim]} < {problem.bounds[dim][1]}" for dim in order]
    inside = [f"{problem.bounds[dim][0]} <= {multiple[dim]}*{u[dim]} < {problem.bounds[dim][1]}" for dim in order]
    engine = []
    for coordinate, extent, row in zip(walked.coords, walked.extents, moves, strict=True):
        if not dims.intersection(row):
            continue
        constant, slopes = _affine(walked, coordinate)
        if any(slope and dim not in dims for dim, slope in enumerate(slopes)):
            raise UndecidedError("a folded coordinate depends on a dimension that does not move it")
        terms = [f"{value}*{u[dim]}" for dim, value in row.items()]
        terms += [f"{slopes[dim]}*{t[dim]}" for dim in order if slopes[dim]]
        engine.append(f"0 <= {' + '.join([str(constant), *terms])} < {extent}")
    space = f"[{', '.join([*u.values(), *t.values()])}]"
    context = isl.Context()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        requested = isl.Set(f"{{ {space} : {' and '.join(box + wanted)} }}", context)
        moved = isl.Set(f"{{ {space} : {' and '.join(box + engine)} }}", context)
        if not requested.is_subset(moved):
            raise MismatchError(
                "an element in bounds is out of bounds for the map", **_point(requested.subtract(moved), plan, order)
            )
        if moved.is_subset(requested):
            return "exact"
        started = isl.Set(f"{{ {space} : {' and '.join(box + inside)} }}", context)
        return "weak" if moved.intersect(started).is_subset(requested) else "lost"
    except isl.Error as error:
        raise UndecidedError(f"ISL gave up after {MAX_OPERATIONS} operations: {error}") from None


def _affine(walked: Walk, coordinate: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, list[int]]:
    """Return (constant, slope per tile dimension) of a coordinate, confirmed on every walked element."""
    zero = np.ones(coordinate.size, dtype=np.bool_)
    for axis in walked.tile_coords:
        zero &= axis == 0
    constant = int(coordinate[zero][0])
    slopes = []
    for dim, axis in enumerate(walked.tile_coords):
        unit = axis == 1
        for other, values in enumerate(walked.tile_coords):
            if other != dim:
                unit &= values == 0
        slopes.append(int(coordinate[unit][0]) - constant if unit.any() else 0)
    predicted = constant + sum(slope * axis for slope, axis in zip(slopes, walked.tile_coords, strict=True))
    if not np.array_equal(predicted, coordinate):
        raise UndecidedError("a folded coordinate is not an affine function of the tile coordinates")
    return constant, slopes


def _point(difference: Any, plan: TensorMapPlan, dims: list[int]) -> dict[str, object]:
    """Return tile coordinate and origin of one point of a set over (u, t)."""
    import islpy as isl

    point = difference.sample_point()
    values = [int(point.get_coordinate_val(isl.dim_type.set, i).to_python()) for i in range(2 * len(dims))]
    tile, origin = [0] * plan.problem.rank, [0] * plan.problem.rank
    for index, dim in enumerate(dims):
        origin[dim] = values[index] * plan.problem.origin_multiple[dim]
        tile[dim] = values[len(dims) + index]
    return {"tile": tile, "origin": origin}
