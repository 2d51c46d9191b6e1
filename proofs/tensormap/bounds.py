"""Compare the engine's bounds test with the problem's, for every tile origin at once.

Fix a walked element. Along tile dimension i the origin is o_i = m_i * u_i for any integer u_i. The problem's test is an
interval of u_i per dimension, so its in-bounds set is a box in Z^n. The engine's test of a map dimension is
0 <= k + sum of a_i u_i < D.
  - The engine moves every in-bounds element iff each such sum stays in range on the box. A linear form has its extremes
    at corners, so this is exact no matter what moves the map dimension.
  - If each map dimension is moved by at most one tile dimension, the engine's set is a box too, and two boxes are equal
    iff both are empty or all their intervals agree. No origin is sampled.
  - The class of a map dimension moved by two tile dimensions (folded modes) is decided by ``presburger``.
Every counterexample is re-evaluated on Python integers before it is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap import presburger
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import ADDRESS_LIMIT, IntArray, MismatchError, UndecidedError, Walk, first

UNBOUNDED = 2**61
Flags = npt.NDArray[np.bool_]
Number = TypeVar("Number", int, IntArray)


@dataclass(frozen=True, slots=True)
class Boxes(Checked, code="LA374"):
    """Per walked element, a box of origin lattice points: an interval per free tile dimension, and a constant test."""

    low: dict[int, IntArray]
    high: dict[int, IntArray]
    holds: Flags

    def empty(self) -> Flags:
        """Return which elements have no lattice point."""
        nothing = ~self.holds
        for dim in self.low:
            nothing = nothing | (self.low[dim] > self.high[dim])
        return nothing

    def clipped(self, limits: dict[int, tuple[int, int]]) -> Boxes:
        """Intersect with a box of lattice points."""
        low = {dim: np.maximum(axis, limits[dim][0]) for dim, axis in self.low.items()}
        high = {dim: np.minimum(axis, limits[dim][1]) for dim, axis in self.high.items()}
        return Boxes(low, high, self.holds)


def classify_bounds(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], wanted: Boxes) -> tuple[str, str]:
    """Return (out-of-bounds class, engine) of a plan; ``wanted`` is its ``requested_boxes``.

    Raises:
        MismatchError: the engine does not move some in-bounds element.
        UndecidedError: folded modes: ISL exceeds its quota, or samples contradict its answer.
        BudgetError: LA001, LA003: folded modes: ISL exceeds the time limit.
    """
    must_cover(plan, walked, moves, wanted)
    if any(len(row) > 1 for row in moves):
        if presburger.foreign_at_an_edge(plan, walked, moves) is not None:
            return "lost", "intervals"
        return presburger.classify_by_isl(plan, walked, moves), "isl"
    engine = _engine_boxes(walked, moves, list(wanted.low))
    if _foreign(wanted, engine) is None:
        return "exact", "intervals"
    inside = {dim: in_range(plan, dim) for dim in wanted.low}
    weak = _foreign(wanted.clipped(inside), engine.clipped(inside)) is None
    return ("weak" if weak else "lost"), "intervals"


def judged(
    plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], row: int, u: Sequence[int]
) -> tuple[bool, bool]:
    """Return whether a walked element is in bounds at a lattice point for the problem, and for the engine."""
    problem = plan.problem
    wanted = all(
        low <= u[dim] * problem.origin_multiple[dim] + int(walked.tile_coords[dim][row]) * step < high
        for dim, ((low, high), step) in enumerate(zip(problem.bounds, problem.element_strides, strict=True))
    )
    engine = all(
        0 <= int(coordinate[row]) + sum(step * u[dim] for dim, step in terms.items()) < extent
        for coordinate, extent, terms in zip(walked.coords, walked.extents, moves, strict=True)
    )
    return wanted, engine


def lattice_points(low: int, high: int, x: Number, step: int) -> tuple[Number, Number]:
    """Return the first and the last u with low <= x + step u < high, for a step above 0.

    Example:
        >>> lattice_points(0, 10, 1, 4)
        (0, 2)
    """
    return -((x - low) // step), (high - 1 - x) // step


def in_range(plan: TensorMapPlan, dim: int) -> tuple[int, int]:
    """Return the first and last lattice point whose origin is in bounds."""
    return lattice_points(*plan.problem.bounds[dim], 0, plan.problem.origin_multiple[dim])


def requested_boxes(plan: TensorMapPlan, walked: Walk) -> Boxes:
    """Return the problem's in-bounds boxes over the dimensions that the origin moves."""
    problem = plan.problem
    low: dict[int, IntArray] = {}
    high: dict[int, IntArray] = {}
    holds = np.ones(walked.tile_coords[0].size, dtype=np.bool_)
    for dim, axis in enumerate(walked.tile_coords):  # one interval per tile coordinate
        x = np.arange(problem.tile[dim], dtype=np.int64) * problem.element_strides[dim]
        bottom, top = problem.bounds[dim]
        step = problem.origin_multiple[dim]
        if step:
            first_point, last_point = lattice_points(bottom, top, x, step)
            low[dim], high[dim] = first_point[axis], last_point[axis]
        else:
            holds &= ((x >= bottom) & (x < top))[axis]
    return Boxes(low, high, holds)


