"""When is a walked element in bounds: the engine's test against the problem's, for every tile origin at once.

Main definitions: ``classify_bounds``.

Main statements: fix a walked element. Along a tile dimension i the origin is o_i = m_i * u_i with u_i any integer. The
problem's test is an interval of u_i per dimension; the engine's test 0 <= alpha * u_i + k < D is one too, and the test
of a map dimension is constant in every other u. Both in-bounds sets are therefore boxes of Z^n, and two boxes are equal
iff both are empty or all their intervals agree. No origin is sampled.

A map dimension moved by two tile dimensions (folded modes) is decided by ``presburger`` instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.proofs.tensormap import presburger
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import IntArray, MismatchError, Walk, first

UNBOUNDED = 2**61
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Boxes:
    """Per walked element a box of origin lattice points: one interval per free tile dimension, and a constant test."""

    low: dict[int, IntArray]
    high: dict[int, IntArray]
    holds: Flags

    def empty(self) -> Flags:
        """Which elements have no lattice point at all."""
        nothing = ~self.holds
        for dim in self.low:
            nothing = nothing | (self.low[dim] > self.high[dim])
        return nothing

    def clipped(self, limits: dict[int, tuple[int, int]]) -> Boxes:
        """Intersect with a box of lattice points."""
        low = {dim: np.maximum(axis, limits[dim][0]) for dim, axis in self.low.items()}
        high = {dim: np.minimum(axis, limits[dim][1]) for dim, axis in self.high.items()}
        return Boxes(low, high, self.holds)


def classify_bounds(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]]) -> tuple[str, str]:
    """Return (out-of-bounds class, engine) of a plan.

    Raises:
        MismatchError: some element that the problem calls in bounds is not read or written by the engine.
        UndecidedError: folded modes that ISL does not decide within its quota.
    """
    if any(len(row) > 1 for row in moves):
        return presburger.classify_by_isl(plan, walked, moves), "isl"
    dims = [dim for dim in range(plan.problem.rank) if plan.problem.origin_multiple[dim]]
    wanted, engine = _requested(plan, walked, dims), _engine_boxes(walked, moves, dims)
    _must_cover(plan, walked, wanted, engine)
    if _foreign(wanted, engine) is None:
        return "exact", "intervals"
    inside = {dim: _in_range(plan, dim) for dim in dims}
    weak = _foreign(wanted.clipped(inside), engine.clipped(inside)) is None
    return ("weak" if weak else "lost"), "intervals"


def _in_range(plan: TensorMapPlan, dim: int) -> tuple[int, int]:
    """Lattice points whose origin is itself in bounds."""
    (low, high), step = plan.problem.bounds[dim], plan.problem.origin_multiple[dim]
    return -(-low // step), (high - 1) // step


def _requested(plan: TensorMapPlan, walked: Walk, dims: list[int]) -> Boxes:
    """The problem's in-bounds boxes over the free dimensions ``dims``."""
    problem = plan.problem
    low: dict[int, IntArray] = {}
    high: dict[int, IntArray] = {}
    holds = np.ones(walked.tile_coords[0].size, dtype=np.bool_)
    for dim in range(problem.rank):
        x = walked.tile_coords[dim] * problem.element_strides[dim]
        bottom, top = problem.bounds[dim]
        if dim in dims:
            step = problem.origin_multiple[dim]
            low[dim] = -((x - bottom) // step)
            high[dim] = (top - 1 - x) // step
        else:
            holds &= (x >= bottom) & (x < top)
    return Boxes(low, high, holds)


def _engine_boxes(walked: Walk, moves: list[dict[int, int]], dims: list[int]) -> Boxes:
    """The engine's in-bounds boxes."""
    count = walked.coords[0].size
    low = {dim: np.full(count, -UNBOUNDED, dtype=np.int64) for dim in dims}
    high = {dim: np.full(count, UNBOUNDED, dtype=np.int64) for dim in dims}
    holds = np.ones(count, dtype=np.bool_)
    for coordinate, extent, row in zip(walked.coords, walked.extents, moves, strict=True):
        if not row:
            holds &= (coordinate >= 0) & (coordinate < extent)
            continue
        ((dim, step),) = row.items()
        bottom, top = -coordinate, extent - 1 - coordinate
        if step < 0:
            bottom, top, step = -top, -bottom, -step
        low[dim] = np.maximum(low[dim], -((-bottom) // step))
        high[dim] = np.minimum(high[dim], top // step)
    return Boxes(low, high, holds)


def _must_cover(plan: TensorMapPlan, walked: Walk, wanted: Boxes, engine: Boxes) -> None:
    """Every origin at which the problem calls an element in bounds must be one at which the engine moves it."""
    failing = ~engine.holds
    for dim in wanted.low:
        failing = failing | (engine.low[dim] > wanted.low[dim]) | (engine.high[dim] < wanted.high[dim])
    failing &= ~wanted.empty()
    row = first(failing)
    if row is None:
        return
    origin = [0] * plan.problem.rank
    for dim in wanted.low:
        low, high = int(wanted.low[dim][row]), int(wanted.high[dim][row])
        short = low if engine.low[dim][row] > low else high if engine.high[dim][row] < high else min(max(low, 0), high)
        origin[dim] = short * plan.problem.origin_multiple[dim]
    raise MismatchError("an element in bounds is out of bounds for the map", tile=walked.tile_at(row), origin=origin)


def _foreign(wanted: Boxes, engine: Boxes) -> int | None:
    """First element that the engine moves at an origin where the problem calls it out of bounds."""
    beyond = ~wanted.holds
    for dim in wanted.low:
        beyond = beyond | (engine.low[dim] < wanted.low[dim]) | (engine.high[dim] > wanted.high[dim])
    beyond |= wanted.empty()
    return first(beyond & ~engine.empty())
