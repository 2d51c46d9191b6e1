"""Decide the out-of-bounds class of a plan with ISL, for every tile origin at once.

Over lattice points u and tile digits c both in-bounds tests are affine; the plan is exact iff the two sets are equal,
weak iff they are equal wherever every origin is in bounds.

The variables are digits, not flat coordinates with floor and modulus, so the sets stay small for any extents. Digit
boundaries are where a walked coordinate stops being proportional; the resulting affine form is verified on every walked
element before ISL gets it.

ISL runs in a worker with a quota and a time limit, and its answer is verified: a point that it finds is re-evaluated,
and if it finds none, the two tests are compared for every walked element at sampled origins, mostly near edges and
where a folded coordinate lands in the tensor. The certificate records the number of samples.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, worker
from layoutalg.ground.limits import PROOF_SECONDS
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import IntArray, MismatchError, UndecidedError, Walk

MAX_OPERATIONS = 100_000
SAMPLED_ELEMENTS = 2**21
"""Elements that a confirmation evaluates over all its origins."""


def classify_by_isl(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]]) -> str:
    """Return the out-of-bounds class of a plan.

    Raises:
        MismatchError: an in-bounds element is not moved.
        UndecidedError: a coordinate is not affine in the tile digits, ISL exceeds its quota, or its answer fails
            re-evaluation.
        BudgetError: LA001, LA003.
    """
    problem = plan.problem
    places = [_places(walked, dim, extent) for dim, extent in enumerate(problem.tile)]
    texts = _texts(plan, walked, moves, places)
    answer, point = worker.run("the class of folded modes", PROOF_SECONDS, compare, *texts, MAX_OPERATIONS)
    if answer == "undecided":
        raise UndecidedError(f"ISL gave up after {MAX_OPERATIONS} operations")
    if point is not None:
        expected = (True, False) if answer == "uncovered" else (False, True)
        u, tile = _read(point, problem.rank, places)
        if not _holds(plan, walked, moves, u, tile, expected, started=answer == "lost"):
            raise UndecidedError("a point found by ISL failed re-evaluation")
        if answer == "uncovered":
            origin = [value * step for value, step in zip(u, problem.origin_multiple, strict=True)]
            raise MismatchError("an element in bounds is out of bounds for the map", tile=tile, origin=origin)
    if answer == "lost":  # the point was re-evaluated, and coverage was decided without ISL
        return answer
    for index in range(sampled_origins(walked)):
        u = sample(plan, walked, moves, index)
        wanted, moved = bounds_at(plan, walked, moves, u)
        strict = answer == "exact" or _started(plan, u)
        if bool((wanted & ~moved).any()) or (strict and bool((moved & ~wanted).any())):
            raise UndecidedError(f"ISL calls the plan {answer}, which is false at the lattice point {u}")
    return answer


def foreign_at_an_edge(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]]) -> list[int] | None:
    """Return an in-bounds lattice point at which the engine moves out-of-bounds elements, or None.

    Only tiles over the far edges are tried: the last along all dimensions, and the last along each alone.
    """
    problem = plan.problem
    free = [dim for dim in range(problem.rank) if problem.origin_multiple[dim]]
    last = [0] * problem.rank
    for dim in free:
        last[dim] = (problem.bounds[dim][1] - 1) // problem.origin_multiple[dim]
    first = [-(-problem.bounds[dim][0] // step) if step else 0 for dim, step in enumerate(problem.origin_multiple)]
    for u in (last, *([*first[:dim], last[dim], *first[dim + 1 :]] for dim in free)):
        wanted, moved = bounds_at(plan, walked, moves, u)
        if _started(plan, u) and bool((moved & ~wanted).any()):
            return u
    return None


def compare(requested: str, moved: str, started: str, operations: int) -> tuple[str, list[int] | None]:
    """Return the class that ISL finds, or ``"uncovered"`` or ``"undecided"``, and a counterexample to a better one.

    Args:
        requested: The set of (lattice point, digits) in bounds for the problem.
        moved: The set in bounds for the engine.
        started: The set with all origins in bounds.
        operations: ISL's quota.

    Example:
        >>> compare("{ [u] : 0 <= u < 4 }", "{ [u] : 0 <= u < 5 }", "{ [u] : 0 <= u < 4 }", 10_000)
        ('weak', [4])
    """
    import islpy as isl

    context = isl.Context()
    context.set_max_operations(operations)
    try:
        wanted, engine = isl.Set(requested, context), isl.Set(moved, context)
        if not wanted.is_subset(engine):
            return "uncovered", _point(wanted.subtract(engine))
        if engine.is_subset(wanted):
            return "exact", None
        foreign = engine.subtract(wanted)
        inside = foreign.intersect(isl.Set(started, context))
        return ("weak", _point(foreign)) if inside.is_empty() else ("lost", _point(inside))
    except isl.Error:
        return "undecided", None


def sampled_origins(walked: Walk) -> int:
    """Return the number of origins that a confirmation samples."""
    return max(8, min(64, SAMPLED_ELEMENTS // walked.addresses.size))


def sample(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], index: int) -> list[int]:
    """Return the lattice point of one sample: near an edge, or where a folded coordinate lands in the tensor."""
    problem = plan.problem
    rng = random.Random(index)
    u = [0] * problem.rank
    for dim, step in enumerate(problem.origin_multiple):
        if step:
            low, high = problem.bounds[dim]
            reach = problem.element_strides[dim] * (problem.tile[dim] - 1) // step + 2
            first, last = -(-low // step), (high - 1) // step
            near = rng.choice((first, last, rng.randint(min(first, last), max(first, last))))
            u[dim] = near + rng.choice((0, 0, 0, -1, 1, rng.randint(-reach, reach), rng.randint(-4 * reach, 4 * reach)))
    folded = [j for j, terms in enumerate(moves) if len(terms) > 1]
    if folded and index % 2:  # solve one origin for a coordinate inside the tensor
        j = rng.choice(folded)
        dim = rng.choice(sorted(moves[j]))
        row = rng.randrange(walked.addresses.size)
        rest = int(walked.coords[j][row]) + sum(step * u[other] for other, step in moves[j].items() if other != dim)
        u[dim] = (rng.randrange(walked.extents[j]) - rest) // moves[j][dim]
    return u


def bounds_at(
    plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], u: list[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return whether each walked element is in bounds for the problem, and for the engine."""
    clock.check("a sampled origin of a proof")
    problem = plan.problem
    wanted = np.ones(walked.addresses.size, dtype=np.bool_)
    moved = wanted.copy()
    for dim, (low, high) in enumerate(problem.bounds):
        origin = u[dim] * problem.origin_multiple[dim]
        wanted &= _within(walked.tile_coords[dim] * problem.element_strides[dim], low - origin, high - origin)
    for coordinate, extent, terms in zip(walked.coords, walked.extents, moves, strict=True):
        shift = sum(step * u[dim] for dim, step in terms.items())
        moved &= _within(coordinate, -shift, extent - shift)
    return wanted, moved