def _engine_boxes(walked: Walk, moves: list[dict[int, int]], dims: list[int]) -> Boxes:
    """Return the engine's in-bounds boxes."""
    count = walked.coords[0].size
    low = {dim: np.full(count, -UNBOUNDED, dtype=np.int64) for dim in dims}
    high = {dim: np.full(count, UNBOUNDED, dtype=np.int64) for dim in dims}
    holds = np.ones(count, dtype=np.bool_)
    for coordinate, extent, row in zip(walked.coords, walked.extents, moves, strict=True):
        if not row:
            holds &= (coordinate >= 0) & (coordinate < extent)
            continue
        ((dim, step),) = row.items()
        start = coordinate if step > 0 else extent - 1 - coordinate  # a falling line, walked from its other end
        first_point, last_point = lattice_points(0, extent, start, abs(step))
        low[dim], high[dim] = np.maximum(low[dim], first_point), np.minimum(high[dim], last_point)
    return Boxes(low, high, holds)


def must_cover(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], wanted: Boxes) -> None:
    """Check that the engine moves every element at every origin where the problem has it in bounds.

    Raises:
        MismatchError: with the tile coordinate and origin of the first element that is not moved.
        UndecidedError: an origin term is so large that the sums exceed 62 bits.
    """
    some = ~wanted.empty()
    if not some.any():
        return
    low, high = wanted.low, wanted.high
    if not some.all():
        low = {dim: np.where(some, axis, 0) for dim, axis in low.items()}
        high = {dim: np.where(some, axis, 0) for dim, axis in high.items()}
    for coordinate, extent, terms in zip(walked.coords, walked.extents, moves, strict=True):
        reach = sum(abs(step) * max(_reach(low[dim]), _reach(high[dim])) for dim, step in terms.items())
        if reach + _reach(coordinate) >= ADDRESS_LIMIT:
            raise UndecidedError("the origin moves a coordinate by more than 62 bits")
        least, most = coordinate, coordinate
        for dim, step in terms.items():
            least = least + step * (low[dim] if step > 0 else high[dim])
            most = most + step * (high[dim] if step > 0 else low[dim])
        for failing, corner in ((least < 0, False), (most >= extent, True)):
            row = first(failing & some)
            if row is None:
                continue
            u = [0] * plan.problem.rank
            for dim in low:
                upward = (terms.get(dim, 0) > 0) == corner
                near_zero = min(max(0, int(low[dim][row])), int(high[dim][row]))
                u[dim] = int((high if upward else low)[dim][row]) if dim in terms else near_zero
            _report(plan, walked, moves, row, u)


def _reach(axis: IntArray) -> int:
    return max(abs(int(axis.min())), abs(int(axis.max()))) if axis.size else 0


def _report(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], row: int, u: list[int]) -> NoReturn:
    """Refute with an element in bounds for the problem but not the engine, after re-evaluating it."""
    if judged(plan, walked, moves, row, u) != (True, False):
        raise UndecidedError("a counterexample failed re-evaluation")
    origin = [value * step for value, step in zip(u, plan.problem.origin_multiple, strict=True)]
    raise MismatchError("an element in bounds is out of bounds for the map", tile=walked.tile_at(row), origin=origin)


def _foreign(wanted: Boxes, engine: Boxes) -> int | None:
    """Return the first element that the engine moves at an origin where it is out of bounds for the problem."""
    beyond = ~wanted.holds
    for dim in wanted.low:
        beyond = beyond | (engine.low[dim] < wanted.low[dim]) | (engine.high[dim] > wanted.high[dim])
    beyond |= wanted.empty()
    return first(beyond & ~engine.empty())
