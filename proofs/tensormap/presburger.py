"""The class of a plan decided by ISL, for every tile origin at once: the general engine, and a second opinion.

Main definitions: ``classify_by_isl``, ``UndecidedError``.

Main statements: over the lattice points u and the digits c of the tile, both in-bounds tests are affine; the plan is
exact iff the two sets are equal, weak iff they are equal where every origin is in bounds.

Implementation notes: digits are the variables, never a flat coordinate with floor and modulus, so the sets stay small
whatever the extents. The digits of a tile dimension are read off the walked coordinates: a place is where a coordinate
stops being proportional; the affine form found is confirmed on every walked element before ISL sees it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import IntArray, MismatchError, Walk

MAX_OPERATIONS = 100_000


class UndecidedError(Exception):
    """Neither a proof nor a counterexample; says what was tried."""


def classify_by_isl(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]]) -> str:
    """Return the out-of-bounds class of a plan.

    Raises:
        MismatchError: an element that the problem calls in bounds is not moved.
        UndecidedError: a coordinate is not affine in the digits of the tile, or ISL's quota ran out.
    """
    import islpy as isl

    problem = plan.problem
    places = [_places(walked, dim, extent) for dim, extent in enumerate(problem.tile)]
    multiple = problem.origin_multiple
    u = [f"u{dim}" for dim in range(problem.rank)]
    digits = [[f"c{dim}_{k}" for k in range(len(row))] for dim, row in enumerate(places)]
    t = [" + ".join(f"{p}*{c}" for p, c in zip(*pair, strict=True)) or "0" for pair in zip(places, digits, strict=True)]
    x = [f"{multiple[dim]}*{u[dim]} + {problem.element_strides[dim]}*({t[dim]})" for dim in range(problem.rank)]
    box = [f"{u[dim]} = 0" for dim in range(problem.rank) if multiple[dim] == 0]
    for dim, extent in enumerate(problem.tile):
        box.append(f"0 <= {t[dim]} < {extent}")
        following = [*places[dim], extent][1:]
        for place, above, digit in zip(places[dim], following, digits[dim], strict=True):
            box.append(f"0 <= {digit} < {-(-above // place)}")
    wanted = [f"{low} <= {x[dim]} < {high}" for dim, (low, high) in enumerate(problem.bounds)]
    inside = [f"{low} <= {multiple[d]}*{u[d]} < {high}" for d, (low, high) in enumerate(problem.bounds) if multiple[d]]
    engine = []
    for coordinate, extent, row in zip(walked.coords, walked.extents, moves, strict=True):
        form = _affine(walked, coordinate, places, digits)
        terms = [*(f"{value}*{u[dim]}" for dim, value in row.items()), *form]
        engine.append(f"0 <= {' + '.join(terms)} < {extent}")
    names = [*u, *(digit for row in digits for digit in row)]
    space = f"[{', '.join(names)}]"
    context = isl.Context()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        requested = isl.Set(f"{{ {space} : {' and '.join(box + wanted)} }}", context)
        moved = isl.Set(f"{{ {space} : {' and '.join(box + engine)} }}", context)
        if not requested.is_subset(moved):
            what = "an element in bounds is out of bounds for the map"
            raise MismatchError(what, **_point(requested.subtract(moved), plan, places))
        if moved.is_subset(requested):
            return "exact"
        started = isl.Set(f"{{ {space} : {' and '.join(box + inside)} }}", context)
        return "weak" if moved.intersect(started).is_subset(requested) else "lost"
    except isl.Error as error:
        raise UndecidedError(f"ISL gave up after {MAX_OPERATIONS} operations: {error}") from None


def _places(walked: Walk, dim: int, extent: int) -> list[int]:
    """Places of the mixed-radix digits of t_dim in which every map coordinate is affine, found along that axis."""
    along = np.ones(walked.tile_coords[dim].size, dtype=np.bool_)
    for other, axis in enumerate(walked.tile_coords):
        if other != dim:
            along &= axis == 0
    order = walked.tile_coords[dim][along]
    places = {1} if extent > 1 else set()
    for coordinate in walked.coords:
        table = np.zeros(extent, dtype=np.int64)
        table[order] = coordinate[along]
        table -= table[0]
        place = 1
        while place < extent:
            places.add(place)
            multiples = table[::place]
            broken = np.flatnonzero(multiples != np.arange(multiples.size) * multiples[min(1, multiples.size - 1)])
            place *= int(broken[0]) if broken.size else extent
    chain = sorted(places)
    if any(above % below for below, above in itertools.pairwise(chain)):
        raise UndecidedError(f"the digits of tile dimension {dim} at the places {chain} do not nest")
    return chain


def _affine(walked: Walk, coordinate: IntArray, places: list[list[int]], names: list[list[str]]) -> list[str]:
    """Return the terms of a coordinate over the digits, confirmed on every walked element."""
    digits: list[tuple[str, IntArray]] = []
    for axis, row, labels in zip(walked.tile_coords, places, names, strict=True):
        for position, (place, label) in enumerate(zip(row, labels, strict=True)):
            values = axis // place
            digits.append((label, values % (row[position + 1] // place) if position + 1 < len(row) else values))
    zero = np.ones(coordinate.size, dtype=np.bool_)
    for _, values in digits:
        zero &= values == 0
    constant = int(coordinate[zero][0])
    predicted = np.full(coordinate.size, constant, dtype=np.int64)
    terms = [str(constant)]
    total = sum(values for _, values in digits) if digits else np.zeros(coordinate.size, dtype=np.int64)
    for label, values in digits:
        unit = (values == 1) & (total == 1)
        slope = int(coordinate[unit][0]) - constant if unit.any() else 0
        if slope:
            terms.append(f"{slope}*{label}")
            predicted = predicted + slope * values
    if not np.array_equal(predicted, coordinate):
        raise UndecidedError("a map coordinate is not affine in the digits of the tile")
    return terms


def _point(difference: Any, plan: TensorMapPlan, places: list[list[int]]) -> dict[str, object]:
    """Return tile coordinate and origin of one point of a set over (u, digits)."""
    import islpy as isl

    point = difference.sample_point()
    rank = plan.problem.rank
    count = rank + sum(len(row) for row in places)
    values = [int(point.get_coordinate_val(isl.dim_type.set, index).to_python()) for index in range(count)]
    rest = iter(values[rank:])
    tile = [sum(place * next(rest) for place in row) for row in places]
    origin = [value * step for value, step in zip(values[:rank], plan.problem.origin_multiple, strict=True)]
    return {"tile": tile, "origin": origin}