def _within(axis: IntArray, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Return low <= axis < high for bounds of any size."""
    edge = 2**62
    return (axis >= min(max(low, -edge), edge)) & (axis < min(max(high, -edge), edge))


def _started(plan: TensorMapPlan, u: list[int]) -> bool:
    """Whether every origin that moves is in bounds."""
    problem = plan.problem
    return all(
        not step or low <= value * step < high
        for value, step, (low, high) in zip(u, problem.origin_multiple, problem.bounds, strict=True)
    )


def _holds(
    plan: TensorMapPlan,
    walked: Walk,
    moves: list[dict[int, int]],
    u: list[int],
    tile: list[int],
    expected: tuple[bool, bool],
    started: bool,
) -> bool:
    """Whether some walked element of a tile coordinate has the expected test results at a lattice point."""
    if any(value and not step for value, step in zip(u, plan.problem.origin_multiple, strict=True)):
        return False
    if started and not _started(plan, u):
        return False
    wanted, moved = bounds_at(plan, walked, moves, u)
    here = (wanted == expected[0]) & (moved == expected[1])
    for axis, value in zip(walked.tile_coords, tile, strict=True):
        here &= axis == value
    return bool(here.any())


def _texts(
    plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], places: list[list[int]]
) -> tuple[str, str, str]:
    """Return the sets over (lattice point, digits): requested, moved, and those that start in bounds."""
    problem = plan.problem
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
    space = f"[{', '.join([*u, *(digit for row in digits for digit in row)])}]"
    requested, moved, started = (
        f"{{ {space} : {' and '.join(box + conditions)} }}" for conditions in (wanted, engine, inside)
    )
    return requested, moved, started


def _places(walked: Walk, dim: int, extent: int) -> list[int]:
    """Return the place values of mixed-radix digits of t_dim in which every map coordinate is affine."""
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
        raise UndecidedError(f"the digit places {chain} of tile dimension {dim} do not divide one another")
    return chain


def _affine(walked: Walk, coordinate: IntArray, places: list[list[int]], names: list[list[str]]) -> list[str]:
    """Return the terms of a coordinate over the digits, verified on every walked element."""
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
        raise UndecidedError("a map coordinate is not affine in the tile digits")
    return terms


def _point(points: Any) -> list[int]:
    """Return a point of a nonempty set."""
    import islpy as isl

    point = points.sample_point()
    count = points.dim(isl.dim_type.set)
    return [int(point.get_coordinate_val(isl.dim_type.set, index).to_python()) for index in range(count)]


def _read(point: list[int], rank: int, places: list[list[int]]) -> tuple[list[int], list[int]]:
    """Return the lattice point and tile coordinate of a point over (u, digits)."""
    rest = iter(point[rank:])
    return point[:rank], [sum(place * next(rest) for place in row) for row in places]
